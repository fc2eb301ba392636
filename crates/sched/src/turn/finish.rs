//! The end of a process: the state and the mailbox first, then `close`, then the PID, then the
//! waiters.

use crate::base::clock::nanos;
use crate::base::contain::{
    contain_and_report, discard, discard_each, discard_in_place, log, text_of_chain,
};
use crate::base::stats::Counters;
use crate::probe::{Decide, Decider, Probe};
use crate::process::dropped;
use crate::process::exit_actions::{ExitActions, ExitRequest};
use crate::process::failed::Failed;
use crate::process::outstanding::Outstanding;
use crate::process::process_box::ProcessBox;
use crate::reports::dead_letters::{DeadLetter, DeadReason};
use crate::reports::life::LifeChange;
use crate::runtime::cell::{Core, Task};
use crate::runtime::ending::{Ending, Stage};
use crate::runtime::item::{Item, count, seen};
use crate::runtime::local::{self, LocalQueue};
use crate::runtime::shared::Shared;
use crate::runtime::token::Token;
use ganger_mpsc::Batch;
use ganger_proc_api::{CommandError, EndKind, Event, ExitCause, ExitReason, Instant, Process};
use ganger_sync::failing;
use std::mem::{self, ManuallyDrop};
use std::ops::DerefMut;
use std::sync::Arc;
use tracing::Level;

/// Closes a process, the task's present or former one, and drops it.
pub(crate) fn close(
    mut process: impl DerefMut<Target = dyn Process>,
    task: &Task,
    counters: &Counters,
) {
    task.shared.probe.closing(task.pid());
    contain_and_report("close", task.pid(), counters, || process.close());
    discard(task.pid(), counters, process);
}

/// Empties the closed mailbox of its left items. Adds the exit actions among them to the others,
/// and drops and counts the rest. Closes and drops the process, if any.
#[cold]
#[inline(never)]
pub(crate) fn take_down(
    process: Option<ProcessBox>,
    mut items: Batch<Item>,
    actions: &mut Option<Box<ExitActions>>,
    task: &Task,
    counters: &Counters,
) {
    if items.iter().any(|item| matches!(item, Item::Exit(_))) {
        let requests = take_requests(&mut items);
        let actions = actions.get_or_insert_default();
        actions.apply_all(requests, counters);
    }
    if items
        .iter()
        .any(|item| matches!(item, Item::HeldByTimer(_)))
    {
        settle_held(&mut items, task);
    }
    task.shared.probe.dropping(task.pid(), seen(&items));
    let (messages, completions) = count(&items);
    counters.undelivered.add(messages);
    counters.stale_completions.add(completions);
    if messages > 0 && task.shared.config.dead_letters.is_some() {
        tell_of_dead(&items, task, counters);
    }
    discard_each(task.pid(), counters, items);
    if let Some(process) = process {
        close(process, task, counters);
    }
}

/// Turns held messages into events, to be dropped like other messages, unless they were taken back.
fn settle_held(items: &mut Batch<Item>, task: &Task) {
    let mut rest = Batch::new();
    for item in mem::take(items) {
        match item {
            Item::HeldByTimer(ticket) => {
                if let Some(envelope) = task.shared.take_held(ticket, |_| true) {
                    let event = Event::Message(envelope.message);
                    task.shared.probe.arrived_next(task.pid(), &event);
                    rest.push_back(Item::Event(event));
                }
            }
            item => rest.push_back(item),
        }
    }
    *items = rest;
}

/// Tells the sink of the messages among these, which no step has taken.
#[cold]
fn tell_of_dead(items: &Batch<Item>, task: &Task, counters: &Counters) {
    let Some(sink) = &task.shared.config.dead_letters else {
        return;
    };
    let time = Decider::time().unwrap_or_else(|| task.shared.timing.time.read());
    let at = Instant::from_nanos(nanos(time));
    let messages = items.iter().filter_map(|item| match item {
        Item::Event(event) => event.message(),
        _ => None,
    });
    for message in messages {
        let letter = DeadLetter::new(
            DeadReason::Ended,
            message.source,
            task.pid(),
            message.topic,
            at,
        );
        contain_and_report("dead letter", task.pid(), counters, || {
            sink.dead_message(&letter, message);
        });
    }
}

