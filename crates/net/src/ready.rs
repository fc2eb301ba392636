//! Whether a socket is ready, and which operations wait until it is.
//!
//! **Problem.** The poller tells once that a socket has become ready. Operations of several
//! processes find out by trying that it is no longer, at the same time.
//!
//! **Protocol.** Each side of a socket, reads and writes, has a mark that it may be ready, and a
//! tick that counts events. All of it is behind one lock of the socket, which no call of the system
//! holds but that which arms the poller.
//! 1. An operation asks whether the side may be ready. If not, it leaves its waker, under the same
//!    lock.
//! 2. If so, it keeps the tick and tries. When the system says that it would block, it takes the
//!    mark away, unless the tick has moved on, and asks again.
//! 3. An event sets the mark, moves the tick on, and wakes all that wait at that side.
//!
//! **Why no event is lost.** An event before the try is in the answer of the system. One after it
//! moves the tick on before the operation takes the mark away, or finds its waker after that.
//!
//! **Deadlines.** A side has one deadline for all its operations, and at most one timer, from the
//! first operation that waits. The timer stays in the wheel until its moment, also when the
//! operation is over before, or the deadline moves to a later moment. The close takes it out.

use crate::error;
use crate::net::Reactor;
use crate::poller::{Found, Sides};
use crate::timers::{Alarm, Key, NEVER};
use ganger_sync::wake_all;
use std::io;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

/// So many operations in a row find a side ready. The next one lets other processes run first.
const MOST_IN_A_ROW: u8 = 64;

/// A side of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Read,
    Write,
}

/// The operation that waits.
pub(crate) enum Who<'a> {
    /// That of the one owner of this side: a later one takes its place.
    Owner,
    /// One of any number. It has an id as soon as it waits.
    Any(&'a mut Option<u64>),
    /// As `Any`, in a yield: the thread that wakes it polls it at once.
    Yield(&'a mut Option<u64>),
}

/// Whether a socket is ready, and what waits for that.
#[derive(Debug)]
pub struct Ready {
    id: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    read: SideState,
    write: SideState,
    end: Option<End>,
}

/// Why no operation can succeed any more.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    Closed,
    Halted,
}

#[derive(Debug)]
struct SideState {
    may_be_ready: bool,
    /// Counts events.
    tick: u64,
    /// The other side sends no more, or urgent data: what is short is no sign that nothing is
    /// left.
    cuts_short: bool,
    in_a_row: u8,
    deadline: u64,
    timer: Option<(u64, Key)>,
    owner: Option<Waker>,
    others: Vec<(u64, Waker)>,
    next_id: u64,
}

impl Default for SideState {
    fn default() -> Self {
        Self {
            may_be_ready: true,
            tick: 0,
            cuts_short: false,
            in_a_row: 0,
            deadline: NEVER,
            timer: None,
            owner: None,
            others: Vec::new(),
            next_id: 0,
        }
    }
}

impl SideState {
    fn is_waited_for(&self) -> bool {
        self.owner.is_some() || !self.others.is_empty()
    }

    fn take_wakers(&mut self, wakers: &mut Vec<Waker>) {
        wakers.extend(self.owner.take());
        wakers.extend(self.others.drain(..).map(|(_, waker)| waker));
    }

    /// Returns the waker that was there before, which is dropped without the lock.
    fn wait(&mut self, who: Who<'_>, waker: &Waker) -> Option<Waker> {
        match who {
            Who::Owner => match &mut self.owner {
                Some(old) => renew(old, waker),
                place => place.replace(waker.clone()),
            },
            Who::Any(id) | Who::Yield(id) => {
                let id = *id.get_or_insert_with(|| {
                    self.next_id += 1;
                    self.next_id
                });
                match self.others.iter_mut().find(|other| other.0 == id) {
                    Some((_, old)) => renew(old, waker),
                    None => {
                        // Most sockets have one at the most: it has room alone.
                        if self.others.is_empty() {
                            self.others.reserve_exact(1);
                        }
                        self.others.push((id, waker.clone()));
                        None
                    }
                }
            }
        }
    }

    /// Has a timer in the wheel that is over no later than the deadline.
    fn arm(&mut self, reactor: &Reactor, id: u64, side: Side) {
        if self.timer.is_none_or(|(at, _)| at > self.deadline) {
            if let Some((_, key)) = self.timer.take() {
                reactor.disarm(key);
            }
            let at = self.deadline;
            self.timer = Some((at, reactor.arm(Alarm { id, side, at })));
        }
    }
}

fn renew(old: &mut Waker, waker: &Waker) -> Option<Waker> {
    (!old.will_wake(waker)).then(|| mem::replace(old, waker.clone()))
}

impl State {
    fn side(&mut self, side: Side) -> &mut SideState {
        match side {
            Side::Read => &mut self.read,
            Side::Write => &mut self.write,
        }
    }

    fn check(&mut self, reactor: &Reactor, side: Side) -> io::Result<()> {
        match self.end {
            Some(End::Closed) => return Err(error::closed()),
            Some(End::Halted) => return Err(error::halted()),
            None => {}
        }
        let deadline = self.side(side).deadline;
        if deadline != NEVER && deadline <= reactor.now() {
            return Err(error::timed_out());
        }
        Ok(())
    }
}

