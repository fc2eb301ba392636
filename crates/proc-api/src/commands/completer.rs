//! The right and the duty to answer a yield.

use super::{CommandError, Completion, Tag};
use crate::raw::{First, Others, apart, join};
use crate::values::{BoxError, Payload, Pid};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A scheduler's side of a [`Completer`].
pub trait CompletionSink: Send + Sync {
    /// Takes the one result of the yield that its token names.
    fn complete(self: Arc<Self>, tag: Tag, token: u64, result: Result<Payload, CommandError>);

    /// As [`complete`](Self::complete) with a payload, whose parts come in registers.
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

    /// The completer of the yield was dropped unused, which completes the yield with
    /// [`CommandError::Dropped`].
    fn complete_dropped(self: Arc<Self>, tag: Tag, token: u64) {
        self.complete(tag, token, Err(CommandError::Dropped));
    }

    /// The process that waits for the completion, if it is one.
    fn pid(&self) -> Option<Pid>;

    /// The number of that process's scheduler: two schedulers may have processes with one PID.
    /// Zero where nothing is known of a scheduler.
    #[doc(hidden)]
    fn scheduler(&self) -> u64 {
        0
    }

    /// Whether that process has been asked to finish, is to take no further step, or has ended, or
    /// has taken the yield back.
    fn is_cancelled(&self, token: u64) -> bool;

    /// Has the call made when that process has ended, or has taken the yield back, if the call is
    /// still there then. `false` when that is so already. By default it never is.
    fn on_end(self: Arc<Self>, token: u64, call: Weak<EndCall>) -> bool {
        let _ = (token, call);
        true
    }

    /// Has a worker make the call between two steps of that process, behind what has arrived, or
    /// drop the call when the process ends before. Gives it back when the process has ended, or is
    /// none, as by default.
    #[doc(hidden)]
    fn between_steps(self: Arc<Self>, call: Box<StepsCall>) -> Result<(), Box<StepsCall>> {
        Err(call)
    }

    /// It is about to be used: the processor may fetch it from memory meanwhile.
    #[doc(hidden)]
    fn prefetch(&self) {}
}

/// A call that is made between two steps of a process.
#[doc(hidden)]
pub type StepsCall = dyn FnOnce() + Send;

/// The right, and the duty, to answer one yield: consumed by answering.
///
/// Dropping it unused answers with [`CommandError::Dropped`]. It may move to any thread, and be
/// kept for any time. An answer to a process that has ended is dropped and counted.
///
/// A completer keeps memory of its process alive. Code that keeps it for long lets go of it when
/// [it is not wanted any longer](Self::on_end), or drops those that
/// [are cancelled](Self::is_cancelled)
/// from time to time.
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
                    sink.complete(self.tag, self.token, result);
                }
            }
        }
    }

    #[inline]
    fn complete_with(mut self, payload: Payload) {
        if let Some(sink) = self.sink.take() {
            let (tag, token) = (self.tag, self.token);
            apart(payload, |first, others| {
                sink.complete_with(tag, token, first, others);
            });
        }
    }

    /// The process that waits for the answer; `None` when the answer goes to code outside of any
    /// process.
    #[must_use]
    pub fn pid(&self) -> Option<Pid> {
        self.sink.as_ref().and_then(|sink| sink.pid())
    }

    /// As [`pid`](Self::pid), and the number of the process's scheduler.
    #[doc(hidden)]
    #[must_use]
    pub fn asker(&self) -> Option<(Pid, u64)> {
        let sink = self.sink.as_ref()?;
        Some((sink.pid()?, sink.scheduler()))
    }

    /// The tag that the process gave the yield.
    #[must_use]
    pub fn tag(&self) -> Tag {
        self.tag
    }

    /// Whether the work may be given up: the process has been asked to finish, is to take no
    /// further step, or has ended; or it has [taken the yield back](crate::StepOutput::cancel).
    /// Once `true`, it stays `true`. Never blocks, but for a lock that is held for O(1), where the
    /// process takes yields back.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        let sink = self.sink.as_ref();
        sink.is_none_or(|sink| sink.is_cancelled(self.token))
    }

    /// Has `call` called once when the process has ended, or has
    /// [taken the yield back](crate::StepOutput::cancel), so that code that keeps the completer can
    /// drop it. `None`, and no call, when the process has ended already.
    ///
    /// A process that has only been asked to finish may still wait for the answer. The thread that
    /// ends the process makes the call, so it has to be short. A panic in it is contained. Dropping
    /// the [`EndWatch`] takes the call back, unless it is being made at that moment. O(1),
    /// amortised. Never blocks, but for a lock that is held for O(1).
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

    /// What answers go to.
    #[doc(hidden)]
    #[must_use]
    pub fn sink(&self) -> Option<Arc<dyn CompletionSink>> {
        self.sink.clone()
    }

    /// Before many are used one after the other: the waits for their memory overlap then.
    #[doc(hidden)]
    #[inline]
    pub fn prefetch(&self) {
        if let Some(sink) = &self.sink {
            sink.prefetch();
        }
    }

    /// Has the answer go through that sink, which is made of the completer's own and its token: for
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

    /// What it has been made of.
    pub(super) fn into_parts(mut self) -> (Option<Arc<dyn CompletionSink>>, Tag, u64) {
        (self.sink.take(), self.tag, self.token)
    }

    /// The scheduler has told the keeper of the completer that the yield is not wanted any longer:
    /// nothing completes it.
    #[doc(hidden)]
    pub fn forget(mut self) {
        drop(self.sink.take());
    }
}

/// Keeps a call alive that is made when an answer is wanted no longer; see
/// [`Completer::on_end`]. Dropping it
/// takes the call back.
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

/// What is called once when a process has ended, or has taken a yield back; for schedulers.
pub struct EndCall(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl EndCall {
    /// What makes the call once.
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

    /// A process that can be ended.
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