fn take_requests(items: &mut Batch<Item>) -> Vec<ExitRequest> {
    let (mut requests, mut rest) = (Vec::new(), Batch::new());
    for item in mem::take(items) {
        match item {
            Item::Exit(request) => requests.push(request),
            item => rest.push_back(item),
        }
    }
    *items = rest;
    requests
}

/// Logs an ended process with the reason, where this is a mistake. An end with a report is no
/// warning.
fn log_end(task: &Task, how: &'static str, reason: &ExitReason, is_reported: bool) {
    match reason {
        ExitReason::Failed(error) if !is_reported => {
            log_failure(task, how, || text_of_chain(&**error));
        }
        ExitReason::Panicked(message) if !is_reported => {
            log_failure(task, how, || message.clone());
        }
        ExitReason::UpgradeFailed(error) if !is_reported => {
            log_failure(task, how, || text_of_chain(error));
        }
        _ => log(
            Level::DEBUG,
            || tracing::debug!(target: "ganger::sched", pid = %task.pid(), how, "ended"),
        ),
    }
}

#[cold]
#[inline(never)]
fn log_failure(task: &Task, how: &'static str, reason: impl Fn() -> Box<str>) {
    log(Level::WARN, || {
        tracing::warn!(
            target: "ganger::sched", pid = %task.pid(), method = %task.method, how,
            reason = %reason(),
            "ended"
        );
    });
}

/// Ends a process run by this thread, and its turn before the process counts as ended. Takes the
/// reason; without a reason, the process has been terminated. Work beyond a turn is put off.
pub(crate) fn finish(
    shared: &Shared,
    counters: &Counters,
    task: &Task,
    end: &mut Option<ExitReason>,
    queue: Option<&LocalQueue>,
    end_turn: impl FnOnce(),
) {
    let (terminated, rest) = task.complete();
    if terminated && matches!(end, Some(ExitReason::Done(_) | ExitReason::Cancelled(_))) {
        discard(task.pid(), counters, end.take());
    }
    let reason = end.get_or_insert(ExitReason::Terminated);
    let failed = task.failed(reason);
    if matches!(reason, ExitReason::Terminated) && shared.shutdown.is_terminating() {
        // The process has its names until it releases its resources.
        shared.shutdown.forced.add(|| task.stopped());
    }
    let mut items = Batch::new();
    // SAFETY: `complete` has been called by the owner of the run token, this thread, and no other
    // thread becomes its owner afterwards.
    let (process, actions, tickets) = unsafe {
        task.with_core(|core| {
            let tickets = core.yields.take_tickets();
            core.yields = Outstanding::default();
            drop(task.take_self_ref(core));
            (core.process.take(), core.take_events(&mut items), tickets)
        })
    };
    shared.forget_timers(&tickets);
    items.append(rest);
    // After a panic below, no action can be run any more. Otherwise this is empty in the end.
    let mut actions = ManuallyDrop::new(actions);
    // The place to continue the release, when it takes several turns.
    let mut next = None;
    failing::within(has_failed(reason), || {
        if items.is_empty() && actions.is_none() {
            shared.probe.dropping(task.pid(), seen(&items));
            if let Some(process) = process {
                close(process, task, counters);
            }
        } else {
            take_down(process, items, &mut actions, task, counters);
            let actions = actions.as_mut();
            next = actions.and_then(|it| it.release_some(0, task.pid(), counters));
        }
    });
    if task.origin.has_values() {
        drop_values(task, counters);
    }
    dropped::answer(|| CommandError::Ended(ExitCause::of(reason, text_of_chain)));
    if let Some(next) = next {
        let actions = ManuallyDrop::into_inner(actions).unwrap_or_default();
        put_off(task, end, Stage::Release(actions, next, failed), queue);
        return end_turn();
    }
    let (owned, failed) = go(shared, counters, task, reason, (&mut actions, failed));
    if let Some(actions) = ManuallyDrop::into_inner(actions) {
        let mut telling = actions.telling(|| ExitCause::of(reason, text_of_chain));
        let tell = || telling.go_on(task.pid(), counters);
        if failing::within(has_failed(reason), tell) {
            let owned = ManuallyDrop::into_inner(owned).map(|it| it as _);
            put_off(
                task,
                end,
                Stage::Tell(Box::new(telling), owned, failed),
                queue,
            );
            return end_turn();
        }
    }
    end_turn();
    give_reason(shared, counters, task, end, (owned, failed), queue);
}

