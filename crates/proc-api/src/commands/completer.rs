//! The right and the duty to answer a yield.

use super::taken;
use super::{CommandError, Completion, Tag};
use crate::raw::{First, Others, apart, join};
use crate::values::{BoxError, Payload, Pid};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A scheduler's side of a [`Completer`].
pub trait CompletionSink: Send + Sync {
    /// Takes the only result of the yield with this token.
    fn complete(self: Arc<Self>, tag: Tag, token: u64, result: Result<Payload, CommandError>);

    /// Completes as [`complete`](Self::complete) does, with a payload whose parts come in
    /// registers.
    #[doc(hidden)]
    fn complete_with<'id>(
        self: Arc<Self>,
        tag: Tag,
        token: u64,
        first: First<'id, Payload>,
        others: Others<'id, Payload>,
    ) {
        self.complete(tag, token, Ok(join(first, others)));
    }

    /// Takes the news that the completer of a yield was dropped unused. By default, completes the
    /// yield with [`CommandError::Dropped`].
    fn complete_dropped(self: Arc<Self>, tag: Tag, token: u64) {
        self.complete(tag, token, Err(CommandError::Dropped));
    }

    /// Returns the waiting process, if a process waits for the completion.
    fn pid(&self) -> Option<Pid>;

    /// Returns the number of the process's scheduler: processes of two schedulers may have the same
    /// PID. Zero without a known scheduler.
    #[doc(hidden)]
    fn scheduler(&self) -> u64 {
        0
    }

    /// Returns whether the process has been asked to finish, takes no further step, has ended, or
    /// has taken the yield back.
    fn is_cancelled(&self, token: u64) -> bool;

    /// Has `call` made when the process has ended or has taken the yield back, if the call still
    /// exists then. Returns `false` when either has happened already. By default, neither ever
    /// happens.
    fn on_end(self: Arc<Self>, token: u64, call: Weak<EndCall>) -> bool {
        let _ = (token, call);
        true
    }

    /// Has a worker make the call between two steps of the process, behind the arrived events, or
    /// drop the call when the process ends before. Gives the call back when the process has ended,
    /// or when the sink is not a process. By default, a sink is not a process.
    #[doc(hidden)]
    fn between_steps(self: Arc<Self>, call: Box<StepsCall>) -> Result<(), Box<StepsCall>> {
        Err(call)
    }

    /// Tells the processor to fetch the sink from memory: its use is near.
    #[doc(hidden)]
    fn prefetch(&self) {}
}

/// A call between two steps of a process.
#[doc(hidden)]
pub type StepsCall = dyn FnOnce() + Send;

/// The right, and the duty, to answer a single yield: consumed by answering.
///
/// Dropping the completer unused answers with [`CommandError::Dropped`]. Its holder may move it to
/// any thread, and keep it for any time. An answer to a process that has ended is dropped and
/// counted.
///
/// A completer keeps memory of its process alive. So a long-lived holder drops a completer when
/// [its answer is unwanted](Self::on_end), or drops [cancelled](Self::is_cancelled) completers from
/// time to time.
#[must_use = "dropping a completer answers with an error"]
pub struct Completer {
    /// `None` once it has been used.
    sink: Option<Arc<dyn CompletionSink>>,
    tag: Tag,
    token: u64,
}

impl Completer {
    /// Makes a completer for the yield with this token; for schedulers.
    #[inline]
    pub fn new(sink: Arc<dyn CompletionSink>, tag: Tag, token: u64) -> Self {
        Self {
            sink: Some(sink),
            tag,
            token,
        }
    }

