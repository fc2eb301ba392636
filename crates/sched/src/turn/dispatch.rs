//! Handing yields to handlers.
//!
//! While a handler is on this thread's stack, the fate of its completer there is caught instead of
//! going through the mailbox: an answer needs no atomic operation then. And when the handler drops
//! its completer and returns an error, or panics, the completion reports this cause and not the
//! drop.
//!
//! A yield of a timer goes straight to the timers, without a handler. The handler of timers is
//! called when the moment has come, for wrong values, and for a scheduler that has halted.
//!
//! A caught answer is the last of the pending items. When nothing is in front, the next step of the
//! turn takes it, and its yield never joins the outstanding ones.

use super::conclude::{Answer, Failure};
use super::{Dispatch, Turn};
use crate::base::contain::{contain, contain_and_report, discard, discard_each};
use crate::base::stats::Counters;
use crate::probe::{Carry, Probe};
use crate::process::asked::Asked;
use crate::process::dropped;
use crate::runtime::cell::{Core, ProcessCell, Task};
use crate::runtime::item::{CommandResult, of_completion};
use crate::runtime::turn_place::TurnPlace;
use ganger_proc_api::internal::RunnerOutput as _;
use ganger_proc_api::internal::{First, Others, StepsCall, join};
use ganger_proc_api::{
    CommandError, CommandId, Completer, CompletionSink, EndCall, Instant, Payload, Pid, StepOutput,
    Tag, Yield,
};
#[cfg(feature = "sim")]
use ganger_sync::scoped;
use ganger_time::internal::{ShardId, due};
use std::cell::Cell;
use std::sync::{Arc, Weak};
use std::{mem, ptr};

thread_local! {
    /// The innermost of the handlers' calls on this thread's stack, or null. Without a destructor:
    /// a destructor of another thread-local may drop a completer.
    static CURRENT: Cell<*const Call> = const { Cell::new(ptr::null()) };
}

/// A handler on this thread's stack.
struct Call {
    /// The process whose yield it is; only compared.
    cell: *const ProcessCell,
    token: u64,
    answer: Cell<Answer>,
}

/// Returns the handler on this thread's stack, if the process and the token belong to its yield.
///
/// # Safety
/// The result is not used after the caller has returned.
unsafe fn current<'a>(cell: &ProcessCell, token: u64) -> Option<&'a Call> {
    // SAFETY: null, or a call on this thread's stack, whose handler has not returned: `leave`
    // restores the former pointer.
    unsafe { CURRENT.get().as_ref() }.filter(|call| ptr::eq(call.cell, cell) && call.token == token)
}

/// Returns whether a handler is on this thread's stack.
#[cfg(feature = "sim")]
pub(crate) fn is_inside() -> bool {
    !CURRENT.get().is_null()
}

/// Calls `f` as if no handler were on this thread's stack.
#[cfg(feature = "sim")]
pub(crate) fn outside<R>(f: impl FnOnce() -> R) -> R {
    scoped(&CURRENT, ptr::null(), f)
}

impl CompletionSink for ProcessCell {
    fn complete(self: Arc<Self>, tag: Tag, token: u64, result: CommandResult) {
        self.take_answer(tag, token, result);
    }

    fn complete_with<'id>(
        self: Arc<Self>,
        tag: Tag,
        token: u64,
        first: First<'id, Payload>,
        others: Others<'id, Payload>,
    ) {
        self.take_answer(tag, token, Ok(join(first, others)));
    }

    /// Notes the drop of the completer of the handler on this thread's stack. The completion of
    /// another completer goes through the mailbox.
    fn complete_dropped(self: Arc<Self>, tag: Tag, token: u64) {
        // SAFETY: it is used here only.
        if let Some(call) = unsafe { current(&self, token) } {
            self.shared.probe.answered();
            return call.settle(Answer::Dropped, self);
        }
        if let Err(this) = dropped::put_aside(self, tag, token) {
            this.shared.probe.answered();
            this.complete_behind(of_completion(tag, token, Err(CommandError::Dropped)));
        }
    }

    fn pid(&self) -> Option<Pid> {
        Some(self.pid())
    }

    fn scheduler(&self) -> u64 {
        self.shared.number
    }

    fn is_cancelled(&self, token: u64) -> bool {
        self.state.is_unwanted()
            || self.state.takes_back() && self.shared.revoked.contains(self.pid().id(), token)
    }

    fn on_end(self: Arc<Self>, token: u64, call: Weak<EndCall>) -> bool {
        self.call_at_end(token, call)
    }

    fn between_steps(self: Arc<Self>, call: Box<StepsCall>) -> Result<(), Box<StepsCall>> {
        self.call_between_steps(call)
    }

    fn prefetch(&self) {
        Self::prefetch(ptr::from_ref(self));
    }
}

