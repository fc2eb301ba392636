//! Operations on a wheel, and checks after each of them against a list of the expected timers. Both
//! the property test and the fuzz target make operations from bytes.

use ganger_wheel::{Key, Wheel};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// An operation on the wheel. Times are relative to the latest time given to the wheel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Insert(Time),
    /// Picks a timer by number.
    Cancel(u8),
    Reset(u8, Time),
    /// By how much, and at most how many timers.
    Advance(u64, usize),
    /// To a time before the latest time, with at most how many timers.
    GoBack(u64, usize),
    /// Until no due timer remains, with at most how many timers a call.
    Settle(u64, usize),
    /// To the moment of `next_due`, or some units before it.
    ToNext(u64),
    Drain(u8),
    Clear,
    Shrink,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Time {
    In(u64),
    Ago(u64),
    /// A span before the end of time.
    BeforeNever(u64),
}

/// The bytes of an operation.
pub(crate) const BYTES: usize = 4;

impl Op {
    /// Makes an operation of any bytes.
    pub(crate) fn from_bytes([kind, which, exponent, mantissa]: [u8; BYTES]) -> Self {
        let span = span(exponent, mantissa);
        let most = match which % 4 {
            0 => 1 << (which / 4 % 12),
            _ => 1 + usize::from(which / 4),
        };
        match kind % 32 {
            0..=9 => Self::Insert(Time::new(which, span)),
            10..=12 => Self::Cancel(which),
            13..=15 => Self::Reset(which, Time::new(mantissa, span)),
            16..=20 => Self::Advance(span, most),
            21 => Self::GoBack(span, most),
            22..=25 => Self::Settle(span, most),
            26..=28 => Self::ToNext(span % 2_048),
            29 => Self::Drain(which % 8),
            30 if which % 8 == 0 => Self::Clear,
            _ => Self::Shrink,
        }
    }
}

/// Returns 0 to 2^63: mostly values of the lower levels.
fn span(exponent: u8, mantissa: u8) -> u64 {
    let bits = match exponent / 64 {
        0 => exponent % 64,
        1 => 8 + exponent % 16,
        2 => 8 + exponent % 32,
        _ => exponent % 16,
    };
    (1 << bits >> 8) * u64::from(mantissa) + (1 << bits) * u64::from(mantissa % 2)
}

impl Time {
    fn new(choice: u8, span: u64) -> Self {
        match choice % 16 {
            0 => Self::Ago(span),
            1 => Self::BeforeNever(span),
            _ => Self::In(span),
        }
    }

    fn from(self, now: u64) -> u64 {
        match self {
            Self::In(span) => now.saturating_add(span),
            Self::Ago(span) => now.saturating_sub(span),
            Self::BeforeNever(span) => u64::MAX - span,
        }
    }
}

/// For each value by its id, whether the value still exists.
type Ledger = Rc<RefCell<Vec<bool>>>;

struct Value {
    id: usize,
    ledger: Ledger,
}

impl Drop for Value {
    fn drop(&mut self) {
        let was_there = std::mem::replace(&mut self.ledger.borrow_mut()[self.id], false);
        assert!(was_there, "{} is dropped twice", self.id);
    }
}

#[derive(Clone, Copy, Debug)]
struct Timer {
    key: Key,
    at: u64,
    /// The tick in which the timer fires; only the order of ticks matters.
    tick: u64,
}

/// The wheel, and the expected timers by their ids.
pub(crate) struct Checker {
    wheel: Wheel<Value>,
    timers: BTreeMap<usize, Timer>,
    stale: Vec<Key>,
    ledger: Ledger,
    /// The latest time given to the wheel.
    now: u64,
    /// Whether no timer is due and no due slot remains to be moved.
    is_settled: bool,
    /// How many timers have been removed or reset since the wheel was empty. Each of them may cost
    /// an early moment.
    taken: usize,
    /// Whether the ticks of all timers tell their order.
    is_ordered: bool,
}

const TICK: u64 = Wheel::<()>::TICK;

/// Returns the first tick from `at` on.
fn tick_of(at: u64) -> u64 {
    at.div_ceil(TICK)
}

impl Checker {
    pub(crate) fn new() -> Self {
        Self {
            wheel: Wheel::new(),
            timers: BTreeMap::new(),
            stale: Vec::new(),
            ledger: Ledger::default(),
            now: 0,
            is_settled: true,
            taken: 0,
            is_ordered: true,
        }
    }

    /// Plays operations, then drops the wheel: each value must be dropped exactly once.
    pub(crate) fn play(ops: impl IntoIterator<Item = Op>) {
        let mut checker = Self::new();
        for op in ops {
            checker.apply(op);
            checker.check();
        }
        let ledger = Rc::clone(&checker.ledger);
        drop(checker);
        assert!(ledger.borrow().iter().all(|&is_there| !is_there), "leaked");
    }

