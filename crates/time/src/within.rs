//! Commands with a deadline: the answer, or a time-out.
//!
//! **Problem.** A process asks another process, which may never answer. The yield must complete
//! once: by the answer, or by a timer. The later of the two must leave nothing behind.
//!
//! **Rejected.** A second yield for the deadline: the process would have to match the two yields,
//! and to take the later one back.
//!
//! **Protocol.** The command is carried out with a completer of its own, whose sink is a
//! [`Within`]. The sink keeps the completer of the yield, and has the timer. The first of the
//! answer, the timer and the end of the yield takes the yield's completer out, and takes the timer
//! away.

use crate::entry::OnTime;
use crate::shards::{NotSet, Shards, TimerKey};
use ganger_proc_api::internal::StepsCall;
use ganger_proc_api::{
    Command, CommandError, Completer, CompletionSink, EndCall, EndWatch, Payload, Pid, Tag,
};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// A yield that waits for an answer until its time is over.
struct Within {
    shards: Arc<Shards>,
    state: Mutex<State>,
}

enum State {
    Waiting(Waiting),
    /// The yield has completed, or is unwanted.
    Over,
}

struct Waiting {
    completer: Completer,
    /// Where the timer is, once it has been set.
    timer: Option<TimerKey>,
    /// Tells of the end of the yield.
    watch: Option<EndWatch>,
    /// The calls of code that keeps the completer of the command.
    calls: Vec<Weak<EndCall>>,
    /// The command is being carried out: an error tells why no answer comes.
    is_starting: bool,
    is_dropped: bool,
}

/// Has the command carried out, for the yield of `completer`.
pub(crate) fn ask(shards: &Arc<Shards>, command: Command, time: Duration, completer: Completer) {
    let (tag, now) = (completer.tag(), shards.now());
    let within = Arc::new(Within {
        shards: Arc::clone(shards),
        state: Mutex::new(State::Waiting(Waiting {
            completer,
            timer: None,
            watch: None,
            calls: Vec::new(),
            is_starting: true,
            is_dropped: false,
        })),
    });
    let answers = Completer::new(within.clone(), tag, 0);
    let carried_out = shards.carry_out(command, answers);
    let mut state = within.lock();
    let State::Waiting(waiting) = &mut *state else {
        return;
    };
    waiting.is_starting = false;
    let failure = match carried_out {
        Err(error) => Some(CommandError::Failed(error)),
        Ok(()) => waiting.is_dropped.then_some(CommandError::Dropped),
    };
    if let Some(failure) = failure {
        drop(state);
        return within.finish(Err(failure));
    }
    let weak = Arc::downgrade(&within);
    waiting.watch = waiting.completer.on_end(move || {
        if let Some(within) = weak.upgrade() {
            within.give_up();
        }
    });
    let is_wanted = waiting.watch.is_some();
    drop(state);
    if !is_wanted {
        return within.give_up();
    }
    let timer = match shards.call_at_in_turn(now.after(time), within.clone()) {
        Ok(timer) => timer,
        Err(NotSet::Due) => return within.fire(),
        Err(NotSet::Halted) => return,
    };
    let mut state = within.lock();
    match &mut *state {
        State::Waiting(waiting) => waiting.timer = Some(timer),
        State::Over => {
            drop(state);
            shards.take_away(Some(timer));
        }
    }
}

impl OnTime for Within {
    fn fire(self: Arc<Self>) {
        self.finish(Err(CommandError::Timeout));
    }
}

impl Within {
    fn finish(&self, result: Result<Payload, CommandError>) {
        if let Some((completer, calls)) = self.end() {
            completer.finish(result);
            tell(&calls);
        }
    }

    /// Ends the waiting: the yield is unwanted.
    fn give_up(&self) {
        if let Some((completer, calls)) = self.end() {
            drop(completer);
            tell(&calls);
        }
    }

    /// Ends the waiting, if it has not ended.
    fn end(&self) -> Option<(Completer, Vec<Weak<EndCall>>)> {
        let State::Waiting(waiting) = mem::replace(&mut *self.lock(), State::Over) else {
            return None;
        };
        self.shards.take_away(waiting.timer);
        drop(waiting.watch);
        Some((waiting.completer, waiting.calls))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tell(calls: &[Weak<EndCall>]) {
    calls
        .iter()
        .filter_map(Weak::upgrade)
        .for_each(|it| it.call());
}

impl CompletionSink for Within {
    fn complete(self: Arc<Self>, _: Tag, _: u64, result: Result<Payload, CommandError>) {
        // The code that keeps the completer has used it, so it needs no call.
        if let Some((completer, _)) = self.end() {
            completer.finish(result);
        }
    }

    fn complete_dropped(self: Arc<Self>, _: Tag, _: u64) {
        if let State::Waiting(waiting) = &mut *self.lock()
            && waiting.is_starting
        {
            waiting.is_dropped = true;
            return;
        }
        // The completer of the yield knows whether the process that drops it is about to end.
        if let Some((completer, _)) = self.end() {
            drop(completer);
        }
    }

    fn pid(&self) -> Option<Pid> {
        match &*self.lock() {
            State::Waiting(waiting) => waiting.completer.pid(),
            State::Over => None,
        }
    }

    fn scheduler(&self) -> u64 {
        match &*self.lock() {
            State::Waiting(waiting) => waiting.completer.asker().map_or(0, |it| it.1),
            State::Over => 0,
        }
    }

    fn is_cancelled(&self, _: u64) -> bool {
        match &*self.lock() {
            State::Waiting(waiting) => waiting.completer.is_cancelled(),
            State::Over => true,
        }
    }

    fn on_end(self: Arc<Self>, _: u64, call: Weak<EndCall>) -> bool {
        match &mut *self.lock() {
            State::Waiting(waiting) => {
                waiting.calls.push(call);
                true
            }
            State::Over => false,
        }
    }

    fn between_steps(self: Arc<Self>, call: Box<StepsCall>) -> Result<(), Box<StepsCall>> {
        let sink = match &*self.lock() {
            State::Waiting(waiting) => waiting.completer.sink(),
            State::Over => None,
        };
        match sink {
            Some(sink) => sink.between_steps(call),
            None => Err(call),
        }
    }
}