impl Ready {
    pub(crate) fn new(id: u64) -> Self {
        let state = Mutex::default();
        Self { id, state }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the side may be ready. Returns its tick for [`clear`](Self::clear). `arm` tells
    /// the poller which sides are waited for.
    pub(crate) fn poll(
        &self,
        reactor: &Reactor,
        side: Side,
        who: Who<'_>,
        waker: &Waker,
        arm: impl FnOnce(Sides) -> io::Result<()>,
    ) -> Poll<io::Result<u64>> {
        let mut state = self.lock();
        if let Err(error) = state.check(reactor, side) {
            return Poll::Ready(Err(error));
        }
        let it = state.side(side);
        if it.may_be_ready {
            it.in_a_row += 1;
            if it.in_a_row <= MOST_IN_A_ROW {
                return Poll::Ready(Ok(it.tick));
            }
            it.in_a_row = 0;
            let is_yield = matches!(who, Who::Yield(_));
            let replaced = is_yield.then(|| it.wait(who, waker));
            drop(state);
            drop(replaced);
            if is_yield {
                reactor.tell_later(self.id, side, waker);
            } else {
                waker.wake_by_ref();
            }
            return Poll::Pending;
        }
        it.in_a_row = 0;
        let replaced = it.wait(who, waker);
        if it.deadline != NEVER {
            it.arm(reactor, self.id, side);
        }
        let waited_for = Sides {
            read: state.read.is_waited_for(),
            write: state.write.is_waited_for(),
        };
        let armed = arm(waited_for);
        drop(state);
        drop(replaced);
        match armed {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// Whether an operation waits.
    pub(crate) fn is_awaited(&self) -> bool {
        let state = self.lock();
        state.read.is_waited_for() || state.write.is_waited_for()
    }

    /// The side was not ready, unless it has become so since that tick.
    pub(crate) fn clear(&self, side: Side, tick: u64) {
        let mut state = self.lock();
        let it = state.side(side);
        if it.tick == tick {
            it.may_be_ready = false;
        }
    }

    /// Less came than there was room for: nothing is left, unless something else cuts it short.
    pub(crate) fn clear_short(&self, side: Side, tick: u64) {
        let mut state = self.lock();
        let it = state.side(side);
        if it.tick == tick && !it.cuts_short {
            it.may_be_ready = false;
            it.in_a_row = 0;
        }
    }

    /// An operation waits no longer.
    pub(crate) fn forget(&self, side: Side, id: u64) {
        let mut state = self.lock();
        let others = &mut state.side(side).others;
        let place = others.iter().position(|other| other.0 == id);
        let waker = place.map(|place| others.swap_remove(place));
        drop(state);
        drop(waker);
    }

    /// The poller has found the socket.
    pub(crate) fn found(&self, found: Found, wakers: &mut Vec<Waker>) {
        let mut state = self.lock();
        for (side, is_ready) in [
            (Side::Read, found.ready.read),
            (Side::Write, found.ready.write),
        ] {
            if is_ready {
                let it = state.side(side);
                it.may_be_ready = true;
                it.tick += 1;
                it.cuts_short |= found.cuts_short;
                it.take_wakers(wakers);
            }
        }
    }

    /// Those sides may be ready. Wakes what waits there.
    pub(crate) fn tell(&self, ready: Sides) {
        let mut wakers = Vec::new();
        let found = Found {
            id: self.id,
            ready,
            cuts_short: false,
        };
        self.found(found, &mut wakers);
        wake_all(wakers);
    }

    /// The operations of a side end within that time from now, those that wait and later ones.
    pub(crate) fn set_deadline(
        &self,
        reactor: &Reactor,
        side: Side,
        within: Option<Duration>,
        wakers: &mut Vec<Waker>,
    ) {
        let mut state = self.lock();
        let it = state.side(side);
        it.deadline = within.map_or(NEVER, |it| reactor.moment_in(it));
        if within.is_some_and(|it| it.is_zero()) {
            it.take_wakers(wakers);
        } else if it.deadline != NEVER && it.is_waited_for() {
            it.arm(reactor, self.id, side);
        }
    }

    /// A timer of that side is over.
    pub(crate) fn timer_is_over(&self, reactor: &Reactor, alarm: Alarm, wakers: &mut Vec<Waker>) {
        let mut state = self.lock();
        let it = state.side(alarm.side);
        it.timer.take_if(|timer| timer.0 == alarm.at);
        if it.deadline <= alarm.at {
            it.take_wakers(wakers);
        } else if it.deadline != NEVER && it.is_waited_for() {
            it.arm(reactor, self.id, alarm.side);
        }
    }

    /// No operation succeeds from now on.
    pub(crate) fn end(&self, reactor: &Reactor, end: End, wakers: &mut Vec<Waker>) {
        let mut state = self.lock();
        state.end.get_or_insert(end);
        for side in [Side::Read, Side::Write] {
            let it = state.side(side);
            it.take_wakers(wakers);
            if let Some((_, key)) = it.timer.take() {
                reactor.disarm(key);
            }
        }
    }
}
