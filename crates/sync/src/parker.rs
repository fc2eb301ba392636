//! Blocks a thread until another thread wakes it.
//!
//! **Problem.** A worker without work must sleep without using a processor. An [`unpark`] that
//! comes just before the worker sleeps must not be lost.
//!
//! **Rejected.** `std::thread::park`: its token belongs to the thread, so a user's step that parks
//! its thread would take the scheduler's token. A bare condition variable: every wake-up would take
//! the lock, even while no thread sleeps.
//!
//! **Protocol of the sleeper** ([`park`]):
//! 1. `NOTIFIED -> EMPTY`: take the token, if present, and return.
//! 2. Lock, then `EMPTY -> PARKED`. If this fails, a token has come meanwhile: take it and return.
//! 3. Wait on the condition variable until `NOTIFIED -> EMPTY` succeeds.
//!
//! **Protocol of the waker** ([`unpark`]):
//! 1. Swap in `NOTIFIED`. Only if the old state is `PARKED`, go on with step 2.
//! 2. Lock and unlock. The sleeper is then waiting, or sees the token before it waits.
//! 3. Signal.
//!
//! **Why no token is lost.** The sleeper sets and re-checks `PARKED` under the lock. A waker that
//! swaps it out takes the lock afterwards, so its signal cannot come between the sleeper's check
//! and its wait. A token set before `PARKED` ends the sleeper's step 1 or 2.
//!
//! **Elsewhere.** The owner may wait in another call that a thread can interrupt
//! ([`wait_elsewhere`]). The owner announces this with the state `ELSEWHERE`, and a waker that
//! swaps this state out interrupts the call ([`unpark_or`]). An interrupt may come after the wait:
//! it must then end the next wait.
//!
//! [`park`]: Parker::park
//! [`unpark`]: Parker::unpark
//! [`wait_elsewhere`]: Parker::wait_elsewhere
//! [`unpark_or`]: Parker::unpark_or

use crate::atomic::{AtomicU32, Ordering};
use crate::sync::{Condvar, Mutex, lock};
use std::sync::{Arc, PoisonError};
use std::task::Wake;
use std::time::Duration;

/// No token, and no sleeper.
const EMPTY: u32 = 0;
/// The owner sleeps, or is about to.
const PARKED: u32 = 1;
/// A token is set.
const NOTIFIED: u32 = 2;
/// The owner waits elsewhere, or is about to.
const ELSEWHERE: u32 = 3;

/// A place where a thread sleeps and any thread wakes the sleeper. The place remembers at most one
/// wake-up.
///
/// Only a single thread at a time may call [`park`](Self::park) or
/// [`park_timeout`](Self::park_timeout).
///
/// ```
/// let parker = ganger_sync::Parker::new();
/// parker.unpark();
/// parker.park(); // takes the token, and returns at once
/// ```
///
/// | state | written by | meaning |
/// |---|---|---|
/// | `EMPTY` | sleeper | no token |
/// | `PARKED` | sleeper, under the lock | a waker owes a signal |
/// | `NOTIFIED` | wakers | the next `park` returns at once |
/// | `ELSEWHERE` | sleeper | a waker owes an interrupt |
#[derive(Debug)]
pub struct Parker {
    state: AtomicU32,
    lock: Mutex<()>,
    signal: Condvar,
}

impl Default for Parker {
    fn default() -> Self {
        Self::new()
    }
}

