//! The decisions of a supervisor: a state machine without processes, threads and clock.
//!
//! **Problem.** Children end by themselves, stop on request, and fail to start, in any order, while
//! the supervisor waits for other children.
//!
//! **Rejected.** A routine for each case, such as "stop the group, then start it": each routine
//! must know the meaning of every other event in its middle.
//!
//! **Protocol.** The plan knows the state of each child, and whether the child is wanted. The next
//! act follows from these alone, in [`Plan::next`]:
//!
//! 1. A child past its deadline is terminated.
//! 2. A leaving child is asked to finish: where the order counts, the last child first, and each
//!    other child after the end of its successor.
//! 3. A wanted child that does not run is started after its wait: in order, and where the order
//!    counts, after the ends of all leaving children.
//! 4. A stopping supervisor ends after its last child.
//!
//! The caller carries out each act and reports its result. An event only changes the wishes, so it
//! may come at any time.
//!
//! **Imports**: the scheduler's instants alone.

mod rules;
mod window;

pub(crate) use self::rules::Streak;
pub use self::rules::{AutoShutdown, BackOff, Restart, ShutdownTimeout, Strategy};
pub(crate) use self::window::Window;

use ganger_sched::Instant;
use ganger_sync::sync::{Mutex, lock};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

/// A child of a plan. The order of ids is the order of start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ChildId(pub(crate) u64);

/// The rules of a child.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rules {
    pub(crate) restart: Restart,
    pub(crate) stop: ShutdownTimeout,
    pub(crate) back_off: Option<BackOff>,
    pub(crate) significant: bool,
}

/// The end of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Done,
    /// The child has finished on request.
    Asked,
    Failed,
}

/// The next act of the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Act {
    /// Start the child; then call [`Plan::started`] or [`Plan::not_started`].
    Start(ChildId),
    /// Ask the child to finish by this time.
    Cancel(ChildId, Instant),
    Terminate(ChildId),
    /// Forget the child.
    Forget(ChildId),
    /// All children have ended.
    End(Verdict),
}

/// Why a supervisor ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The supervisor was asked to stop.
    Stopped,
    /// Children have failed too often, this child at last.
    GaveUp(ChildId),
    /// The start of this child has failed.
    NotStarted(ChildId),
    /// The significant children have ended.
    Finished,
}

/// See the head of this file.
pub(crate) struct Plan {
    strategy: Strategy,
    auto: AutoShutdown,
    /// Children with restarts in place count their own failures.
    window: Arc<Mutex<Window>>,
    mode: Mode,
    /// The deadline of all children.
    stop_by: Instant,
    next_id: u64,
    children: BTreeMap<ChildId, Child>,
    /// Wanted children that do not run, by the time of their next start.
    to_start: BTreeSet<(Instant, ChildId)>,
    /// Running children that must leave.
    leaving: BTreeSet<ChildId>,
    /// Leaving children that were not yet asked.
    to_ask: BTreeSet<ChildId>,
    /// The deadlines of the children that were asked.
    kills: BTreeSet<(Instant, ChildId)>,
    forgotten: VecDeque<ChildId>,
    /// The number of living significant children.
    significant: usize,
    random: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// During the first start: a failed start ends the supervisor.
    Begins,
    Runs,
    Stops(Verdict),
    IsOver,
}

struct Child {
    rules: Rules,
    state: State,
    /// Whether the child is wanted.
    wanted: bool,
    /// The time of the next start.
    due: Instant,
    /// The deadline, once the child was asked to finish.
    kill_at: Instant,
    streak: Streak,
    /// The child has never run.
    is_new: bool,
    /// The child is forgotten after its end.
    is_removed: bool,
    /// The child has ended by itself for good, or was stopped.
    is_settled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Off,
    Runs,
    /// The child was asked to finish, or terminated.
    Asked,
}

impl Plan {
    /// Creates a plan without children. Children are [added](Self::add), and start in this order.
    /// `seed` is for the jitter of waits.
    pub(crate) fn new(
        strategy: Strategy,
        auto: AutoShutdown,
        window: Arc<Mutex<Window>>,
        seed: u64,
    ) -> Self {
        Self {
            strategy,
            auto,
            window,
            mode: Mode::Begins,
            stop_by: Instant::NEVER,
            next_id: 0,
            children: BTreeMap::new(),
            to_start: BTreeSet::new(),
            leaving: BTreeSet::new(),
            to_ask: BTreeSet::new(),
            kills: BTreeSet::new(),
            forgotten: VecDeque::new(),
            significant: 0,
            random: seed,
        }
    }

