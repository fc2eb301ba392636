//! Whether a socket is ready, and the operations that wait until it is.
//!
//! **Problem.** The poller reports only once that a socket has become ready. Operations of several
//! processes try at the same time, and find that it is not ready any more.
//!
//! **Protocol.** Each direction of a socket has a mark that it may be ready, and a tick that counts
//! events. One lock of the socket guards both directions. The only system call under this lock is
//! the call that arms the poller.
//! 1. An operation asks whether its direction may be ready. If not, it leaves its waker under the
//!    same lock.
//! 2. If so, it keeps the tick and tries. If the system says that the operation would block, the
//!    operation clears the mark, unless the tick has moved on, and asks again.
//! 3. An event sets the mark, moves the tick on, and wakes all waiters of the direction.
//!
//! **Why no event is lost.** The answer of the system contains each event before the try. A later
//! event either moves the tick on before the operation clears the mark, or finds its waker.
//!
//! **Turns for others.** After [`MAX_IN_A_ROW`] operations with a ready direction, the next
//! operation gives way. A process whose wait ends with an event has let others run, so its
//! operations in the other direction begin anew: a server that waits for each request would else
//! give way for its answers.
//!
//! **Deadlines.** All operations of a direction share its deadline and a single timer, which the
//! first waiter starts. The timer runs until it expires, even if the operation ends earlier or the
//! deadline moves to a later time. The close stops it.

use super::timers::{NEVER, TimerKey, Timers};
use crate::error;
use crate::look::{MOST_WAITERS, SocketWaiter};
use crate::poller::{Deadline, Direction, Interest, IoEvent};
use ganger_sched::internal::process_of;
use ganger_sync::sync::lock;
use ganger_sync::wake_all;
use std::io;
use std::mem;
use std::sync::Mutex;
use std::task::Waker;
use std::time::Duration;

/// The number of operations in a row that may find a direction ready. The next operation lets
/// other processes run first.
const MAX_IN_A_ROW: u8 = 64;

/// The place in which an operation leaves its waker.
pub(crate) enum WaiterSlot<'a> {
    /// The place of the owner of this direction: a later waker replaces it.
    Owner,
    /// A place of any number. The first wait gives it an id.
    Any(&'a mut Option<u64>),
    /// As `Any`, in a yield: the thread that wakes the waiter polls it at once.
    Yield(&'a mut Option<u64>),
}

impl WaiterSlot<'_> {
    pub(crate) fn reborrow(&mut self) -> WaiterSlot<'_> {
        match self {
            Self::Owner => WaiterSlot::Owner,
            Self::Any(id) => WaiterSlot::Any(id),
            Self::Yield(id) => WaiterSlot::Yield(id),
        }
    }
}

/// The next act of an operation.
#[must_use]
pub(crate) enum Attempt {
    /// Try. [`ScheduledIo::clear`] takes this tick.
    Try(u64),
    /// Return: an event or the deadline wakes the waker.
    Wait,
    /// Wake the waker at once and return, so that other processes run first.
    YieldNow,
    /// Return, and report the direction as ready at the next visit in the poller.
    Defer,
}

/// Why all operations of a socket fail.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    Closed,
    Halted,
}

/// The readiness of a socket, and its waiters.
#[derive(Debug)]
pub(crate) struct ScheduledIo {
    id: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    read: DirectionState,
    write: DirectionState,
    end: Option<End>,
}

#[derive(Debug)]
struct DirectionState {
    may_be_ready: bool,
    /// The number of events.
    tick: u64,
    /// The peer sends no more, or urgent data has come: a short read does not mean that the socket
    /// is drained.
    cuts_short: bool,
    in_a_row: u8,
    /// The process of the last try, by the address in its waker.
    tried_by: usize,
    deadline: u64,
    timer: Option<(u64, TimerKey)>,
    owner: Option<Waker>,
    /// The other waiters, by id. An event wakes all of them, so they need no order, and a list of
    /// pairs takes less memory in each socket than a `WaitTable`.
    others: Vec<(u64, Waker)>,
    last_id: u64,
}