/// Drops the inherited values of the process.
#[cold]
#[inline(never)]
pub(crate) fn drop_values(task: &Task, counters: &Counters) {
    discard(task.pid(), counters, task.origin.take());
}

/// Returns whether the process's data may be half changed.
fn has_failed(reason: &ExitReason) -> bool {
    !matches!(reason, ExitReason::Done(_) | ExitReason::Cancelled(_))
}

/// Continues an end that was put off.
#[cold]
#[inline(never)]
pub(crate) fn go_on_with_end(
    shared: &Shared,
    counters: &Counters,
    task: &Task,
    end: &mut Option<ExitReason>,
    queue: Option<&LocalQueue>,
    end_turn: impl FnOnce(),
) {
    // SAFETY: the process came from a queue, which handed its run token over.
    let ending = unsafe { task.with_core(Core::take_ending) };
    let Some(ending) = ending else {
        // A panic has come from code that must not panic.
        return end_turn();
    };
    let Ending { reason, stage } = *ending;
    let reason = end.insert(reason);
    let (mut telling, owned, failed) = match stage {
        Stage::Release(actions, from, failed) => {
            let mut actions = ManuallyDrop::new(Some(actions));
            let released = actions.as_mut();
            let next = failing::within(has_failed(reason), || {
                released.and_then(|it| it.release_some(from, task.pid(), counters))
            });
            dropped::answer(|| CommandError::Ended(ExitCause::of(reason, text_of_chain)));
            if let Some(next) = next {
                let actions = ManuallyDrop::into_inner(actions).unwrap_or_default();
                put_off(task, end, Stage::Release(actions, next, failed), queue);
                return end_turn();
            }
            let (owned, failed) = go(shared, counters, task, reason, (&mut actions, failed));
            let actions = ManuallyDrop::into_inner(actions).unwrap_or_default();
            let telling = actions.telling(|| ExitCause::of(reason, text_of_chain));
            (Box::new(telling), owned, failed)
        }
        Stage::Tell(telling, owned, failed) => {
            let owned = owned.and_then(|it| it.downcast().ok());
            (telling, ManuallyDrop::new(owned), failed)
        }
    };
    let tell = || telling.go_on(task.pid(), counters);
    if failing::within(has_failed(reason), tell) {
        let owned = ManuallyDrop::into_inner(owned).map(|it| it as _);
        put_off(task, end, Stage::Tell(telling, owned, failed), queue);
        return end_turn();
    }
    end_turn();
    give_reason(shared, counters, task, end, (owned, failed), queue);
}

/// Keeps the rest of an end, and queues the process behind others.
#[cold]
#[inline(never)]
fn put_off(task: &Task, end: &mut Option<ExitReason>, stage: Stage, queue: Option<&LocalQueue>) {
    let Some(reason) = end.take() else {
        unreachable!("there is one")
    };
    let ending = Box::new(Ending { reason, stage });
    // SAFETY: this thread owns the run token, and has ended the process.
    unsafe { task.with_core(|core| core.put_off(ending)) };
    // The thread that takes it from the queue sees it as terminated.
    task.state.mark_terminated();
    // Another thread may end the process, and drop it, before this thread has queued it.
    let shared = Arc::clone(&task.shared);
    // SAFETY: this thread owns the run token. The registry has the process, or its `Ending` does.
    shared.requeue_last(queue, unsafe { Token::new(task) });
}

/// The registry's reference to a process that is gone, and the report of its end for the case that
/// nothing takes the reason.
type Gone = (ManuallyDrop<Option<Task>>, Option<Box<Failed>>);