    /// Makes a completer that gives the completion to `receive`, for unit tests of handlers.
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
        // The conversion may panic. The unwinding then drops the completer, and so answers.
        self.complete_with(result.into());
    }

    /// Answers with an error. Never blocks.
    pub fn fail(self, error: impl Into<BoxError>) {
        self.finish(Err(CommandError::Failed(error.into())));
    }

    /// Answers with a result or an error. Never blocks.
    #[inline]
    pub fn finish(mut self, result: Result<Payload, CommandError>) {
        match result {
            Ok(payload) => self.complete_with(payload),
            Err(_) => {
                if let Some(sink) = self.sink.take() {
                    #[cfg(feature = "serde")]
                    if taken::is_taken(&sink, self.tag, self.token) {
                        return;
                    }
                    sink.complete(self.tag, self.token, result);
                }
            }
        }
    }

    #[inline]
    fn complete_with(mut self, payload: Payload) {
        if let Some(sink) = self.sink.take() {
            let (tag, token) = (self.tag, self.token);
            #[cfg(feature = "serde")]
            if taken::is_taken(&sink, tag, token) {
                return;
            }
            apart(payload, |first, others| {
                sink.complete_with(tag, token, first, others);
            });
        }
    }

    /// Returns the waiting process; `None` when code outside of any process waits for the answer.
    #[must_use]
    pub fn pid(&self) -> Option<Pid> {
        self.sink.as_ref().and_then(|sink| sink.pid())
    }

    /// Returns the waiting process as [`pid`](Self::pid) does, and the number of the process's
    /// scheduler.
    #[doc(hidden)]
    #[must_use]
    pub fn asker(&self) -> Option<(Pid, u64)> {
        let sink = self.sink.as_ref()?;
        Some((sink.pid()?, sink.scheduler()))
    }

    /// Returns the process's tag of the yield.
    #[must_use]
    pub fn tag(&self) -> Tag {
        self.tag
    }

    /// Returns whether the work may be given up. The process has been asked to finish, takes no
    /// further step, or has ended; or it has [taken the yield back](crate::StepOutput::cancel).
    /// Once `true`, the answer stays `true`. Never blocks, except on a lock held for O(1) if the
    /// process takes yields back.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        let sink = self.sink.as_ref();
        sink.is_none_or(|sink| sink.is_cancelled(self.token))
    }

    /// Has `call` called once when the process has ended, or has [taken the yield
    /// back](crate::StepOutput::cancel), so that the holder can drop the completer. Returns `None`,
    /// and makes no call, when the process has ended already.
    ///
    /// A process may still wait for the answer after a request to finish. The thread that ends the
    /// process makes the call, so the call must be short. A panic in the call is contained.
    /// Dropping the [`EndWatch`] takes the call back, unless a thread is making it at this moment.
    /// O(1), amortised. Never blocks, except on a lock held for O(1).
    ///
    /// ```
    /// use ganger_proc_api::{BoxError, Command, Completer, EndWatch, Handler};
    /// use std::collections::HashMap;
    /// use std::sync::{Arc, Mutex, PoisonError};
    ///
    /// /// Answers later, and keeps no completer of a process that has ended.
    /// #[derive(Default)]
    /// struct Later(Arc<Mutex<HashMap<u64, (Completer, Option<EndWatch>)>>>);
    ///
    /// impl Handler for Later {
    ///     fn handle(&self, command: Command, completer: Completer) -> Result<(), BoxError> {
    ///         let key = command.payloads.into_first().as_u64().ok_or("not a number")?;
    ///         let waiting = Arc::downgrade(&self.0);
    ///         let watch = completer.on_end(move || {
    ///             if let Some(waiting) = waiting.upgrade() {
    ///                 waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
    ///             }
    ///         });
    ///         // Without the lock meanwhile: the call takes it. A process that has ended is no
    ///         // reason to keep the completer.
    ///         if watch.is_some() {
    ///             let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
    ///             waiting.insert(key, (completer, watch));
    ///         }
    ///         Ok(())
    ///     }
    /// }
    /// ```
    #[must_use = "dropping it takes the call back"]
    pub fn on_end(&self, call: impl FnOnce() + Send + 'static) -> Option<EndWatch> {
        let sink = self.sink.as_ref()?;
        let call = Arc::new(EndCall::new(call));
        let is_kept = Arc::clone(sink).on_end(self.token, Arc::downgrade(&call));
        is_kept.then_some(EndWatch(call))
    }

    /// Returns the sink that gets the answer.
    #[doc(hidden)]
    #[must_use]
    pub fn sink(&self) -> Option<Arc<dyn CompletionSink>> {
        self.sink.clone()
    }

    /// Prefetches the sink. Called for many completers before their use, so that the waits for
    /// their memory overlap.
    #[doc(hidden)]
    #[inline]
    pub fn prefetch(&self) {
        if let Some(sink) = &self.sink {
            sink.prefetch();
        }
    }

    /// Sends the answer through a sink that `sink` makes of the completer's own sink and token: for
    /// crates that watch answers.
    #[doc(hidden)]
    pub fn through<S: CompletionSink + 'static>(
        mut self,
        sink: impl FnOnce(Arc<dyn CompletionSink>, u64) -> Arc<S>,
    ) -> Self {
        let own = self.sink.take();
        self.sink = own.map(|own| sink(own, self.token) as Arc<dyn CompletionSink>);
        self
    }

    /// Returns the parts that make another completer for the same yield.
    #[cfg(feature = "serde")]
    pub(crate) fn parts(&self) -> Option<taken::Parts> {
        let sink = self.sink.clone()?;
        let (tag, token) = (self.tag, self.token);
        Some(taken::Parts { sink, tag, token })
    }

    /// Returns the sink, the tag and the token of the completer.
    pub(super) fn into_parts(mut self) -> (Option<Arc<dyn CompletionSink>>, Tag, u64) {
        (self.sink.take(), self.tag, self.token)
    }

    /// Drops the completer without an answer. For a holder that has learnt from the scheduler that
    /// the answer is unwanted: nothing completes the yield.
    #[doc(hidden)]
    pub fn forget(mut self) {
        drop(self.sink.take());
    }
}

