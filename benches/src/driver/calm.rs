//! The calm before a run: load of other programs would be taken for slowness of the run.
//!
//! The foreign load is the time in which the processors have neither idled nor run this program.
//! The kernel's account of busy time is no use: it samples at ticks, and counts loops of idle
//! priority like all other threads. Time taken away by the host counts as load, too.
//!
//! 1. Before a run, measure the foreign load for a moment.
//! 2. If the load is low, the run begins; otherwise measure again.
//! 3. After a number of measurements the run begins anyhow, and counts as a run on a busy machine.

use super::stop::Stop;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The load before runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calm {
    /// How many runs there were.
    pub runs: u64,
    /// Before how many of them the machine did not get calm.
    pub busy: u64,
    /// The mean share of the processors that other programs used before a run, in percent.
    pub load: f64,
}

/// How long a look takes. The kernel's account of idling is in hundredths of a second.
const LOOK: Duration = Duration::from_millis(250);

/// The limit of looks before a run: three seconds.
const LOOKS: u32 = 12;

/// The share of the processors, in percent, that other programs may use on a calm machine.
const MOST: f64 = 5.0;

impl Calm {
    /// Waits until other programs hardly use the processors.
    ///
    /// Blocks for at least a quarter of a second, and for at most three seconds. Returns earlier
    /// when the user wants to stop, and at once where the system gives no account of its
    /// processors.
    pub(super) fn wait(&mut self, stop: &Stop) {
        self.wait_by(stop, || system::load(LOOK));
    }

    fn wait_by(&mut self, stop: &Stop, mut look: impl FnMut() -> Option<f64>) {
        let mut load = f64::INFINITY;
        for _ in 0..LOOKS {
            if stop.is_wanted() {
                return;
            }
            let Some(seen) = look() else {
                return;
            };
            load = seen;
            if load <= MOST {
                break;
            }
        }
        self.busy += u64::from(load > MOST);
        self.load += (load - self.load) / (self.runs + 1) as f64;
        self.runs += 1;
    }

    /// Returns a sentence for people.
    pub(super) fn text(&self) -> String {
        let Self { runs, busy, load } = self;
        let seconds = (LOOKS * LOOK).as_secs();
        let before = match (busy, runs) {
            (0, 1) => "Before the run the machine was calm".to_owned(),
            (0, _) => format!("Before each of {runs} runs the machine was calm"),
            _ => format!(
                "The machine was busy: before {busy} of {runs} runs it did not get calm within \
                 {seconds} s"
            ),
        };
        format!("{before}; other load {load:.1} %.")
    }
}

#[cfg(target_os = "linux")]
mod system {
    use crate::contest::cpu;
    use rustix::param::clock_ticks_per_second;
    use rustix::time::{ClockId, clock_gettime};
    use std::time::{Duration, Instant};
    use std::{fs, thread};

    /// Returns the share of the processors that other programs use during `time`, in percent.
    pub(super) fn load(time: Duration) -> Option<f64> {
        let before = Account::now()?;
        thread::sleep(time);
        let after = Account::now()?;
        Some(after.load_since(&before))
    }

    /// The account of the processors so far.
    pub(super) struct Account {
        pub(super) at: Instant,
        pub(super) cpus: usize,
        pub(super) idle: f64,
        pub(super) own: f64,
    }

    impl Account {
        pub(super) fn now() -> Option<Self> {
            let stat = fs::read_to_string("/proc/stat").ok()?;
            let own = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).ok()?;
            let cpus = cpu::allowed();
            Some(Self {
                at: Instant::now(),
                cpus: cpus.len(),
                idle: idle(&stat, cpus)? as f64 / clock_ticks_per_second() as f64,
                own: own.as_secs_f64(),
            })
        }

        pub(super) fn load_since(&self, before: &Self) -> f64 {
            let time = self.at.duration_since(before.at).as_secs_f64() * self.cpus as f64;
            let others = time - (self.idle - before.idle) - (self.own - before.own);
            100.0 * (others / time).clamp(0.0, 1.0)
        }
    }

    /// Returns the idle ticks of these processors; `None` if a processor is not there.
    pub(super) fn idle(stat: &str, cpus: &[usize]) -> Option<u64> {
        let of = |cpu: &usize| {
            let name = format!("cpu{cpu}");
            let mut lines = stat.lines().map(str::split_whitespace);
            let mut fields = lines.find_map(|mut fields| {
                let is_its = fields.next() == Some(&name);
                is_its.then_some(fields)
            })?;
            // Behind user, nice and system time: idle, and idle with an answer of a disk to come.
            let idle: u64 = fields.nth(3)?.parse().ok()?;
            let waiting: u64 = fields.next()?.parse().ok()?;
            Some(idle + waiting)
        };
        cpus.iter().map(of).sum()
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::time::Duration;

    /// Returns `None`: the load is not known here.
    pub(super) fn load(_time: Duration) -> Option<f64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits, with these loads in sequence at the looks. Returns the number of looks.
    fn wait(calm: &mut Calm, loads: &[f64]) -> usize {
        let mut looks = 0;
        calm.wait_by(&Stop::default(), || {
            looks += 1;
            loads.get(looks - 1).or(loads.last()).copied()
        });
        looks
    }

    #[test]
    fn a_run_waits_until_others_are_done_but_not_for_ever() {
        let mut calm = Calm::default();
        assert_eq!(wait(&mut calm, &[1.0]), 1);
        assert_eq!(wait(&mut calm, &[90.0, 50.0, 2.0, 80.0]), 3);
        assert_eq!((calm.runs, calm.busy), (2, 0));
        assert_eq!(wait(&mut calm, &[30.0]), LOOKS as usize);
        let expected = Calm {
            runs: 3,
            busy: 1,
            load: 11.0,
        };
        assert_eq!(calm, expected);
        assert_eq!(
            calm.text(),
            "The machine was busy: before 1 of 3 runs it did not get calm within 3 s; \
             other load 11.0 %."
        );
    }
}

#[cfg(all(test, target_os = "linux"))]
mod linux {
    use super::system::{Account, idle};
    use std::time::{Duration, Instant};

    const STAT: &str = "cpu  9 9 9 9 9 9 9 9 0 0\n\
                        cpu0 1 2 3 100 20 4 5 6 0 0\n\
                        cpu1 1 2 3 7 0 4 5 6 0 0\n\
                        cpu10 1 2 3 1000 0 4 5 6 0 0\nintr 5 5 5 5 5 5\n";

    #[test]
    fn idling_is_that_of_the_processors_that_may_be_used() {
        assert_eq!(idle(STAT, &[0]), Some(120));
        assert_eq!(idle(STAT, &[1, 10]), Some(1_007));
        assert_eq!(idle(STAT, &[0, 2]), None);
    }

    #[test]
    fn load_is_what_is_neither_idle_nor_own() {
        let at = Instant::now();
        let account = |seconds, idle, own| Account {
            at: at + Duration::from_secs(seconds),
            cpus: 2,
            idle,
            own,
        };
        let before = account(0, 50.0, 3.0);
        let load = |after: Account| after.load_since(&before);
        assert!((load(account(1, 51.0, 3.5)) - 25.0).abs() < 1e-6);
        assert!(load(account(1, 52.0, 3.0)).abs() < 1e-6);
        // The clocks are not read at the same instant.
        assert!(load(account(1, 52.1, 3.0)).abs() < 1e-6);
    }
}
