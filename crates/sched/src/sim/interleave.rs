//! The acts of other threads in the middle of a move.
//!
//! A move is interrupted at a few places only: places named by the scheduler, and the end of each
//! call made by a step or an `init`. There, another thread may act from outside of any worker, and
//! the simulation's thread stands in for it. After a call, other workers may move, too.

use super::note::{Note, note};
use super::{Did, Simulation, happens};
use crate::base::clock::Deadline;
use crate::probe::Decide;
use crate::runtime::frames;
use crate::runtime::local;
use crate::runtime::shared::Shared;
use crate::stop;
use crate::turn::dispatch;
use ganger_proc_api::{CancelReason, UpgradeRequest};
use ganger_sync::scoped;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use std::{ptr, thread};

type Request = Rc<dyn Fn() -> UpgradeRequest>;
type Act = Rc<dyn Fn()>;
type Moves = dyn Fn(&'static str, bool);

/// The state of a single scheduler.
#[derive(Default)]
struct Own {
    /// The deadline requested by a process, or the test, since the last look.
    deadline: Option<Duration>,
    /// When the shutdown must be over, by the clock of the simulation.
    stop_by: Option<Duration>,
    upgrades: Vec<Request>,
    acts: Vec<Act>,
}

thread_local! {
    /// By the numbers of the schedulers.
    static OWN: RefCell<BTreeMap<u64, Own>> = const { RefCell::new(BTreeMap::new()) };
    /// Another thread acts. Its acts are not interrupted.
    static IS_ACTING: Cell<bool> = const { Cell::new(false) };
    /// The `moves` of the innermost [`interrupted_by`] on this thread's stack, or null.
    static MOVES: Cell<*const &'static Moves> = const { Cell::new(ptr::null()) };
}

fn own<R>(scheduler: u64, f: impl FnOnce(&mut Own) -> R) -> R {
    OWN.with_borrow_mut(|all| f(all.entry(scheduler).or_default()))
}

pub(super) fn offer_upgrade(shared: &Shared, request: impl Fn() -> UpgradeRequest + 'static) {
    own(shared.number, |own| own.upgrades.push(Rc::new(request)));
}

pub(super) fn offer_act(shared: &Shared, act: impl Fn() + 'static) {
    own(shared.number, |own| own.acts.push(Rc::new(act)));
}

/// Calls `f`. After each call made by a step or an `init`, calls `moves` as well, which may have
/// others move. `moves` gets the name of the call, and whether an `init` has made it.
pub fn interrupted_by<R>(moves: &dyn Fn(&'static str, bool), f: impl FnOnce() -> R) -> R {
    let place = (&raw const moves).cast();
    scoped(&MOVES, place, f)
}

/// Lets other threads act at this place.
pub(super) fn interleave(shared: &Arc<Shared>) {
    if may_interrupt() {
        apart(|| act_outside(shared));
    }
}

/// Notes the end of a call. Where a step or an `init` has made it, others may move as well. A
/// test's own calls are no such places, nor are the calls of handlers and of `close`.
pub(super) fn called(shared: &Arc<Shared>, call: &'static str) {
    if !may_interrupt() || dispatch::is_inside() {
        return;
    }
    let is_in_init = frames::is_inside(&**shared);
    if is_in_init || local::own_process().is_some_and(|task| !task.state.is_closed()) {
        apart(|| {
            act_outside(shared);
            have_others_move(call, is_in_init);
        });
    }
}

fn may_interrupt() -> bool {
    Simulation::is_driven() && !IS_ACTING.get() && !thread::panicking()
}

/// Calls `f` as if on another thread.
fn apart(f: impl FnOnce()) {
    dispatch::outside(|| local::leave(f));
}

/// Acts as others do from outside, between two moves or within a move.
pub(super) fn act_outside(shared: &Arc<Shared>) {
    scoped(&IS_ACTING, true, || act(shared));
}

fn have_others_move(call: &'static str, is_in_init: bool) {
    // SAFETY: null, or a pointer borrowed by an `interrupted_by` further out on this thread's
    // stack. This `interrupted_by` has not returned, or it would have restored the former pointer.
    if let Some(moves) = unsafe { MOVES.get().as_ref() } {
        moves(call, is_in_init);
    }
}

fn act(shared: &Arc<Shared>) {
    if happens("process is terminated")
        && let Some(task) = any(shared)
    {
        done(Did::Terminated(task.pid()));
        task.terminate();
    }
    if happens("process is cancelled")
        && let Some(task) = any(shared)
    {
        done(Did::Cancelled(task.pid()));
        task.cancel(CancelReason::from("a fault of the simulation"));
    }
    if happens("process is upgraded")
        && let Some(request) = any_upgrade(shared)
        && let Some(task) = any(shared)
    {
        done(Did::Upgraded(task.pid()));
        // The process may be about to end.
        drop(task.upgrade(request()));
    }
    if happens("others act")
        && let Some(act) = any_act(shared)
    {
        done(Did::Acted);
        act();
    }
    if happens("worker wakes in vain") && shared.queues.idle.notify() {
        done(Did::WokeInVain);
    }
    let shutdown = &shared.shutdown;
    if !shutdown.is_stopping() && happens("shutdown begins") {
        done(Did::Stopped);
        tell_of_stop(shared);
    }
    if shutdown.is_stopping() && !shutdown.is_terminating() && happens("shutdown is forced") {
        done(Did::Forced);
        force(shared);
    }
}

fn done(did: Did) {
    note(|| Note::Outside(did));
}

/// Chooses any of the live processes.
fn any(shared: &Shared) -> Option<crate::runtime::cell::Task> {
    let tasks: Vec<_> = shared.census.registry.all().collect();
    let chosen = (!tasks.is_empty()).then(|| Simulation::choose("process", tasks.len()))??;
    tasks.into_iter().nth(chosen)
}

fn any_upgrade(shared: &Shared) -> Option<Request> {
    any_of("upgrade", || own(shared.number, |own| own.upgrades.clone()))
}

fn any_act(shared: &Shared) -> Option<Act> {
    any_of("act", || own(shared.number, |own| own.acts.clone()))
}

fn any_of<T>(what: &'static str, all: impl FnOnce() -> Vec<T>) -> Option<T> {
    let all = all();
    let chosen = (!all.is_empty()).then(|| Simulation::choose(what, all.len()))??;
    all.into_iter().nth(chosen)
}

/// Begins a shutdown, its first part: submits are refused, and every process gets a cancel event.
pub(super) fn tell_of_stop(shared: &Arc<Shared>) {
    shared.shutdown.begin_stopping();
    // The simulation's own clock says when it has passed.
    let deadline = Deadline::after(Duration::MAX);
    shared.stopper.ask(deadline, || shared.counters.total());
    stop::end_waits(shared);
    stop::cancel_all(shared);
}

/// Tells of a stop as [`tell_of_stop`] does, if no shutdown has begun, and requests the deadline.
pub(super) fn begin_stop(shared: &Arc<Shared>, deadline: Duration) {
    own(shared.number, |own| {
        let asked = own.deadline;
        own.deadline = Some(asked.map_or(deadline, |asked| asked.min(deadline)));
    });
    if let Some(now) = Simulation::time() {
        must_stop_by(shared, now.saturating_add(deadline));
    }
    if !shared.shutdown.is_stopping() {
        tell_of_stop(shared);
    }
}

/// Takes the deadline requested since the last look.
pub(super) fn take_deadline(shared: &Shared) -> Option<Duration> {
    own(shared.number, |own| own.deadline.take())
}

/// Has the shutdown be over by `end`, or an earlier moment set before.
pub(super) fn must_stop_by(shared: &Shared, end: Duration) {
    own(shared.number, |own| {
        own.stop_by = Some(own.stop_by.map_or(end, |before| before.min(end)));
    });
}

/// Returns when the shutdown must be over.
pub(super) fn stop_by(scheduler: u64) -> Option<Duration> {
    OWN.with_borrow(|all| all.get(&scheduler)?.stop_by)
}

/// Forces the shutdown, as its second part: the deadline has passed. The remaining processes end at
/// their next step boundary.
pub(super) fn force(shared: &Arc<Shared>) {
    shared.shutdown.begin_terminating();
    stop::terminate_all(shared);
    stop::end_queued(shared);
}

/// Forgets all of this thread's simulation, for another to follow.
pub(super) fn forget() {
    // The drop of an act runs users' code.
    let own = OWN.take();
    drop(own);
}
