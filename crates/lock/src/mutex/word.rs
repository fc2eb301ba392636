//! The owner of a mutex, and its successor, by the rule of Go's `sync.Mutex`.
//!
//! **Problem.** The lock should be fast while few want it, and no waiter should wait for long while
//! many do.
//!
//! **Rejected.** A queue for all: each turn waits until the next owner has been woken, which takes
//! longer than most critical sections. A lock that newcomers may always take: a waiter must first
//! be woken, and loses to them for ever.
//!
//! **Protocol.** *Normal mode*: a free lock goes to the first taker. The owner's unlock wakes the
//! first in the queue. This waiter then tries like a newcomer, and goes back to the *front* when it
//! loses. A single waiter is awake at a time. A waiter that loses after a wait of a millisecond
//! turns *starvation mode* on: now the owner hands the lock over to the first in the queue.
//! Newcomers don't try, and go to the end. The mode ends when the lock goes to the last in the
//! queue, or to a waiter of less than a millisecond.
//!
//! A newcomer spins a little in normal mode, and says so by `WOKEN`: the owner then wakes no other.
//!
//! **Why no waiter sleeps while the lock is free.** A waiter enters the queue by a CAS from a word
//! with `LOCKED` or `STARVING`, under the lock of the queue. The unlock that takes `LOCKED` away
//! comes later, and finds `WAITING`. The unlock wakes a waiter, unless a waiter is awake. The woken
//! waiter takes the lock, or enters the queue again from a word with `LOCKED`, and takes `WOKEN`
//! away in the same operation. A woken waiter that gives up does the work of the unlock.

use ganger_sched::internal::here;
use ganger_sync::atomic::{AtomicU32, Ordering};
use ganger_sync::sync::{Mutex, MutexGuard, lock};
use ganger_sync::{hint, sized};
use ganger_wait::{Left, WaitQueue, Waiter, WaiterKey, watch};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

/// A process or thread has it.
const LOCKED: u32 = 1;
/// A contender is awake, and tries: an unlock wakes no other.
const WOKEN: u32 = 2;
/// The lock is handed over to the first in the queue.
const STARVING: u32 = 4;
/// The queue has an entry. Changes under the lock of the queue.
const WAITING: u32 = 8;

/// Returns the time after which a losing waiter turns starvation mode on.
#[cfg(not(ganger_loom))]
fn patience() -> Duration {
    Duration::from_millis(1)
}

/// Returns zero in a model, where no time passes: each loser turns starvation mode on, unless the
/// model sets `IS_PATIENT`.
#[cfg(ganger_loom)]
fn patience() -> Duration {
    Duration::from_nanos(u64::from(IS_PATIENT.get()))
}