impl ProcessCell {
    /// Keeps the completion when it belongs to the handler on this thread's stack. Otherwise the
    /// completion goes through the mailbox. So does a late answer, behind the items already sent to
    /// the process by the handler.
    #[inline(always)]
    fn take_answer(self: Task, tag: Tag, token: u64, result: CommandResult) {
        // Into its node at once: so the result stays in registers until then.
        let answer = of_completion(tag, token, result);
        self.shared.probe.answered();
        // SAFETY: it is used here only.
        match unsafe { current(&self, token) } {
            Some(call) if !self.state.has_events() => {
                self.shared.probe.answered_inline(self.pid(), tag, token);
                call.settle(Answer::Given(answer), self);
            }
            call => {
                if let Some(call) = call {
                    call.answer.set(Answer::Sent);
                }
                self.complete_behind(answer);
            }
        }
    }
}

impl<'a, P: TurnPlace<'a>> Turn<'_, P> {
    /// Dispatches the yields in `out`, in order.
    #[inline(always)]
    pub(super) fn dispatch(&mut self, out: &mut StepOutput) {
        let only = out.only_yield();
        if only.is_some() {
            dispatch_one(self.place, self.task, self.core, self.counters, only);
        } else if out.has_more() {
            self.apart().dispatch_all(out);
        }
    }

    /// Dispatches the parts of `out`: yields taken back come first.
    #[inline(never)]
    fn dispatch_all(mut self, out: &mut StepOutput) {
        for tag in out.drain_cancelled() {
            self.take_back(tag);
        }
        for it in out.drain_yields() {
            let place = &mut Some(it);
            dispatch_one(self.place, self.task, self.core, self.counters, place);
        }
    }

    /// Takes back the yields with the tag, and notifies their handlers.
    #[cold]
    #[inline(never)]
    fn take_back(&mut self, tag: Tag) {
        self.shared.probe.revoked(self.task.pid(), tag);
        let ProcessCell { state, shared, .. } = &**self.task;
        let (pid, marks) = (self.task.pid(), (state, &shared.revoked));
        let (calls, tickets) = self.core.take_back(tag, pid, marks, self.counters);
        self.shared.forget_timers(&tickets);
        for call in calls.iter().filter_map(Weak::upgrade) {
            contain_and_report("on_end", self.task.pid(), self.counters, || call.call());
        }
    }
}

/// Dispatches a yield. Its parts are arguments, to be passed in registers.
///
/// The yield stays where it is until the handler is called: it has just been written, and would
/// have to be waited for if it were moved sooner.
#[inline(never)]
fn dispatch_one<'a, P: TurnPlace<'a>>(
    place: P,
    task: &Task,
    core: &mut Core,
    counters: &Counters,
    it: &mut Option<Yield>,
) {
    Dispatch {
        place,
        task,
        core,
        counters,
    }
    .one(it);
}