    /// Adds a wanted child.
    pub(crate) fn add(&mut self, rules: Rules, now: Instant) -> ChildId {
        let id = ChildId(self.next_id);
        self.next_id += 1;
        self.significant += usize::from(rules.significant);
        let child = Child {
            rules,
            state: State::Off,
            wanted: true,
            due: now,
            kill_at: Instant::NEVER,
            streak: Streak::default(),
            is_new: true,
            is_removed: false,
            is_settled: false,
        };
        self.children.insert(id, child);
        self.to_start.insert((now, id));
        id
    }

    /// Adds a running child.
    pub(crate) fn add_running(&mut self, rules: Rules, now: Instant) -> ChildId {
        let id = self.add(rules, now);
        self.to_start.remove(&(now, id));
        self.started(id, now);
        id
    }

    /// Returns whether the first start is under way.
    pub(crate) fn is_starting(&self) -> bool {
        self.mode == Mode::Begins
    }

    pub(crate) fn is_stopping(&self) -> bool {
        matches!(self.mode, Mode::Stops(_) | Mode::IsOver)
    }

    /// Ends the first start.
    pub(crate) fn run(&mut self) {
        if self.mode == Mode::Begins {
            self.mode = Mode::Runs;
        }
    }

    /// Returns the reason for the stop, while the supervisor stops.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        match self.mode {
            Mode::Stops(verdict) => Some(verdict),
            _ => None,
        }
    }

    pub(crate) fn state(&self, id: ChildId) -> Option<State> {
        self.children.get(&id).map(|child| child.state)
    }

    /// Returns whether the child has never run.
    pub(crate) fn is_new(&self, id: ChildId) -> bool {
        self.children.get(&id).is_some_and(|it| it.is_new)
    }

    /// Returns whether the child runs, and must leave.
    pub(crate) fn is_leaving(&self, id: ChildId) -> bool {
        self.leaving.contains(&id)
    }

    pub(crate) fn stop_time(&self, id: ChildId) -> ShutdownTimeout {
        self.children
            .get(&id)
            .map_or(ShutdownTimeout::AtOnce, |it| it.rules.stop)
    }

    /// Removes the child's deadline.
    pub(crate) fn has_time(&mut self, id: ChildId) {
        if let Some(child) = self.children.get_mut(&id) {
            child.rules.stop = ShutdownTimeout::Unlimited;
        }
    }

    /// Sets the deadline of the stop. Children that were asked to finish are asked again, as they
    /// may have less time now.
    pub(crate) fn must_stop_by(&mut self, by: Instant) {
        if by >= self.stop_by {
            return;
        }
        self.stop_by = by;
        for id in &self.leaving {
            if let Some(child) = self.children.get(id)
                && child.state == State::Asked
                && child.rules.stop != ShutdownTimeout::AtOnce
            {
                self.to_ask.insert(*id);
            }
        }
    }

    /// Returns whether the child waits for its start.
    pub(crate) fn is_due(&self, id: ChildId) -> bool {
        (self.children.get(&id)).is_some_and(|it| it.state == State::Off && it.wanted)
    }

    /// Notes that the child has started.
    pub(crate) fn started(&mut self, id: ChildId, now: Instant) {
        if let Some(child) = self.children.get_mut(&id) {
            child.state = State::Runs;
            child.streak.started(now);
            child.is_new = false;
        }
    }

    /// Notes that the child's start has failed.
    pub(crate) fn not_started(&mut self, id: ChildId, now: Instant) {
        let Some(child) = self.children.get_mut(&id) else {
            return;
        };
        match self.mode {
            Mode::Begins => self.stop(Verdict::NotStarted(id), Instant::NEVER),
            Mode::Runs if child.is_new => self.forget(id),
            Mode::Runs if child.wanted => self.failed(id, now),
            _ => child.wanted = false,
        }
    }

    /// Notes that the child has ended.
    pub(crate) fn ended(&mut self, id: ChildId, how: Ended, now: Instant) {
        let Some(child) = self.children.get_mut(&id) else {
            return;
        };
        if child.state == State::Off {
            return;
        }
        child.state = State::Off;
        self.kills.remove(&(child.kill_at, id));
        self.to_ask.remove(&id);
        let was_asked = self.leaving.remove(&id);
        if matches!(self.mode, Mode::Stops(_)) {
            return;
        }
        let ends_for_good = if was_asked {
            !child.wanted
        } else {
            match child.rules.restart {
                Restart::Permanent => how == Ended::Asked,
                Restart::Transient => how != Ended::Failed,
                Restart::Temporary => true,
            }
        };
        match (ends_for_good, was_asked) {
            (true, _) => self.settle(id, was_asked),
            (false, true) => _ = self.to_start.insert((child.due, id)),
            (false, false) => self.failed(id, now),
        }
    }

    /// Settles the child, which has ended for good.
    fn settle(&mut self, id: ChildId, was_asked: bool) {
        let Some(child) = self.children.get_mut(&id) else {
            return;
        };
        child.wanted = false;
        let counts = child.rules.significant && !child.is_settled;
        child.is_settled = true;
        let is_forgotten = child.is_removed
            || child.rules.restart == Restart::Temporary
            || self.strategy == Strategy::Dynamic;
        if counts {
            self.significant -= 1;
            let is_over = match self.auto {
                AutoShutdown::Never => false,
                AutoShutdown::Any => true,
                AutoShutdown::All => self.significant == 0,
            };
            if is_over && !was_asked {
                self.stop(Verdict::Finished, Instant::NEVER);
            }
        }
        if is_forgotten {
            self.forget(id);
        }
    }

    fn forget(&mut self, id: ChildId) {
        if let Some(child) = self.children.remove(&id) {
            self.to_start.remove(&(child.due, id));
            self.significant -= usize::from(child.rules.significant && !child.is_settled);
            self.forgotten.push_back(id);
        }
    }

    /// Plans the restart after a failure of the wanted child, or of its start.
    fn failed(&mut self, id: ChildId, now: Instant) {
        if !lock(&self.window).permits(now) {
            return self.stop(Verdict::GaveUp(id), Instant::NEVER);
        }
        let chance = self.chance();
        let Some(child) = self.children.get_mut(&id) else {
            return;
        };
        let wait = child.streak.failed(now, child.rules.back_off, chance);
        let due = child.due.max(now.after(wait));
        child.due = due;
        self.to_start.insert((due, id));
        let first = match self.strategy {
            Strategy::OneForOne | Strategy::Dynamic => return,
            Strategy::RestForOne => id,
            Strategy::OneForAll => ChildId(0),
        };
        let group: Vec<_> = self.children.range(first..).map(|it| *it.0).collect();
        for id in group {
            self.replace(id, due);
        }
    }

    /// Has the child leave, if it runs, and start again from this time on, if it is wanted.
    fn replace(&mut self, id: ChildId, due: Instant) {
        let Some(child) = self.children.get_mut(&id) else {
            return;
        };
        let before = child.due;
        child.due = before.max(due);
        match child.state {
            State::Off if self.to_start.remove(&(before, id)) => {
                self.to_start.insert((child.due, id));
            }
            State::Off => {}
            State::Runs | State::Asked => {
                child.wanted &= child.rules.restart != Restart::Temporary;
                self.leave(id);
            }
        }
    }

    /// Has the running child leave.
    fn leave(&mut self, id: ChildId) {
        if self.leaving.insert(id) {
            self.to_ask.insert(id);
        }
    }

    /// Stops the child until a question starts it again. Forgets the child if it is temporary, or
    /// `is_removed`. Returns whether the child still runs.
    pub(crate) fn stop_child(&mut self, id: ChildId, is_removed: bool) -> bool {
        let Some(child) = self.children.get_mut(&id) else {
            return false;
        };
        child.wanted = false;
        child.is_removed |= is_removed;
        self.to_start.remove(&(child.due, id));
        if child.state == State::Off {
            self.settle(id, true);
            return false;
        }
        self.leave(id);
        true
    }

    /// Starts the child, or restarts a running child, which is not a failure. Returns `false` for a
    /// child that is being forgotten.
    #[must_use]
    pub(crate) fn restart_child(&mut self, id: ChildId, now: Instant) -> bool {
        if self.is_stopping() {
            return false;
        }
        let Some(child) = self.children.get_mut(&id).filter(|it| !it.is_removed) else {
            return false;
        };
        self.to_start.remove(&(child.due, id));
        child.wanted = true;
        child.streak = Streak::default();
        child.due = now;
        if child.is_settled && child.rules.significant {
            self.significant += 1;
        }
        child.is_settled = false;
        if child.state == State::Off {
            self.to_start.insert((now, id));
        } else {
            self.leave(id);
        }
        true
    }

    /// Stops all children, and then the supervisor. The first verdict counts, and the earliest
    /// deadline.
    pub(crate) fn stop(&mut self, verdict: Verdict, by: Instant) {
        self.must_stop_by(by);
        if self.is_stopping() {
            return;
        }
        self.mode = Mode::Stops(verdict);
        self.to_start.clear();
        let running = |(id, child): (&ChildId, &Child)| (child.state != State::Off).then_some(*id);
        let running: Vec<_> = self.children.iter().filter_map(running).collect();
        for id in running {
            self.leave(id);
        }
    }

    /// Returns whether children end in the reverse order of their start, each before the next child
    /// is asked.
    fn is_ordered(&self) -> bool {
        match self.strategy {
            Strategy::OneForOne => self.is_stopping(),
            Strategy::OneForAll | Strategy::RestForOne => true,
            Strategy::Dynamic => false,
        }
    }

    /// Returns the next act, until `None`. O(log n).
    #[must_use]
    pub(crate) fn next(&mut self, now: Instant) -> Option<Act> {
        if self.mode == Mode::IsOver {
            return None;
        }
        if let Some(id) = self.forgotten.pop_front() {
            return Some(Act::Forget(id));
        }
        if let Some(&(at, id)) = self.kills.first()
            && at <= now
        {
            self.kills.pop_first();
            return Some(Act::Terminate(id));
        }
        if let Some(&id) = self.to_ask.last()
            && (!self.is_ordered() || self.leaving.last() == Some(&id))
        {
            self.to_ask.remove(&id);
            return self.ask(id, now);
        }
        match self.mode {
            Mode::Begins | Mode::Runs => self.next_start(now).map(Act::Start),
            Mode::Stops(verdict) if self.leaving.is_empty() => {
                self.mode = Mode::IsOver;
                Some(Act::End(verdict))
            }
            Mode::Stops(_) | Mode::IsOver => None,
        }
    }

    fn next_start(&mut self, now: Instant) -> Option<ChildId> {
        let &(due, id) = self.to_start.first()?;
        if due > now || (self.is_ordered() && !self.leaving.is_empty()) {
            return None;
        }
        self.to_start.remove(&(due, id));
        Some(id)
    }

    fn ask(&mut self, id: ChildId, now: Instant) -> Option<Act> {
        let (share, last) = (self.share(now), self.stop_by);
        let child = self.children.get_mut(&id)?;
        let was_asked = mem::replace(&mut child.state, State::Asked) == State::Asked;
        let time = match child.rules.stop {
            ShutdownTimeout::AtOnce => return Some(Act::Terminate(id)),
            ShutdownTimeout::Within(time) => time,
            ShutdownTimeout::Unlimited => Duration::MAX,
        };
        let mut by = now.after(time.min(share)).min(last).max(now);
        if was_asked {
            by = by.min(child.kill_at);
            self.kills.remove(&(child.kill_at, id));
        }
        child.kill_at = by;
        if by < Instant::NEVER {
            self.kills.insert((by, id));
        }
        Some(Act::Cancel(id, by))
    }

    /// Returns the share of the next child in the time of the whole stop. Most children need hardly
    /// any time, but the plan does not know the slow ones: an equal share would be too little for
    /// them.
    fn share(&self, now: Instant) -> Duration {
        if self.stop_by == Instant::NEVER {
            return Duration::MAX;
        }
        let left = self.stop_by.since(now);
        if self.is_ordered() && self.leaving.len() > 1 {
            left - left / 3
        } else {
            left
        }
    }

    /// Returns the due time of [`next`](Self::next) without a further event.
    pub(crate) fn due(&self) -> Instant {
        let kill = self.kills.first().map_or(Instant::NEVER, |it| it.0);
        let waits = self.is_stopping() || (self.is_ordered() && !self.leaving.is_empty());
        let start = self.to_start.first().filter(|_| !waits);
        kill.min(start.map_or(Instant::NEVER, |it| it.0))
    }

    /// Returns a random number from 0 to 1. (SplitMix64)
    fn chance(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as f64 / u64::MAX as f64
    }
}

#[cfg(test)]
mod tests;