impl Parker {
    /// Creates a parker without a token.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: AtomicU32::new(EMPTY),
            lock: Mutex::new(()),
            signal: Condvar::new(),
        }
    }

    /// Blocks until a token is set, and takes it.
    pub fn park(&self) {
        if self.take_token() {
            return;
        }
        let mut guard = lock(&self.lock);
        if !self.announce(PARKED) {
            return;
        }
        loop {
            guard = self
                .signal
                .wait(guard)
                .unwrap_or_else(PoisonError::into_inner);
            if self.take_token() {
                return;
            }
        }
    }

    /// Blocks until a token is set, and takes it, or until `timeout` has passed. Returns whether it
    /// took a token.
    ///
    /// Loom has no clock: under loom it waits for the token, unless `timeout` is zero.
    pub fn park_timeout(&self, timeout: Duration) -> bool {
        if self.take_token() {
            return true;
        }
        let guard = lock(&self.lock);
        if !self.announce(PARKED) {
            return true;
        }
        let _guard = self.wait_while_parked(guard, timeout);
        // Ordering: Acquire pairs with the Release swap in `unpark`.
        self.state.swap(EMPTY, Ordering::Acquire) == NOTIFIED
    }

    /// Calls `wait`, which an interrupt ends, unless a token is set. Takes a token set before or
    /// during the wait. Returns whether it took a token.
    ///
    /// ```
    /// let parker = ganger_sync::Parker::new();
    /// assert!(parker.wait_elsewhere(|| parker.unpark_or(|| println!("wake up"))));
    /// assert!(!parker.wait_elsewhere(|| ()));
    /// ```
    pub fn wait_elsewhere(&self, wait: impl FnOnce()) -> bool {
        if !self.announce(ELSEWHERE) {
            return true;
        }
        wait();
        // Ordering: Acquire pairs with the Release swap in `unpark_or`.
        self.state.swap(EMPTY, Ordering::Acquire) == NOTIFIED
    }

    /// Sets the token, and wakes the sleeper, if any. Blocks at most while the sleeper holds the
    /// lock, for a few instructions.
    pub fn unpark(&self) {
        self.unpark_or(|| ());
    }

    /// Sets the token, as [`unpark`](Self::unpark) does, and calls `interrupt` if the owner waits
    /// elsewhere.
    pub fn unpark_or(&self, interrupt: impl FnOnce()) {
        // Ordering: Release pairs with the Acquire of `take_token`, `announce`, `park_timeout` and
        // `wait_elsewhere`. A RMW even if a token is set already, so the owner sees everything
        // before this call.
        match self.state.swap(NOTIFIED, Ordering::AcqRel) {
            PARKED => {
                drop(lock(&self.lock));
                self.signal.notify_one();
            }
            ELSEWHERE => interrupt(),
            _ => {}
        }
    }

    /// Returns whether a token is set, so that [`park`](Self::park) would return at once.
    #[must_use]
    pub fn has_token(&self) -> bool {
        // Ordering: Relaxed, because a caller that acts on it takes the token first.
        self.state.load(Ordering::Relaxed) == NOTIFIED
    }

    fn take_token(&self) -> bool {
        // Ordering: Acquire pairs with the Release swap in `unpark`. A failure takes nothing.
        self.state
            .compare_exchange(NOTIFIED, EMPTY, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Changes `EMPTY` to `PARKED`, under the lock, or to `ELSEWHERE`. Returns `false` if a token
    /// was set, which it takes.
    fn announce(&self, how: u32) -> bool {
        // Ordering: Relaxed on success, because the lock, or the interrupt, orders it against the
        // waker that swaps it out. On failure the swap below acquires.
        if self
            .state
            .compare_exchange(EMPTY, how, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
        {
            return true;
        }
        // Ordering: Acquire pairs with the Release swap in `unpark`.
        self.state.swap(EMPTY, Ordering::Acquire);
        false
    }

    #[cfg(not(ganger_loom))]
    fn wait_while_parked<'a>(
        &self,
        guard: crate::sync::MutexGuard<'a, ()>,
        timeout: Duration,
    ) -> crate::sync::MutexGuard<'a, ()> {
        // Ordering: Relaxed, because the caller's swap acquires.
        self.signal
            .wait_timeout_while(guard, timeout, |()| {
                self.state.load(Ordering::Relaxed) == PARKED
            })
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }

    #[cfg(ganger_loom)]
    fn wait_while_parked<'a>(
        &self,
        mut guard: crate::sync::MutexGuard<'a, ()>,
        timeout: Duration,
    ) -> crate::sync::MutexGuard<'a, ()> {
        if timeout.is_zero() {
            return guard;
        }
        // Ordering: Relaxed, because the caller's swap acquires.
        while self.state.load(Ordering::Relaxed) == PARKED {
            guard = self
                .signal
                .wait(guard)
                .unwrap_or_else(PoisonError::into_inner);
        }
        guard
    }
}

/// As a waker, it sets the token.
impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.unpark();
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_token_left_before_is_taken() {
        let parker = Parker::new();
        parker.unpark();
        parker.unpark();
        parker.park();
        assert!(
            !parker.park_timeout(Duration::ZERO),
            "two unparks leave one token"
        );
    }

    #[test]
    fn a_wait_elsewhere_is_interrupted_once() {
        let parker = Parker::new();
        let mut interrupts = 0;
        let woken = parker.wait_elsewhere(|| {
            parker.unpark_or(|| interrupts += 1);
            parker.unpark_or(|| interrupts += 1);
        });
        assert!(woken && interrupts == 1);
        parker.unpark_or(|| interrupts += 1);
        assert!(parker.wait_elsewhere(|| panic!("there is a token")));
        assert!(!parker.wait_elsewhere(|| ()) && interrupts == 1);
    }

    #[test]
    fn every_handshake_arrives() {
        let (ping, pong) = (Arc::new(Parker::new()), Arc::new(Parker::new()));
        let other = {
            let (ping, pong) = (Arc::clone(&ping), Arc::clone(&pong));
            std::thread::spawn(move || {
                for _ in 0..10_000 {
                    ping.park();
                    pong.unpark();
                }
            })
        };
        for _ in 0..10_000 {
            ping.unpark();
            pong.park();
        }
        other.join().unwrap();
    }
}