impl<'a, P: TurnPlace<'a>> Dispatch<'_, P> {
    #[inline(always)]
    fn one(mut self, place: &mut Option<Yield>) {
        let Some(Yield { command, tag }) = place else {
            return;
        };
        let (id, tag) = (command.id, *tag);
        self.place.count(&self.counters.yields);
        let token = self.core.yields.number();
        self.task
            .shared
            .probe
            .yielded(self.task.pid(), id, tag, token);
        if let Some(cause) = self.task.shared.carrier().own_cause() {
            self.core.causes().keep(token, cause);
        }
        // Items that arrived before the answer stay before it.
        self.task.receive(self.core);
        let now = || Instant::from_nanos(self.task.shared.now());
        if let Some(moments) = due(command, now)
            && self.sleep(moments, tag, token, self.asked(id))
        {
            *place = None;
            return;
        }
        let call = Call {
            cell: Arc::as_ptr(self.task),
            token,
            answer: Cell::new(Answer::Later),
        };
        let outer = CURRENT.replace(&raw const call);
        let sink = self.lend_self_ref();
        let Some(handler) = self.place.handler(id) else {
            discard_unhandled(Completer::new(sink, tag, token), place, self.counters);
            let _dropped = self.leave(call, outer);
            return self.conclude((id, tag, token), Answer::Dropped, Some(Failure::Unknown));
        };
        let returned = contain(|| handler.handle_in_place(place, sink, token));
        let answer = self.leave(call, outer);
        let failure = match returned {
            Ok(Ok(())) => {
                if let Answer::Given(answer) = answer {
                    return self.core.push_answer(tag, token, answer);
                }
                match answer {
                    Answer::Dropped => None,
                    _ => return self.core.yields.insert(token, tag, self.asked(id)),
                }
            }
            Ok(Err(error)) => Some(Failure::Error(error)),
            Err(message) => Some(Failure::Panic(message)),
        };
        self.conclude((id, tag, token), answer, failure);
    }

    /// Has a timer complete the yield. Returns `false`, and does nothing, when the moment has come,
    /// or the scheduler has halted.
    fn sleep(&mut self, moments: (Instant, Instant), tag: Tag, token: u64, asked: Asked) -> bool {
        let shard = self.place.queue().map(|queue| queue.index);
        let shard = shard.map_or(ShardId::OUTSIDE, ShardId::of_worker);
        let shards = self.task.shared.timing.timers.shards();
        let completer = || {
            // SAFETY: `core` is the core of `task`.
            let sink = unsafe { self.task.take_self_ref(self.core) };
            let sink = sink.unwrap_or_else(|| Arc::clone(self.task));
            Completer::new(sink, tag, token)
        };
        let ticket = shards.sleep(shard, moments, completer);
        if let Some(ticket) = ticket {
            self.core.yields.insert_held(token, tag, asked, ticket);
        }
        ticket.is_some()
    }

    /// Returns the entry of a yield for readers from outside.
    #[inline(always)]
    pub(super) fn asked(&self, id: CommandId) -> Asked {
        Asked::new(id, || self.task.shared.timing.time.nanos())
    }

    /// Lends the completer a reference to the process: the core's own, which stays with the core.
    /// After the call, [`leave`](Self::leave) decides which of the two holds it.
    fn lend_self_ref(&mut self) -> Task {
        if !self.core.has_self_ref {
            self.core.has_self_ref = true;
            mem::forget(Arc::clone(self.task));
        }
        // SAFETY: the core's reference has been counted, and does not go before `leave`, which
        // gives it up if the completer's has not come back: see `Call::settle`.
        unsafe { Arc::from_raw(Arc::as_ptr(self.task)) }
    }

    /// Leaves the handler's call. Returns the fate of the completer.
    fn leave(&mut self, call: Call, outer: *const Call) -> Answer {
        CURRENT.set(outer);
        let answer = call.answer.into_inner();
        if let Answer::Later | Answer::Sent = answer {
            // The completer has it, or has given it up.
            self.core.has_self_ref = false;
        }
        answer
    }
}

impl Call {
    /// Settles the yield of a completer that has been used or dropped. Its reference to the process
    /// comes back: the core has it.
    fn settle(&self, answer: Answer, task: Task) {
        // There has been neither: a completer is used once.
        mem::forget(self.answer.replace(answer));
        mem::forget(task);
    }
}

/// Drops the parts of a command without a handler.
#[cold]
#[inline(never)]
fn discard_unhandled(completer: Completer, place: &mut Option<Yield>, counters: &Counters) {
    let pid = completer.pid();
    discard(pid, counters, completer);
    if let Some(it) = mem::take(place) {
        discard_each(pid, counters, it.command.payloads);
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests;