    /// Plays operations encoded as bytes.
    pub(crate) fn play_bytes(bytes: &[u8]) {
        let (ops, _rest) = bytes.as_chunks();
        Self::play(ops.iter().copied().map(Op::from_bytes));
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Insert(time) => self.insert(time.from(self.now)),
            Op::Cancel(which) => self.cancel(which),
            Op::Reset(which, time) => self.reset(which, time.from(self.now)),
            Op::Advance(by, most) => _ = self.advance(self.now.saturating_add(by), most),
            Op::GoBack(by, most) => _ = self.advance(self.now.saturating_sub(by), most),
            Op::Settle(by, most) => self.settle(self.now.saturating_add(by), most),
            Op::ToNext(before) => self.advance_to_next(before),
            Op::Drain(count) => self.drain(count.into()),
            Op::Clear => self.clear(),
            Op::Shrink => self.wheel.shrink(),
        }
    }

    fn insert(&mut self, at: u64) {
        let id = self.ledger.borrow().len();
        self.ledger.borrow_mut().push(true);
        let ledger = Rc::clone(&self.ledger);
        let key = self.wheel.insert(at, Value { id, ledger });
        let tick = self.order_of(at);
        let before = self.timers.insert(id, Timer { key, at, tick });
        assert!(before.is_none());
        assert!(!self.stale.contains(&key), "{key:?} is used twice");
    }

    /// Returns the tick of a deadline in the order. A due timer counts with the wheel's tick, which
    /// is unknown until the wheel is settled.
    fn order_of(&mut self, at: u64) -> u64 {
        self.is_ordered &= self.is_settled || tick_of(at) > self.now / TICK;
        tick_of(at).max(self.now / TICK)
    }

    fn pick(&self, which: u8) -> Option<(usize, Timer)> {
        let nth = usize::from(which).checked_rem(self.timers.len())?;
        self.timers.iter().nth(nth).map(|(&id, &timer)| (id, timer))
    }

    fn cancel(&mut self, which: u8) {
        if let Some((id, timer)) = self.pick(which) {
            let value = self.wheel.cancel(timer.key).expect("it waits");
            self.is_gone(&value);
            self.taken += 1;
            assert_eq!(value.id, id);
        }
    }

    fn reset(&mut self, which: u8, at: u64) {
        if let Some((id, timer)) = self.pick(which) {
            assert_eq!(self.wheel.reset(timer.key, at), Some(timer.at));
            let tick = self.order_of(at);
            self.timers.insert(id, Timer { at, tick, ..timer });
            self.taken += 1;
        }
    }

    /// Returns whether due timers remain.
    fn advance(&mut self, now: u64, most: usize) -> bool {
        self.is_settled &= now <= self.now;
        self.now = self.now.max(now);
        let mut fired = Vec::new();
        let more = self.wheel.advance(now, most, |value| fired.push(value));
        assert!(fired.len() <= most);
        let mut last = 0;
        for value in &fired {
            let timer = self.is_gone(value);
            assert!(timer.at <= self.now, "early");
            assert!(!self.is_ordered || last <= timer.tick, "out of order");
            last = timer.tick;
        }
        let mut left = self.timers.values();
        assert!(!self.is_ordered || left.all(|timer| last <= timer.tick));
        // After a call with an earlier time, due timers may remain.
        let time = if self.is_settled { self.now } else { now };
        if !more {
            let is_due = |timer: &Timer| tick_of(timer.at) <= time / TICK;
            assert!(!self.timers.values().any(is_due), "late");
        }
        self.is_settled = !more && time == self.now;
        self.is_ordered |= self.is_settled;
        more
    }

    /// Advances until no timer is due. A timer moves down at most once from each level, which
    /// bounds the number of calls.
    fn settle(&mut self, now: u64, most: usize) {
        let moves = self.timers.len() * 10;
        for _ in 0..=moves / most {
            if !self.advance(now, most) {
                return;
            }
        }
        panic!("more than {moves} moves");
    }

    fn advance_to_next(&mut self, before: u64) {
        let Some(next) = self.wheel.next_due().filter(|&next| next > self.now) else {
            return;
        };
        let earlier = next.saturating_sub(before).max(self.now);
        let count = self.timers.len();
        self.settle(earlier, usize::MAX);
        if self.timers.len() < count {
            assert_eq!(earlier, next, "too late");
        } else if earlier == next {
            let left = self.taken.checked_sub(1);
            self.taken = left.expect("too early, and nothing has been taken away");
        }
    }

    fn drain(&mut self, count: usize) {
        let taken: Vec<_> = self.wheel.drain().take(count).collect();
        assert_eq!(taken.len(), count.min(self.timers.len()));
        for value in &taken {
            self.is_gone(value);
            self.taken += 1;
        }
    }

    fn clear(&mut self) {
        self.wheel.clear();
        let timers = std::mem::take(&mut self.timers);
        self.stale.extend(timers.values().map(|timer| timer.key));
        assert!(self.ledger.borrow().iter().all(|&is_there| !is_there));
    }

    /// Records that the wheel has returned a value.
    fn is_gone(&mut self, value: &Value) -> Timer {
        let timer = self.timers.remove(&value.id).expect("returned twice");
        self.stale.push(timer.key);
        timer
    }

    fn check(&mut self) {
        if self.timers.is_empty() {
            self.taken = 0;
        }
        assert_eq!(self.wheel.len(), self.timers.len());
        assert_eq!(self.wheel.is_empty(), self.timers.is_empty());
        for (&id, timer) in &self.timers {
            assert_eq!(self.wheel.get(timer.key).map(|value| value.id), Some(id));
            assert_eq!(self.wheel.deadline(timer.key), Some(timer.at));
        }
        for &key in &self.stale {
            assert!(self.wheel.cancel(key).is_none());
            assert!(self.wheel.get(key).is_none());
            assert_eq!(self.wheel.deadline(key), None);
            assert_eq!(self.wheel.reset(key, 0), None);
        }
        let ticks = self.timers.values().map(|timer| tick_of(timer.at));
        let earliest = ticks.min().and_then(|tick| tick.checked_mul(TICK));
        let next = self.wheel.next_due();
        if earliest.is_some_and(|at| at <= self.now) {
            assert!(next.is_some_and(|at| at <= self.now));
        } else if self.taken == 0 {
            assert_eq!(next, earliest);
        } else {
            assert!(
                next.unwrap_or(u64::MAX) <= earliest.unwrap_or(u64::MAX),
                "late"
            );
        }
    }
}