impl Default for DirectionState {
    fn default() -> Self {
        Self {
            may_be_ready: true,
            tick: 0,
            cuts_short: false,
            in_a_row: 0,
            tried_by: 0,
            deadline: NEVER,
            timer: None,
            owner: None,
            others: Vec::new(),
            last_id: 0,
        }
    }
}

impl DirectionState {
    fn is_awaited(&self) -> bool {
        self.owner.is_some() || !self.others.is_empty()
    }

    fn take_wakers(&mut self, wakers: &mut Vec<Waker>) {
        wakers.extend(self.owner.take());
        if !self.others.is_empty() {
            wakers.extend(self.others.drain(..).map(|(_, waker)| waker));
        }
    }

    /// Counts the tries in a row anew, if a process among `woken` has made them: its wait in the
    /// other direction has ended.
    fn begin_anew(&mut self, woken: &[Waker]) {
        if woken.iter().any(|it| it.data().addr() == self.tried_by) {
            self.in_a_row = 0;
        }
    }

    /// Takes the waker out that an operation has left, if an event has not: it need not look for
    /// that again when it ends.
    fn take_back(&mut self, slot: WaiterSlot<'_>) -> Option<Waker> {
        let (WaiterSlot::Any(id) | WaiterSlot::Yield(id)) = slot else {
            return None;
        };
        let id = id.take()?;
        let index = self.others.iter().position(|other| other.0 == id)?;
        Some(self.others.swap_remove(index).1)
    }

