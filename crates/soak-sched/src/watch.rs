//! The waits of a soak's drivers, and its progress.
//!
//! The watchdog reads this state from a thread of its own. The watchdog reads a few counts only, so
//! as not to slow the soak down.

use crate::account::Account;
use ganger::WeakHandle;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How often a waiting thread yields before it sleeps for a moment between two looks.
const YIELDS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_micros(200);

/// The soak, as its watchdog sees it.
#[derive(Debug, Default)]
pub struct Watch {
    state: Mutex<State>,
    rounds: AtomicU64,
    is_interrupted: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// The present work, for people: the round's plan, and the seed that repeats the round.
    round: String,
    schedulers: Vec<(WeakHandle, Arc<Account>)>,
    /// The wait of each driver.
    waits: BTreeMap<u64, String>,
    next_wait: u64,
}

impl Watch {
    /// Notes that a round begins.
    pub fn begin(&self, round: impl Into<String>) {
        // Ordering: Relaxed: the watchdog may see it late.
        self.rounds.fetch_add(1, Ordering::Relaxed);
        self.state().round = round.into();
    }

    /// Adds a scheduler to the watch, until the scheduler is gone.
    pub fn add(&self, scheduler: WeakHandle, account: &Arc<Account>) {
        let mut state = self.state();
        state
            .schedulers
            .retain(|(scheduler, _)| scheduler.upgrade().is_some());
        state.schedulers.push((scheduler, Arc::clone(account)));
    }

    /// Waits until `condition` holds, perhaps for ever: the watchdog ends the soak when nothing
    /// moves.
    pub fn until(&self, what: &str, mut condition: impl FnMut() -> bool) {
        if condition() {
            return;
        }
        let name = thread::current().name().unwrap_or("a thread").to_owned();
        let _waits = self.wait(format!("{name} waits until {what}"));
        let mut looks = 0;
        while !condition() {
            looks += 1;
            if looks < YIELDS {
                thread::yield_now();
            } else {
                thread::sleep(BETWEEN_LOOKS);
            }
        }
    }

    /// Names the wait of a thread, until the guard is dropped.
    pub fn wait(&self, what: String) -> Waits<'_> {
        let mut state = self.state();
        let number = state.next_wait;
        state.next_wait += 1;
        state.waits.insert(number, what);
        Waits {
            watch: self,
            number,
        }
    }

    /// Notes that the user wants the soak to end.
    pub fn interrupt(&self) {
        // Ordering: Relaxed: it only ends the soak between two rounds.
        self.is_interrupted.store(true, Ordering::Relaxed);
    }

    /// Returns whether the soak should end.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        // Ordering: Relaxed: the flag publishes nothing else.
        self.is_interrupted.load(Ordering::Relaxed)
    }

    /// Returns the number of begun rounds, and a number that changes whenever something moves.
    pub(crate) fn progress(&self) -> (u64, u64) {
        // Ordering: Relaxed: the watchdog may see the count late.
        let rounds = self.rounds.load(Ordering::Relaxed);
        let state = self.state();
        let moves = state.schedulers.iter().map(|(scheduler, account)| {
            let total = scheduler.upgrade().map(|it| it.stats().total);
            let stats = total.map_or(0, |total| total.turns + total.steps + total.ended());
            stats.wrapping_add(account.totals().sum())
        });
        (rounds, moves.fold(state.next_wait, u64::wrapping_add))
    }

    /// Returns each scheduler, its account, the drivers' waits, and the round.
    pub(crate) fn report(&self) -> String {
        let state = self.state();
        let mut report = String::new();
        writeln!(report, "{}", state.round).expect("a string takes everything");
        for wait in state.waits.values() {
            writeln!(report, "{wait}").expect("a string takes everything");
        }
        for (scheduler, account) in &state.schedulers {
            if let Some(scheduler) = scheduler.upgrade() {
                let dump = scheduler.dump();
                writeln!(
                    report,
                    "{dump}{:?}\n{:?}",
                    account.totals(),
                    dump.stats.total
                )
                .expect("a string takes everything");
            }
        }
        report
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`Watch::wait`].
#[derive(Debug)]
pub struct Waits<'a> {
    watch: &'a Watch,
    number: u64,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.watch.state().waits.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for_is_told_while_it_is() {
        let watch = Watch::default();
        let mut looks = 0;
        watch.until("the third look", || {
            looks += 1;
            assert_eq!(
                watch.report().contains("waits until the third look"),
                looks > 1
            );
            looks == 3
        });
        assert!(!watch.report().contains("waits"));
    }

    #[test]
    fn a_count_of_an_account_is_a_move() {
        let scheduler = ganger::Scheduler::builder().workers(1).build().unwrap();
        let (watch, account) = (Watch::default(), Arc::new(Account::default()));
        watch.add(scheduler.downgrade(), &account);
        let before = watch.progress();
        assert_eq!(watch.progress(), before);
        account.commands.bump();
        assert_ne!(watch.progress(), before);
    }
}
