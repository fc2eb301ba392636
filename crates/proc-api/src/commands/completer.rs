//! The right and the duty to answer a yield.

use super::{CommandError, Completion, Tag};
use crate::values::{BoxError, Payload, Pid};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A scheduler's side of a [`Completer`].
pub trait CompletionSink: Send + Sync {
    /// Takes the one result of the yield that its token names.
    fn complete(self: Arc<Self>, tag: Tag, token: u64, result: Result<Payload, CommandError>);

    /// The completer of the yield was dropped unused, which completes the yield with
    /// [`CommandError::Dropped`].
    fn complete_dropped(self: Arc<Self>, tag: Tag, token: u64) {
        self.complete(tag, token, Err(CommandError::Dropped));
    }

    /// The process that waits for the completion.
    fn pid(&self) -> Pid;

    /// Whether that process has been asked to finish, is to take no further step, or has ended.
    fn is_cancelled(&self) -> bool;
}

/// The right, and the duty, to answer one yield: consumed by answering.
///
/// Dropping it unused answers with [`CommandError::Dropped`]. It may move to any thread, and be
/// kept for any time. An answer to a process that has ended is dropped and counted.
///
/// A completer keeps memory of its process alive. Code that keeps many of them should drop those
/// that [are cancelled](Self::is_cancelled) from time to time.
#[must_use = "dropping a completer answers with an error"]
pub struct Completer {
    /// `None` once it has been used.
    sink: Option<Arc<dyn CompletionSink>>,
    tag: Tag,
    token: u64,
}

impl Completer {
    /// A completer for the yield that `token` names; for schedulers.
    #[inline]
    pub fn new(sink: Arc<dyn CompletionSink>, tag: Tag, token: u64) -> Self {
        Self {
            sink: Some(sink),
            tag,
            token,
        }
    }

    /// A completer that gives the completion to `receive`, for unit tests of handlers.
    ///
    /// ```
    /// use ganger_proc_api::Completer;
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// let pid = "{test|1}".parse().unwrap();
    /// let completer = Completer::from_fn(pid, 7, move |completion| {
    ///     sender.send(completion).unwrap();
    /// });
    /// completer.complete("done");
    /// let completion = receiver.recv().unwrap();
    /// assert_eq!((completion.tag, completion.result.unwrap().as_str()), (7, Some("done")));
    /// ```
    pub fn from_fn(pid: Pid, tag: Tag, receive: impl FnOnce(Completion) + Send + 'static) -> Self {
        let receive = Mutex::new(Some(Box::new(receive) as Receive));
        Self::new(Arc::new(FnSink { pid, receive }), tag, 0)
    }

    /// Answers with a result. Never blocks.
    #[inline]
    pub fn complete(self, result: impl Into<Payload>) {
        // The conversion may panic. Then the completer is dropped unused, which is an answer.
        let result = Ok(result.into());
        self.finish(result);
    }

    /// Answers with an error. Never blocks.
    pub fn fail(self, error: impl Into<BoxError>) {
        self.finish(Err(CommandError::Failed(error.into())));
    }

    /// Answers with a result or an error. Never blocks.
    #[inline]
    pub fn finish(mut self, result: Result<Payload, CommandError>) {
        if let Some(sink) = self.sink.take() {
            sink.complete(self.tag, self.token, result);
        }
    }

    /// The process that waits for the answer. Always `Some` in this version.
    #[must_use]
    pub fn pid(&self) -> Option<Pid> {
        self.sink.as_ref().map(|sink| sink.pid())
    }

    /// The tag that the process gave the yield.
    #[must_use]
    pub fn tag(&self) -> Tag {
        self.tag
    }

    /// Whether the work may be given up: the process has been asked to finish, is to take no
    /// further step, or has ended. Never blocks. Once `true`, it stays `true`.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.sink.as_ref().is_none_or(|sink| sink.is_cancelled())
    }
}

impl Drop for Completer {
    #[inline]
    fn drop(&mut self) {
        if let Some(sink) = self.sink.take() {
            sink.complete_dropped(self.tag, self.token);
        }
    }
}

impl fmt::Debug for Completer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completer")
            .field("pid", &self.pid())
            .field("tag", &self.tag)
            .finish_non_exhaustive()
    }
}

/// What [`Completer::from_fn`] calls with the answer.
type Receive = Box<dyn FnOnce(Completion) + Send>;

struct FnSink {
    pid: Pid,
    receive: Mutex<Option<Receive>>,
}

impl CompletionSink for FnSink {
    fn complete(self: Arc<Self>, tag: Tag, token: u64, result: Result<Payload, CommandError>) {
        let receive = self
            .receive
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(receive) = receive {
            receive(Completion::of(tag, token, result));
        }
    }

    fn pid(&self) -> Pid {
        self.pid
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc::{Receiver, channel};

    fn completer() -> (Completer, Receiver<Completion>) {
        let (sender, receiver) = channel();
        let pid = "{test|1}".parse().unwrap();
        (
            Completer::from_fn(pid, 9, move |c| sender.send(c).unwrap()),
            receiver,
        )
    }

    // pins: P6
    #[test]
    fn each_way_of_answering_gives_one_completion() {
        type Answer = fn(Completer);
        let ways: [(Answer, &str); 3] = [
            (|c| c.complete(5), "Ok(5)"),
            (|c| c.fail("no luck"), "Err(Failed(\"no luck\"))"),
            (drop, "Err(Dropped)"),
        ];
        for (answer, expected) in ways {
            let (completer, receiver) = completer();
            answer(completer);
            let completions: Vec<_> = receiver.iter().collect();
            assert_eq!(completions.len(), 1);
            assert_eq!(completions[0].tag, 9);
            assert_eq!(format!("{:?}", completions[0].result), expected);
        }
    }

    /// Panics when it is converted into a payload.
    struct Unmade;

    impl From<Unmade> for Payload {
        fn from(_: Unmade) -> Self {
            panic!("on purpose: no payload");
        }
    }

    // pins: P6
    #[test]
    fn a_result_that_panics_on_its_way_is_an_answer_too() {
        let (completer, receiver) = completer();
        let panicked = catch_unwind(AssertUnwindSafe(|| completer.complete(Unmade)));
        assert!(panicked.is_err());
        let completions: Vec<_> = receiver.iter().collect();
        assert_eq!(completions.len(), 1);
        assert!(matches!(completions[0].result, Err(CommandError::Dropped)));
    }

    // pins: P6
    #[test]
    fn a_completer_lets_go_of_its_process_with_its_answer() {
        let ways: [fn(Completer); 4] = [
            |it| it.complete(5),
            |it| it.finish(Ok(Payload::UNIT)),
            |it| it.fail("no luck"),
            drop,
        ];
        for answer in ways {
            let pid = "{test|1}".parse().unwrap();
            let receive = Mutex::new(None);
            let sink = Arc::new(FnSink { pid, receive });
            let completer = Completer::new(sink.clone(), 9, 1);
            assert_eq!(Arc::strong_count(&sink), 2);
            answer(completer);
            assert_eq!(Arc::strong_count(&sink), 1);
        }
    }
}