/// Keeps a call for an unwanted answer alive; see [`Completer::on_end`]. Dropping the watch takes
/// the call back.
#[must_use = "dropping it takes the call back"]
pub struct EndWatch(Arc<EndCall>);

impl fmt::Debug for EndWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_called = self.0.lock().is_none();
        f.debug_struct("EndWatch")
            .field("is_called", &is_called)
            .finish()
    }
}

/// A call for the moment when a process has ended, or has taken a yield back, made once; for
/// schedulers.
pub struct EndCall(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl EndCall {
    /// Wraps a call, to make it once.
    pub fn new(call: impl FnOnce() + Send + 'static) -> Self {
        Self(Mutex::new(Some(Box::new(call))))
    }

    /// Makes the call, unless it has been made.
    pub fn call(&self) {
        // Without the lock: the call may drop its `EndWatch`, or show it.
        let call = self.lock().take();
        if let Some(call) = call {
            call();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<dyn FnOnce() + Send>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for EndCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndCall").finish_non_exhaustive()
    }
}

impl Drop for Completer {
    #[inline]
    fn drop(&mut self) {
        if let Some(sink) = self.sink.take() {
            drop_unused(sink, self.tag, self.token);
        }
    }
}

/// Answers for a dropped completer, unless its message has been taken by an encoder.
#[cold]
#[inline(never)]
fn drop_unused(sink: Arc<dyn CompletionSink>, tag: Tag, token: u64) {
    if !taken::is_taken(&sink, tag, token) {
        sink.complete_dropped(tag, token);
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

/// The function that [`Completer::from_fn`] calls with the answer.
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

    fn pid(&self) -> Option<Pid> {
        Some(self.pid)
    }

    fn is_cancelled(&self, _: u64) -> bool {
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

    /// A process with an end that the test chooses.
    #[derive(Default)]
    struct Mortal(Mutex<Option<Vec<Weak<EndCall>>>>);

    impl CompletionSink for Mortal {
        fn complete(self: Arc<Self>, _: Tag, _: u64, _: Result<Payload, CommandError>) {}

        fn pid(&self) -> Option<Pid> {
            "{test|1}".parse().ok()
        }

        fn is_cancelled(&self, _: u64) -> bool {
            self.0.lock().unwrap().is_none()
        }

        fn on_end(self: Arc<Self>, _: u64, call: Weak<EndCall>) -> bool {
            let mut calls = self.0.lock().unwrap();
            calls.as_mut().map(|calls| calls.push(call)).is_some()
        }
    }

    // pins: P12
    #[test]
    fn a_call_is_made_once_unless_it_is_taken_back_or_too_late() {
        let mortal = Arc::new(Mortal(Mutex::new(Some(Vec::new()))));
        let completer = Completer::new(mortal.clone(), 9, 1);
        let (sender, receiver) = channel();
        let on_end = |number: u32| {
            let sender = sender.clone();
            completer.on_end(move || sender.send(number).unwrap())
        };
        let (first, second, third) = (on_end(1).unwrap(), on_end(2).unwrap(), on_end(3));
        drop(second);
        let calls = mortal.0.lock().unwrap().take().unwrap();
        for _ in 0..2 {
            let calls = calls.iter().filter_map(Weak::upgrade);
            calls.for_each(|call| call.call());
        }
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [1, 3]);
        assert!(on_end(4).is_none());
        assert_eq!(format!("{first:?}"), "EndWatch { is_called: true }");
        drop((first, third));
        assert_eq!(receiver.try_iter().count(), 0);
    }

    // pins: P12
    #[test]
    fn a_call_may_drop_its_own_watch() {
        let mortal = Arc::new(Mortal(Mutex::new(Some(Vec::new()))));
        let completer = Completer::new(mortal.clone(), 9, 1);
        let kept = Arc::new(Mutex::new(None));
        let own = Arc::clone(&kept);
        let watch = completer.on_end(move || drop(own.lock().unwrap().take()));
        *kept.lock().unwrap() = watch;
        let calls = mortal.0.lock().unwrap().take().unwrap();
        calls[0].upgrade().unwrap().call();
        assert!(kept.lock().unwrap().is_none() && calls[0].upgrade().is_none());
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
