//! The end of a process: the state and the mailbox first, then `close`, then the PID, then the
//! waiters.

use crate::base::clock::{Moment, nanos};
use crate::base::contain::{
    contain_and_report, discard, discard_each, discard_in_place, log, text_of_chain,
};
use crate::base::dead_letters::{DeadLetter, DeadReason};
use crate::base::dropped;
use crate::base::failing;
use crate::base::stats::Counters;
use crate::core::cell::Task;
use crate::core::item::{Item, count, seen};
use crate::core::local;
use crate::core::shared::Shared;
use crate::probe::{Decide, Decider, Probe};
use crate::process::exit_actions::{ExitActions, ExitRequest};
use crate::process::outstanding::Outstanding;
use crate::process::process_box::ProcessBox;
use ganger_mpsc::Batch;
use ganger_proc_api::{CommandError, ExitCause, ExitReason, Process};
use std::mem::{self, ManuallyDrop};
use std::ops::DerefMut;
use tracing::Level;

/// Closes a process, which is or was the task's, and drops it.
pub(crate) fn close(
    mut process: impl DerefMut<Target = dyn Process>,
    task: &Task,
    counters: &Counters,
) {
    task.shared.probe.closing(task.pid);
    contain_and_report("close", task.pid, counters, || process.close());
    discard(task.pid, counters, process);
}

/// The mailbox of the process has been closed, with these items left. Adds the exit actions among
/// them to the others, and drops and counts the rest. Closes and drops the process, if there is
/// one. Then releases what others can see.
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
    if items.iter().any(|item| matches!(item, Item::Recallable(_))) {
        settle_recallables(&mut items, task);
    }
    task.shared.probe.dropping(task.pid, seen(&items));
    let (messages, completions) = count(&items);
    counters.undelivered.add(messages);
    counters.stale_completions.add(completions);
    if messages > 0 && task.shared.config.dead_letters.is_some() {
        tell_of_dead(&items, task, counters);
    }
    discard_each(task.pid, counters, items);
    if let Some(process) = process {
        close(process, task, counters);
    }
    if let Some(actions) = actions {
        actions.release(task.pid, counters);
    }
}

/// What has not been taken back is dropped like other messages.
fn settle_recallables(items: &mut Batch<Item>, task: &Task) {
    let mut rest = Batch::new();
    for item in mem::take(items) {
        match item {
            Item::Recallable(message) => {
                if let Some(event) = message.take_event() {
                    task.shared.probe.arrived_next(task.pid, &event);
                    rest.push_back(Item::Event(event));
                }
            }
            item => rest.push_back(item),
        }
    }
    *items = rest;
}