    /// Leaves a waker. Returns the waker that it replaces; the caller drops it without the lock.
    fn wait(&mut self, slot: WaiterSlot<'_>, waker: &Waker) -> Option<Waker> {
        match slot {
            WaiterSlot::Owner => match &mut self.owner {
                Some(old) => renew(old, waker),
                none => none.replace(waker.clone()),
            },
            WaiterSlot::Any(id) | WaiterSlot::Yield(id) => {
                let id = *id.get_or_insert_with(|| {
                    self.last_id += 1;
                    self.last_id
                });
                match self.others.iter_mut().find(|other| other.0 == id) {
                    Some((_, old)) => renew(old, waker),
                    None => {
                        // Most sockets have a single waiter: room for more would be wasted.
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

    /// Starts a timer that expires no later than the deadline, unless it runs.
    fn arm(&mut self, timers: &Timers, id: u64, direction: Direction) {
        if self.timer.is_none_or(|(at, _)| at > self.deadline) {
            if let Some((_, key)) = self.timer.take() {
                timers.disarm(key);
            }
            let at = self.deadline;
            let deadline = Deadline { id, direction, at };
            self.timer = Some((at, timers.arm(deadline)));
        }
    }
}

fn renew(old: &mut Waker, waker: &Waker) -> Option<Waker> {
    (!old.will_wake(waker)).then(|| mem::replace(old, waker.clone()))
}

impl State {
    fn direction(&mut self, direction: Direction) -> &mut DirectionState {
        match direction {
            Direction::Read => &mut self.read,
            Direction::Write => &mut self.write,
        }
    }

    fn check(&mut self, timers: &Timers, direction: Direction) -> io::Result<()> {
        match self.end {
            Some(End::Closed) => return Err(error::closed()),
            Some(End::Halted) => return Err(error::halted()),
            None => {}
        }
        let deadline = self.direction(direction).deadline;
        if deadline != NEVER && deadline <= timers.now() {
            return Err(error::timed_out());
        }
        Ok(())
    }
}

impl ScheduledIo {
    pub(crate) fn new(id: u64) -> Self {
        let state = Mutex::default();
        Self { id, state }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Says whether an operation may try now, and leaves its waker if it must wait. `arm` asks the
    /// poller for the next event of the awaited directions.
    pub(super) fn attempt(
        &self,
        timers: &Timers,
        direction: Direction,
        slot: WaiterSlot<'_>,
        waker: &Waker,
        arm: impl FnOnce(Interest) -> io::Result<()>,
    ) -> io::Result<Attempt> {
        let mut state = lock(&self.state);
        state.check(timers, direction)?;
        let it = state.direction(direction);
        if it.may_be_ready {
            it.in_a_row += 1;
            if it.in_a_row <= MAX_IN_A_ROW {
                it.tried_by = waker.data().addr();
                let (tick, left) = (it.tick, it.take_back(slot));
                drop(state);
                drop(left);
                return Ok(Attempt::Try(tick));
            }
            it.in_a_row = 0;
            let is_yield = matches!(slot, WaiterSlot::Yield(_));
            let replaced = is_yield.then(|| it.wait(slot, waker));
            drop(state);
            drop(replaced);
            return Ok(match is_yield {
                true => Attempt::Defer,
                false => Attempt::YieldNow,
            });
        }
        it.in_a_row = 0;
        let replaced = it.wait(slot, waker);
        if it.deadline != NEVER {
            it.arm(timers, self.id, direction);
        }
        let armed = arm(Interest {
            read: state.read.is_awaited(),
            write: state.write.is_awaited(),
        });
        drop(state);
        drop(replaced);
        armed.map(|()| Attempt::Wait)
    }

    /// Returns whether an operation waits.
    pub(crate) fn is_awaited(&self) -> bool {
        let state = lock(&self.state);
        state.read.is_awaited() || state.write.is_awaited()
    }

    /// Returns the waiting operations, at most [`MOST_WAITERS`].
    pub(crate) fn waiters(&self) -> Vec<SocketWaiter> {
        let state = lock(&self.state);
        let of = |direction, it: &DirectionState| {
            let others = it.others.iter().map(|it| &it.1);
            let waiter = |it| SocketWaiter {
                is_write: direction == Direction::Write,
                process: process_of(it),
            };
            let all = it.owner.iter().chain(others).map(waiter);
            all.take(MOST_WAITERS).collect::<Vec<_>>()
        };
        let mut waiters = of(Direction::Read, &state.read);
        waiters.extend(of(Direction::Write, &state.write));
        drop(state);
        waiters.truncate(MOST_WAITERS);
        waiters
    }

    /// Marks a direction as not ready, unless it has become ready since this tick.
    pub(crate) fn clear(&self, direction: Direction, tick: u64) {
        let mut state = lock(&self.state);
        let it = state.direction(direction);
        if it.tick == tick {
            it.may_be_ready = false;
        }
    }

    /// Marks a direction as not ready after a short transfer: the socket is drained, unless its
    /// events say otherwise.
    pub(crate) fn clear_short(&self, direction: Direction, tick: u64) {
        let mut state = lock(&self.state);
        let it = state.direction(direction);
        if it.tick == tick && !it.cuts_short {
            it.may_be_ready = false;
            it.in_a_row = 0;
        }
    }

    /// Removes the waker of an operation.
    fn forget(&self, direction: Direction, id: u64) {
        let mut state = lock(&self.state);
        let others = &mut state.direction(direction).others;
        let index = others.iter().position(|other| other.0 == id);
        let waker = index.map(|index| others.swap_remove(index));
        drop(state);
        drop(waker);
    }

    /// Marks the directions of an event as ready, and takes the wakers of their waiters.
    pub(super) fn set_ready(&self, event: IoEvent, wakers: &mut Vec<Waker>) {
        let mut state = lock(&self.state);
        for (direction, other, is_ready) in [
            (Direction::Read, Direction::Write, event.ready.read),
            (Direction::Write, Direction::Read, event.ready.write),
        ] {
            if is_ready {
                let it = state.direction(direction);
                it.may_be_ready = true;
                it.tick += 1;
                it.cuts_short |= event.cuts_short;
                let first = wakers.len();
                it.take_wakers(wakers);
                state.direction(other).begin_anew(&wakers[first..]);
            }
        }
    }

    /// Marks directions as ready, and wakes their waiters.
    pub(crate) fn wake(&self, ready: Interest) {
        let mut wakers = Vec::new();
        self.set_ready(IoEvent::new(self.id, ready), &mut wakers);
        wake_all(wakers);
    }

    /// Ends all operations of a direction, present and later, within this time from now.
    pub(crate) fn set_deadline(
        &self,
        timers: &Timers,
        direction: Direction,
        within: Option<Duration>,
    ) {
        let mut wakers = Vec::new();
        let mut state = lock(&self.state);
        let it = state.direction(direction);
        it.deadline = within.map_or(NEVER, |within| timers.after(within));
        if within.is_some_and(|within| within.is_zero()) {
            it.take_wakers(&mut wakers);
        } else if it.deadline != NEVER && it.is_awaited() {
            it.arm(timers, self.id, direction);
        }
        drop(state);
        wake_all(wakers);
    }

    /// Ends the waits of a direction whose timer has expired, or arms the timer of a later
    /// deadline.
    pub(super) fn deadline_passed(
        &self,
        timers: &Timers,
        deadline: Deadline,
        wakers: &mut Vec<Waker>,
    ) {
        let mut state = lock(&self.state);
        let it = state.direction(deadline.direction);
        it.timer.take_if(|timer| timer.0 == deadline.at);
        if it.deadline <= deadline.at {
            it.take_wakers(wakers);
        } else if it.deadline != NEVER && it.is_awaited() {
            it.arm(timers, self.id, deadline.direction);
        }
    }

    /// Ends all operations, present and later.
    pub(crate) fn end(&self, timers: &Timers, end: End, wakers: &mut Vec<Waker>) {
        let mut state = lock(&self.state);
        state.end.get_or_insert(end);
        for direction in [Direction::Read, Direction::Write] {
            let it = state.direction(direction);
            it.take_wakers(wakers);
            if let Some((_, key)) = it.timer.take() {
                timers.disarm(key);
            }
        }
    }
}

/// The wait of an operation: its drop removes the waker.
pub(crate) struct Waiter<'a> {
    io: &'a ScheduledIo,
    direction: Direction,
    id: Option<u64>,
}

impl<'a> Waiter<'a> {
    pub(crate) fn new(io: &'a ScheduledIo, direction: Direction) -> Self {
        let id = None;
        Self { io, direction, id }
    }

    pub(crate) fn slot(&mut self) -> WaiterSlot<'_> {
        WaiterSlot::Any(&mut self.id)
    }

    pub(crate) fn slot_in_yield(&mut self) -> WaiterSlot<'_> {
        WaiterSlot::Yield(&mut self.id)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.io.forget(self.direction, id);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::poller::Poller;
    use std::sync::Arc;
    use std::task::Wake;

    struct Process;

    impl Wake for Process {
        fn wake(self: Arc<Self>) {}
    }

    /// Returns the number of writes before a process gives way, or 1,000. Before each write the
    /// reader waits until the socket is ready for a read.
    fn writes_beside_reads_of(reader: &Waker, writer: &Waker) -> usize {
        let timers = Timers::system(Arc::new(Poller::new().unwrap()));
        let io = ScheduledIo::new(1);
        let attempt = |direction, waker| {
            let arm = |_| Ok(());
            io.attempt(&timers, direction, WaiterSlot::Owner, waker, arm)
        };
        let goes_on = |_: &usize| {
            let Attempt::Try(tick) = attempt(Direction::Read, reader).unwrap() else {
                panic!("the read gives way");
            };
            io.clear(Direction::Read, tick);
            let waits = attempt(Direction::Read, reader).unwrap();
            assert!(matches!(waits, Attempt::Wait));
            io.wake(Interest::READ);
            matches!(attempt(Direction::Write, writer).unwrap(), Attempt::Try(_))
        };
        (0..1_000).take_while(goes_on).count()
    }

    #[test]
    fn a_process_that_waits_for_each_request_gives_way_for_no_answer_and_another_one_does() {
        let [one, other] = [(); 2].map(|()| Waker::from(Arc::new(Process)));
        assert_eq!(writes_beside_reads_of(&one, &one), 1_000);
        let most = usize::from(MAX_IN_A_ROW);
        assert_eq!(writes_beside_reads_of(&other, &one), most);
    }
}
