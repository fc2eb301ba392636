//! Carrying commands out, and answering.

use crate::{BoxError, Command, CommandError, Completion, Payload, Pid, Placed, Tag};
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, PoisonError};

/// Carries out the commands of one kind.
///
/// `handle` runs on the worker that ran the step, so it must not block: it answers at once, or
/// hands the completer to whoever will. A closure is a handler:
///
/// ```
/// use ganger_proc_api::{Command, Completer, Handler, Payload};
///
/// fn double(command: Command, completer: Completer) -> Result<(), ganger_proc_api::BoxError> {
///     let n = command.payloads.into_first().as_u64().ok_or("double needs a number")?;
///     completer.complete(2 * n);
///     Ok(())
/// }
/// fn is_handler(_: impl Handler) {}
/// is_handler(double);
/// ```
pub trait Handler: Send + Sync + 'static {
    /// Carries `command` out, and sees to it that `completer` is used, now or later.
    ///
    /// # Errors
    /// An error completes the yield with [`CommandError::Failed`], unless the completer has been
    /// used before. A panic is contained and completes it with [`CommandError::Panicked`].
    fn handle(&self, command: Command, completer: Completer) -> Result<(), BoxError>;

    /// As [`handle`](Self::handle), which it calls, with a command that lies somewhere, and with what
    /// [`Completer::new`] gets, by which nothing has to be moved; for schedulers.
    ///
    /// # Safety
    /// Whoever writes another one makes one completer of the sink, the tag and the token, and does nothing else
    /// with them.
    ///
    /// # Errors
    /// As for `handle`.
    #[doc(hidden)]
    #[inline]
    unsafe fn handle_placed(
        &self,
        command: Placed<'_, Command>,
        sink: Arc<dyn CompletionSink>,
        tag: Tag,
        token: u64,
    ) -> Result<(), BoxError> {
        self.handle(command.take(), Completer::new(sink, tag, token))
    }
}

impl<F> Handler for F
where
    F: Fn(Command, Completer) -> Result<(), BoxError> + Send + Sync + 'static,
{
    #[inline]
    fn handle(&self, command: Command, completer: Completer) -> Result<(), BoxError> {
        self(command, completer)
    }

    #[inline]
    unsafe fn handle_placed(
        &self,
        command: Placed<'_, Command>,
        sink: Arc<dyn CompletionSink>,
        tag: Tag,
        token: u64,
    ) -> Result<(), BoxError> {
        self(command.take(), Completer::new(sink, tag, token))
    }
}

/// So that a handler that comes back inside an error can be registered elsewhere, and one be shared.
impl<H: Handler + ?Sized> Handler for Arc<H> {
    #[inline]
    fn handle(&self, command: Command, completer: Completer) -> Result<(), BoxError> {
        (**self).handle(command, completer)
    }

    #[inline]
    unsafe fn handle_placed(
        &self,
        command: Placed<'_, Command>,
        sink: Arc<dyn CompletionSink>,
        tag: Tag,
        token: u64,
    ) -> Result<(), BoxError> {
        // SAFETY: as this function's.
        unsafe { (**self).handle_placed(command, sink, tag, token) }
    }
}

/// A scheduler's side of a [`Completer`].
pub trait CompletionSink: Send + Sync {
    /// Takes the one result of the yield that its token names.
    fn complete(self: Arc<Self>, tag: Tag, token: u64, result: Result<Payload, CommandError>);

    /// Takes notice that the completer of the yield was dropped unused, which completes it with
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
/// Dropping it unused answers with [`CommandError::Dropped`]. It may be moved to any thread and
/// kept for any time; an answer to a process that has ended is dropped and counted. One that is kept keeps the memory of
/// its process: whoever keeps many drops those that [are cancelled](Self::is_cancelled) from time to time.
#[must_use = "dropping a completer answers with an error"]
pub struct Completer {
    sink: ManuallyDrop<Arc<dyn CompletionSink>>,
    tag: Tag,
    token: u64,
}

impl Completer {
    /// A completer for the yield that `token` names; for schedulers.
    #[inline]
    pub fn new(sink: Arc<dyn CompletionSink>, tag: Tag, token: u64) -> Self {
        Self {
            sink: ManuallyDrop::new(sink),
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
        // While the completer is whole: it may panic.
        let result = Ok(result.into());
        let (sink, tag, token) = self.into_parts();
        sink.complete(tag, token, result);
    }

    /// Answers with an error. Never blocks.
    pub fn fail(self, error: impl Into<BoxError>) {
        self.finish(Err(CommandError::Failed(error.into())));
    }

    /// Answers with either. Never blocks.
    #[inline]
    pub fn finish(self, result: Result<Payload, CommandError>) {
        let (sink, tag, token) = self.into_parts();
        sink.complete(tag, token, result);
    }

    /// What it was made of.
    #[inline]
    fn into_parts(self) -> (Arc<dyn CompletionSink>, Tag, u64) {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: neither this nor its sink is used or dropped after that.
        let sink = unsafe { ManuallyDrop::take(&mut this.sink) };
        (sink, this.tag, this.token)
    }

    /// The process that waits for the answer: `Some`, unless a later version has completers that answer something else.
    #[must_use]
    pub fn pid(&self) -> Option<Pid> {
        Some(self.sink.pid())
    }

    /// The tag that the process gave the yield.
    #[must_use]
    pub fn tag(&self) -> Tag {
        self.tag
    }

    /// Whether the work may be given up, because the process has been asked to finish, is to take no further step, or
    /// has ended. Never blocks; once `true`, always `true`.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.sink.is_cancelled()
    }
}

impl Drop for Completer {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: it is not used after that.
        let sink = unsafe { ManuallyDrop::take(&mut self.sink) };
        sink.complete_dropped(self.tag, self.token);
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

    /// What can't be made a payload of.
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
