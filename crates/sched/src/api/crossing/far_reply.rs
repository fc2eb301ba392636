//! The replies of askers at other nodes.
//!
//! **Protocol.** The answering node has a number for each reply that has come, and its session
//! keeps a [`FarReply`] for it.
//! 1. The answer, and the drop of the reply, take the number away, and go to the session's
//!    [`Answers`], once.
//! 2. If the asker no longer wants the answer, or the session ends, the session says so
//!    ([`FarReply::give_up`]): the holder of the reply sees it, and no answer goes out.

use crate::base::contain::contain;
use crate::process::dropped;
use ganger_proc_api::{CommandError, Completer, CompletionSink, EndCall, Payload, Pid, Tag};
use ganger_sync::sync::{Mutex, lock};
use std::fmt;
use std::mem;
use std::sync::{Arc, Weak};

/// Where the answers to askers at other nodes go: a session.
pub trait Answers: Send + Sync + 'static {
    /// Takes the only answer to the reply with this number. Never blocks. Called by the process
    /// that answers, or at its end; not after [`FarReply::give_up`].
    ///
    /// No answer comes where it is an error: [`CommandError::Dropped`], or
    /// [`CommandError::Ended`] with the end of the process that had the reply.
    fn answer(&self, number: u64, answer: Result<Payload, CommandError>);
}

/// The reply of an asker at another node, as its session has it.
///
/// ```
/// use ganger_proc_api::{CommandError, Payload, Reply};
/// use ganger_sched::crossing::{Answers, FarReply};
/// use std::sync::{Arc, Mutex};
///
/// #[derive(Default)]
/// struct Session(Mutex<Vec<(u64, Payload)>>);
///
/// impl Answers for Session {
///     fn answer(&self, number: u64, answer: Result<Payload, CommandError>) {
///         self.0.lock().unwrap().push((number, answer.unwrap()));
///     }
/// }
///
/// let session = Arc::new(Session::default());
/// let (_, completer) = FarReply::new(session.clone(), 7, None);
/// Reply::<u64>::new(completer).complete(42);
/// assert_eq!(session.0.lock().unwrap()[0].0, 7);
///
/// let (far, completer) = FarReply::new(session, 8, None);
/// let reply = Reply::<u64>::new(completer);
/// assert!(!reply.is_cancelled());
/// far.give_up();
/// assert!(reply.is_cancelled());
/// ```
pub struct FarReply {
    /// The holder's completer keeps it.
    sink: Weak<Sink>,
}

impl FarReply {
    /// Makes the completer of a reply that has come with this number, and its other end. `asker` is
    /// the waiting process.
    pub fn new(answers: Arc<dyn Answers>, number: u64, asker: Option<Pid>) -> (Self, Completer) {
        let state = Mutex::new(State::Open(Vec::new()));
        let sink = Arc::new(Sink {
            answers,
            number,
            asker,
            state,
        });
        let far = Self {
            sink: Arc::downgrade(&sink),
        };
        (far, Completer::new(sink, 0, 0))
    }

    /// Gives up an unwanted answer: the asker has taken its question back or has ended, or the
    /// session ends. The holder's reply is cancelled from then on, and the holder's calls of
    /// [`Completer::on_end`] are made.
    pub fn give_up(self) {
        let Some(sink) = self.sink.upgrade() else {
            return;
        };
        let State::Open(calls) = sink.settle(State::GivenUp) else {
            return;
        };
        for call in calls.iter().filter_map(Weak::upgrade) {
            drop(contain(|| call.call()));
        }
    }
}

impl fmt::Debug for FarReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.sink.upgrade().map(|it| it.number);
        f.debug_tuple("FarReply").field(&number).finish()
    }
}

struct Sink {
    answers: Arc<dyn Answers>,
    number: u64,
    asker: Option<Pid>,
    state: Mutex<State>,
}

enum State {
    /// With the calls for the moment when the answer is given up.
    Open(Vec<Weak<EndCall>>),
    Answered,
    GivenUp,
}

impl Sink {
    /// Leaves `Open`. Returns the state before.
    fn settle(&self, next: State) -> State {
        let mut state = lock(&self.state);
        match &*state {
            State::Open(_) => mem::replace(&mut *state, next),
            State::Answered => State::Answered,
            State::GivenUp => State::GivenUp,
        }
    }
}

impl CompletionSink for Sink {
    fn complete(self: Arc<Self>, _: Tag, _: u64, result: Result<Payload, CommandError>) {
        if let State::Open(_) = self.settle(State::Answered) {
            self.answers.answer(self.number, result);
        }
    }

    fn complete_dropped(self: Arc<Self>, tag: Tag, token: u64) {
        if let Err(this) = dropped::put_aside(self, tag, token) {
            this.complete(tag, token, Err(CommandError::Dropped));
        }
    }

    fn pid(&self) -> Option<Pid> {
        self.asker
    }

    fn is_cancelled(&self, _: u64) -> bool {
        matches!(*lock(&self.state), State::GivenUp)
    }

    fn on_end(self: Arc<Self>, _: u64, call: Weak<EndCall>) -> bool {
        match &mut *lock(&self.state) {
            State::Open(calls) => calls.push(call),
            State::Answered => {}
            State::GivenUp => return false,
        }
        true
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    impl Answers for Mutex<Sender<(u64, String)>> {
        fn answer(&self, number: u64, answer: Result<Payload, CommandError>) {
            lock(self).send((number, format!("{answer:?}"))).unwrap();
        }
    }

    fn reply(number: u64) -> (FarReply, Completer, Receiver<(u64, String)>) {
        let (tell, told) = channel();
        let (far, completer) = FarReply::new(Arc::new(Mutex::new(tell)), number, None);
        (far, completer, told)
    }

    // pins: B18
    #[test]
    fn an_answer_goes_out_once_and_makes_no_call() {
        let (far, completer, told) = reply(7);
        let watch = completer.on_end(|| panic!("it is answered"));
        assert!(watch.is_some() && !completer.is_cancelled());
        completer.complete(42_u64);
        far.give_up();
        assert_eq!(told.iter().collect::<Vec<_>>(), [(7, "Ok(42)".to_owned())]);
        // So does the drop, and a scope of this thread gives it the cause.
        let (_far, completer, told) = reply(8);
        let scope = dropped::open();
        drop(completer);
        assert!(told.try_recv().is_err());
        dropped::answer(|| CommandError::Timeout);
        drop(scope);
        assert_eq!(
            told.iter().collect::<Vec<_>>(),
            [(8, "Err(Timeout)".to_owned())]
        );
        let (_far, completer, told) = reply(9);
        drop(completer);
        assert_eq!(
            told.iter().collect::<Vec<_>>(),
            [(9, "Err(Dropped)".to_owned())]
        );
    }

    // pins: B18
    #[test]
    fn an_answer_that_is_given_up_does_not_go_out() {
        let (far, completer, told) = reply(7);
        let (tell, called) = channel();
        let call = |n: u64| {
            let tell = tell.clone();
            completer.on_end(move || tell.send(n).unwrap())
        };
        let (_first, second) = (call(1), call(2));
        drop(second);
        far.give_up();
        assert_eq!(called.try_iter().collect::<Vec<_>>(), [1]);
        assert!(completer.is_cancelled() && call(3).is_none());
        completer.complete(42_u64);
        assert_eq!(told.iter().count(), 0);
    }
}