/// Ends a process that has been closed, and has released its visible resources: frees its PID, and
/// notifies the hook. Returns the registry's reference, which keeps the process alive until the
/// handle, if any, has this reference. A panic below does not drop the reference either.
#[inline(always)]
fn go(
    shared: &Shared,
    counters: &Counters,
    task: &Task,
    reason: &ExitReason,
    (actions, failed): (&mut Option<Box<ExitActions>>, Option<Box<Failed>>),
) -> Gone {
    shared.probe.ended(task.pid(), task.method, reason);
    shared.probe.interleave(&task.shared);
    // SAFETY: a process ends once.
    let owned = ManuallyDrop::new(unsafe { shared.free_id(task.pid().id()) });
    if shared.closing_inbox.is_any() {
        let late = shared.closing_inbox.take(task.key());
        ExitActions::apply_late(actions, late, task.pid(), counters);
    }
    let is_forced = matches!(reason, ExitReason::Terminated) && shared.shutdown.is_terminating();
    let (ended, how, kind) = match reason {
        _ if is_forced => (&counters.forced, "terminated", EndKind::Terminated),
        ExitReason::Done(_) => (&counters.done, "done", EndKind::Done),
        ExitReason::Cancelled(_) => (&counters.cancelled, "cancelled", EndKind::Cancelled),
        ExitReason::Failed(_) => (&counters.failed, "failed", EndKind::Failed),
        ExitReason::Panicked(_) => (&counters.panicked, "panicked", EndKind::Panicked),
        ExitReason::UpgradeFailed(_) => {
            let counter = &counters.upgrades_failed;
            (counter, "upgrade failed", EndKind::UpgradeFailed)
        }
        ExitReason::Exited(_) => (&counters.terminated, "terminated", EndKind::Exited),
        _ => (&counters.terminated, "terminated", EndKind::Terminated),
    };
    task.about.end(kind);
    let failed = failed.and_then(|it| it.unless_watched(actions.as_deref(), counters));
    let is_reported = failed.is_some() && task.exit.is_abandoned();
    log_end(task, how, reason, is_reported);
    if let Some(lifecycle) = shared.config.lifecycle.as_deref() {
        contain_and_report("on_complete", task.pid(), counters, || {
            lifecycle.on_complete(task.pid(), reason);
        });
    }
    shared.tell_life(task, || {
        LifeChange::Ended(ExitCause::of(reason, text_of_chain))
    });
    shared.leave_place();
    ended.bump();
    (owned, failed)
}

/// Gives the reason to the handle when all have been told. The process counts no more.
#[inline(always)]
fn give_reason(
    shared: &Shared,
    counters: &Counters,
    task: &Task,
    end: &mut Option<ExitReason>,
    (owned, failed): Gone,
    queue: Option<&LocalQueue>,
) {
    shared.census.live.leave(queue.map(|queue| queue.index));
    let pid = task.pid();
    let Some(reason) = end.take() else {
        unreachable!("there is one")
    };
    // SAFETY: this is the end of the process, which this thread runs.
    let left = unsafe { task.end(reason, failed.is_some()) };
    // Whose handle has the reason may be gone.
    let is_told = || left.is_ok() || task.exit.is_settled();
    shared.probe.told(pid, is_told);
    match left {
        // The reference is the handle's, and the process may be gone.
        Ok(waker) => contain_and_report("waker", pid, counters, || {
            if let Some(waker) = waker {
                waker.wake();
            }
        }),
        Err(unwanted) => {
            let mut unwanted = ManuallyDrop::new(unwanted);
            if failed.is_some() {
                task.report_end(&unwanted, failed);
            }
            // A result, or an error, may have replies in it.
            let failed = match &*unwanted {
                ExitReason::Done(_) => None,
                reason => Some(ExitCause::of(reason, text_of_chain)),
            };
            // SAFETY: it is not used again.
            unsafe { discard_in_place(pid, counters, &mut unwanted) };
            dropped::answer(|| CommandError::Ended(failed.clone().unwrap_or(ExitCause::Done)));
            if let Some(owned) = ManuallyDrop::into_inner(owned) {
                local::with(shared, |queue| shared.keep_cell(queue, owned));
            }
        }
    }
}