#[cfg(ganger_loom)]
std::thread_local! {
    /// The threads of a model are one thread to the system.
    pub(super) static IS_PATIENT: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// How often a newcomer looks, and how long it pauses between two looks.
const LOOKS: usize = sized(4, 1);
const PAUSES: usize = sized(30, 0);

/// The cases as which a waiter is claimed.
const TRY: u32 = 0;
const OWNER: u32 = 1;

/// The word, and the queue. An item is the time of its waiter's arrival.
///
/// | word | a newcomer | an unlock |
/// |---|---|---|
/// | 0 | takes it | |
/// | `LOCKED` | spins, then enters | takes `LOCKED` away |
/// | `LOCKED + WAITING` | the same | the same, and wakes the first as `WOKEN` |
/// | `… + WOKEN` | the same | wakes none |
/// | `… + STARVING` | enters | makes the first the owner |
/// | `STARVING + WAITING` | enters | is under way |
pub(super) struct Word {
    word: AtomicU32,
    queue: Mutex<WaitQueue<Duration>>,
}

impl Word {
    pub(super) fn new() -> Self {
        Self {
            word: AtomicU32::new(0),
            queue: Mutex::new(WaitQueue::new()),
        }
    }

    #[inline]
    pub(super) fn try_lock(&self) -> bool {
        // Ordering: Acquire pairs with the Release in `unlock`. A failure reads nothing.
        self.word
            .compare_exchange(0, LOCKED, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            || self.try_barge(0)
    }

    pub(super) fn is_locked(&self) -> bool {
        // Ordering: Relaxed, because it is right about some moment alone.
        self.word.load(Ordering::Relaxed) & LOCKED != 0
    }

    /// Takes the lock, if it is free and not in starvation mode. `own` is `WOKEN` if the bit is the
    /// caller's.
    #[cold]
    fn try_barge(&self, own: u32) -> bool {
        // Ordering: Acquire pairs with the Release in `unlock`.
        self.word
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, |word| {
                (word & (LOCKED | STARVING) == 0).then_some((word | LOCKED) & !own)
            })
            .is_ok()
    }

    /// Unlocks the mutex, which the caller has.
    #[inline]
    pub(super) fn unlock(&self) {
        // Ordering: Release pairs with the Acquire in `try_lock`, `try_barge` and `enter`.
        let word = self.word.fetch_sub(LOCKED, Ordering::Release) - LOCKED;
        if word != 0 {
            self.pass_on();
        }
    }

    /// Wakes the next waiter after an unlock, or makes the waiter the owner.
    #[cold]
    fn pass_on(&self) {
        // Locked before the look: a newly made owner may unlock while the thread that made it the
        // owner still ends starvation mode.
        let mut queue = lock(&self.queue);
        // Ordering: Relaxed, because the lock of the queue orders the queue's entries.
        let woken = self
            .word
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| {
                let is_due = word & WAITING != 0 && word & (LOCKED | WOKEN | STARVING) == 0;
                is_due.then_some(word | WOKEN)
            });
        let next = match woken {
            Ok(_) => {
                let next = queue.pop_as(TRY);
                let over = if next.is_none() { WOKEN } else { 0 };
                self.clear(over, &queue);
                next
            }
            Err(word) if word & (LOCKED | STARVING) == STARVING => self.hand_over(&mut queue),
            Err(_) => None,
        };
        drop(queue);
        if let Some(entry) = next {
            entry.waiter.wake();
        }
    }

    /// Makes the first waiter in the queue the owner, in starvation mode, with the lock not held.
    fn hand_over(&self, queue: &mut Queue<'_>) -> Option<ganger_wait::WaiterEntry<Duration>> {
        // Ordering: Acquire pairs with the Release in `unlock`, which may be another thread's: the
        // claim below shows the new owner the last owner's writes. Another unlock may have been
        // here.
        if self.word.load(Ordering::Acquire) & (LOCKED | STARVING) != STARVING {
            return None;
        }
        // Before the claim: the new owner may look by itself, and unlock at once.
        // Ordering: Relaxed, because the load above acquires, and the claim publishes. No newcomer
        // takes the lock in this mode.
        self.word.fetch_or(LOCKED, Ordering::Relaxed);
        let next = queue.pop_as(OWNER);
        let Some(entry) = &next else {
            // The word stays in the release sequence of the last unlock.
            self.clear(LOCKED | STARVING, queue);
            return None;
        };
        let is_over = queue.is_empty() || waited(entry.item) < patience();
        self.clear(if is_over { STARVING } else { 0 }, queue);
        next
    }

    /// Takes these bits away, and `WAITING` if the queue is empty.
    fn clear(&self, bits: u32, queue: &WaitQueue<Duration>) {
        let bits = bits | if queue.is_empty() { WAITING } else { 0 };
        if bits != 0 {
            // Ordering: Relaxed, because these bits publish nothing.
            self.word.fetch_and(!bits, Ordering::Relaxed);
        }
    }

    /// Looks a few times whether the lock becomes free. Says whether it has it, and otherwise
    /// whether `WOKEN` is the caller's.
    fn spin(&self, mut own: u32) -> Result<(), u32> {
        for _ in 0..LOOKS {
            // Ordering: Relaxed, because `try_barge` acquires.
            let word = self.word.load(Ordering::Relaxed);
            if word & STARVING != 0 {
                break;
            }
            if word & LOCKED == 0 {
                if self.try_barge(own) {
                    return Ok(());
                }
                continue;
            }
            if own == 0 && word & (WOKEN | WAITING) == WAITING {
                // Ordering: Relaxed, because the bit publishes nothing.
                let change = self.word.compare_exchange(
                    word,
                    word | WOKEN,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
                own = if change.is_ok() { WOKEN } else { 0 };
            }
            // Loom has no pauses: not written as a range, which would be empty there.
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
            hint::spin_loop();
        }
        Err(own)
    }
}

/// Returns the time; in a model, time stands still, so that each run goes the same way.
fn now() -> Duration {
    if cfg!(ganger_loom) {
        return Duration::ZERO;
    }
    here::now()
}

fn waited(since: Duration) -> Duration {
    now().saturating_sub(since)
}

type Queue<'a> = MutexGuard<'a, WaitQueue<Duration>>;

/// A wait for the lock.
pub(super) struct Wait {
    waiter: Arc<Waiter>,
    key: WaiterKey,
    since: Duration,
    _registered: watch::Registered,
}

impl Word {
    /// Takes the lock, or begins to wait.
    #[cold]
    pub(super) fn begin(&self) -> Option<Wait> {
        let own = self.spin(0).err()?;
        let waiter = Arc::new(Waiter::new());
        let since = now();
        let key = self.enter(&waiter, since, own, false)?;
        Some(Wait {
            waiter,
            key,
            since,
            _registered: watch::wait(|| self.thing()),
        })
    }

    /// Returns the name of the mutex in a report of a deadlock.
    pub(super) fn thing(&self) -> watch::Thing {
        watch::Thing::of("mutex", self)
    }

    /// Takes the lock, or enters the queue: at its front after a wait.
    fn enter(
        &self,
        waiter: &Arc<Waiter>,
        since: Duration,
        own: u32,
        has_waited: bool,
    ) -> Option<WaiterKey> {
        let is_late = has_waited && waited(since) >= patience();
        let starves = if is_late { STARVING } else { 0 };
        let mut queue = lock(&self.queue);
        // Ordering: Acquire pairs with the Release in `unlock`, where the lock is taken.
        let entered = self
            .word
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, |word| {
                let next = match word & (LOCKED | STARVING) {
                    0 => word | LOCKED,
                    STARVING => word | WAITING,
                    _ => word | WAITING | starves,
                };
                Some(next & !own)
            });
        let (Ok(before) | Err(before)) = entered;
        if before & (LOCKED | STARVING) == 0 {
            return None;
        }
        Some(if has_waited {
            queue.push_front(Arc::clone(waiter), TRY, since)
        } else {
            queue.push_back(Arc::clone(waiter), TRY, since)
        })
    }

    /// Returns ready when the wait has led to the lock. Otherwise `waker` is woken for the next
    /// look.
    pub(super) fn poll(&self, wait: &mut Wait, waker: &Waker) -> Poll<()> {
        loop {
            match wait.waiter.poll(waker) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(OWNER) => return Poll::Ready(()),
                Poll::Ready(_) => {
                    let Err(own) = self.spin(WOKEN) else {
                        return Poll::Ready(());
                    };
                    wait.waiter.reset();
                    match self.enter(&wait.waiter, wait.since, own, true) {
                        None => return Poll::Ready(()),
                        Some(key) => wait.key = key,
                    }
                }
            }
        }
    }

    /// Gives up a wait. Passes on the lock, or the wake, for which the waiter was claimed.
    #[cold]
    pub(super) fn give_up(&self, wait: &Wait) {
        let mut queue = lock(&self.queue);
        let left = wait.waiter.leave();
        let entry = queue.remove(wait.key);
        self.clear(0, &queue);
        drop(queue);
        drop(entry);
        match left {
            Left::InTime => {}
            Left::Claimed(OWNER) => self.unlock(),
            Left::Claimed(_) => {
                // Ordering: Relaxed, because the bit publishes nothing.
                self.word.fetch_and(!WOKEN, Ordering::Relaxed);
                self.pass_on();
            }
        }
    }
}

#[cfg(test)]
impl Word {
    /// Turns starvation mode on, as a long wait does.
    pub(super) fn starve(&self) {
        // Ordering: Relaxed: a test, whose thread has the lock.
        self.word.fetch_or(STARVING, Ordering::Relaxed);
    }
}