/// No step has taken the messages among these.
#[cold]
fn tell_of_dead(items: &Batch<Item>, task: &Task, counters: &Counters) {
    let Some(sink) = &task.shared.config.dead_letters else {
        return;
    };
    let time = Decider::time().unwrap_or_else(|| task.shared.time.read());
    let at = Moment::from_nanos(nanos(time));
    let messages = items.iter().filter_map(|item| match item {
        Item::Event(event) => event.message(),
        _ => None,
    });
    for message in messages {
        let letter = DeadLetter::new(
            DeadReason::Ended,
            message.source,
            task.pid,
            message.topic,
            at,
        );
        contain_and_report("dead letter", task.pid, counters, || {
            sink.dead_letter(&letter);
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

/// Says that a process has ended, and why, where that is a mistake: it may have no handle.
fn log_end(task: &Task, how: &'static str, reason: &ExitReason) {
    match reason {
        ExitReason::Failed(error) => log_failure(task, how, || text_of_chain(&**error)),
        ExitReason::Panicked(message) => log_failure(task, how, || message.clone()),
        ExitReason::UpgradeFailed(error) => log_failure(task, how, || text_of_chain(error)),
        _ => log(
            Level::DEBUG,
            || tracing::debug!(target: "ganger::sched", pid = %task.pid, how, "ended"),
        ),
    }
}

#[cold]
#[inline(never)]
fn log_failure(task: &Task, how: &'static str, reason: impl Fn() -> Box<str>) {
    log(Level::WARN, || {
        tracing::warn!(
            target: "ganger::sched", pid = %task.pid, method = %task.method, how,
            reason = %reason(),
            "ended"
        );
    });
}

/// Ends a process that this thread runs, and its turn before the process counts as ended. It takes
/// the reason; without one, the process has been terminated.
pub(crate) fn finish(
    shared: &Shared,
    counters: &Counters,
    task: &Task,
    end: &mut Option<ExitReason>,
    worker: Option<usize>,
    end_turn: impl FnOnce(),
) {
    let (terminated, rest) = task.complete();
    if terminated && matches!(end, Some(ExitReason::Done(_) | ExitReason::Cancelled(_))) {
        discard(task.pid, counters, end.take());
    }
    let reason = end.get_or_insert(ExitReason::Terminated);
    let mut items = Batch::new();
    // SAFETY: `complete` has been called by the owner of the run token, this thread, and no other
    // thread becomes its owner after that.
    let (process, actions, tickets) = unsafe {
        task.with_core(|core| {
            let tickets = core.yields.take_tickets();
            core.yields = Outstanding::default();
            core.cached_self_ref = None;
            (core.process.take(), core.take_events(&mut items), tickets)
        })
    };
    shared.forget_at_sources(&tickets);
    items.append(rest);
    // After a panic below, no action can be run any more. Otherwise this is empty in the end.
    let mut actions = ManuallyDrop::new(actions);
    let has_failed = !matches!(reason, ExitReason::Done(_) | ExitReason::Cancelled(_));
    failing::within(has_failed, || {
        if items.is_empty() && actions.is_none() {
            shared.probe.dropping(task.pid, seen(&items));
            if let Some(process) = process {
                close(process, task, counters);
            }
        } else {
            take_down(process, items, &mut actions, task, counters);
        }
    });
    dropped::answer(|| CommandError::Ended(ExitCause::of(reason, text_of_chain)));
    shared.probe.ended(task.pid, task.method, reason);
    shared.probe.interleave(&task.shared);
    // Keeps the process alive until the handle, if there is one, has this reference. That holds
    // also when something below panics, so that the reference is not dropped then.
    // SAFETY: a process ends once.
    let owned = ManuallyDrop::new(unsafe { shared.free_id(task.pid.id()) });
    if shared.late.is_any() {
        let late = shared.late.take(task.key());
        ExitActions::apply_late(&mut actions, late, task.pid, counters);
    }
    let is_forced = matches!(reason, ExitReason::Terminated) && shared.shutdown.is_terminating();
    if is_forced {
        shared.shutdown.forced.add(task.pid, task.method);
    }
    let (ended, how) = match reason {
        _ if is_forced => (&counters.forced, "terminated"),
        ExitReason::Done(_) => (&counters.done, "done"),
        ExitReason::Cancelled(_) => (&counters.cancelled, "cancelled"),
        ExitReason::Failed(_) => (&counters.failed, "failed"),
        ExitReason::Panicked(_) => (&counters.panicked, "panicked"),
        ExitReason::UpgradeFailed(_) => (&counters.upgrades_failed, "upgrade failed"),
        _ => (&counters.terminated, "terminated"),
    };
    log_end(task, how, reason);
    if let Some(lifecycle) = shared.config.lifecycle.as_deref() {
        contain_and_report("on_complete", task.pid, counters, || {
            lifecycle.on_complete(task.pid, reason);
        });
    }
    shared.leave_place();
    ended.bump();
    if let Some(actions) = ManuallyDrop::into_inner(actions) {
        actions.tell(task.pid, || ExitCause::of(reason, text_of_chain), counters);
    }
    end_turn();
    shared.live.leave(worker);
    let pid = task.pid;
    let Some(reason) = end.take() else {
        unreachable!("there is one")
    };
    // SAFETY: this is the end of the process, which this thread runs.
    let left = unsafe { task.end(reason) };
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
            // SAFETY: it is not used again.
            unsafe { discard_in_place(pid, counters, &mut unwanted) };
            if let Some(owned) = ManuallyDrop::into_inner(owned) {
                local::with(shared, |queue| shared.keep_cell(queue, owned));
            }
        }
    }
}
