//! Where the steps of a scheduler spend their time.
//!
//! **Problem.** Counts show the busy processes, and not their functions. A profiler from outside
//! sees threads and functions, and no processes: all types share the workers.
//!
//! **Rejected.** A timer's signal to each thread: it interrupts sleeping workers too, and its
//! handler would have to unwind. Looking up the functions of each sample at once: symbols take far
//! longer than samples.
//!
//! **Protocol.** The profiling thread asks all busy workers at each tick where they are
//! ([`StepLooks`]), and looks up the process of each answer. The profile counts equal stacks, as
//! addresses. After the last tick it looks up the functions of each address once (`symbols.rs`),
//! and leaves out the scheduler's own frames outside of the step. No worker waits for any of this.
//!
//! **Bounds.** A profile keeps [`MOST_STACKS`] different stacks. A sample with a further stack
//! counts without its functions.

mod folded;
mod pprof;
mod symbols;

use crate::observer::Observer;
use ganger_proc_api::{Pid, Symbol};
use ganger_sched::internal::HandleInternals as _;
use ganger_sched::{Handle, StepLooks, StepLooksRefused};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use symbols::Frame;

/// The most samples in a second.
const MOST_HZ: u32 = 1_000;

/// The different stacks of a profile.
const MOST_STACKS: usize = 100_000;

/// The type of a process that has ended before the look at it.
const ENDED: &str = "(ended process)";

/// Where the steps of a scheduler have spent their time: see [`Observer::profile`].
#[derive(Debug, Clone)]
pub struct Profile {
    scheduler: String,
    lasted: Duration,
    hz: u32,
    asked: u64,
    samples: Vec<Sample>,
    frames: Vec<Frame>,
}

/// Equal samples.
#[derive(Debug, Clone)]
struct Sample {
    who: Who,
    /// Places in the profile's frames, the innermost first; empty without known functions.
    frames: Vec<u32>,
    count: u64,
}

/// The facts of a process in a profile.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Who {
    type_name: &'static str,
    method: Option<Symbol>,
    label: Option<Arc<str>>,
}

/// The reason of a missing profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The scheduler does not allow profiles, or another profile is being made.
    #[error(transparent)]
    Refused(#[from] StepLooksRefused),
    /// The rate is 0 or too high.
    #[error("{0} samples a second: take 1 to 1000, such as 99")]
    Rate(u32),
}

impl Observer {
    /// Samples the stacks of the workers for `time`, `hz` times a second: 99 is a good rate. Blocks
    /// for the time, and then while it looks up the functions. A scheduler has a single profile at
    /// a time.
    ///
    /// The profile shows steps by the wall clock: a step in wait for a lock is seen there, and idle
    /// workers are not asked. It works while all workers are stuck. A sample is accounted to the
    /// process of the interrupted step, with its type, method and label; processes with ends within
    /// some 100 µs are accounted together. It ends early when the scheduler has halted. The effects
    /// of a signal on a step are told at
    /// [`Builder::long_step_backtraces`](ganger_sched::Builder::long_step_backtraces).
    ///
    /// # Errors
    /// [`ProfileError`]. Profiles need
    /// [`Builder::profiles`](ganger_sched::Builder::profiles), and Linux on x86-64 or AArch64.
    ///
    /// ```
    /// use ganger_observe::Observer;
    /// use ganger_sched::Scheduler;
    /// use std::time::Duration;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # if !cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))) {
    /// #     return Ok(());
    /// # }
    /// let scheduler = Scheduler::builder().profiles(true).start()?;
    /// let profile = Observer::of(&scheduler).profile(Duration::from_millis(50), 99)?;
    /// std::fs::write(std::env::temp_dir().join("ganger.pb.gz"), profile.pprof())?;
    /// assert_eq!(profile.folded(), ""); // No process has run.
    /// # std::fs::remove_file(std::env::temp_dir().join("ganger.pb.gz"))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn profile(&self, time: Duration, hz: u32) -> Result<Profile, ProfileError> {
        self.profile_while(time, hz, || true)
    }

    /// Samples as `profile` does, but ends early at a tick when the profile is not wanted any more.
    pub(crate) fn profile_while(
        &self,
        time: Duration,
        hz: u32,
        is_wanted: impl Fn() -> bool,
    ) -> Result<Profile, ProfileError> {
        if !(1..=MOST_HZ).contains(&hz) {
            return Err(ProfileError::Rate(hz));
        }
        let handle = self.handle();
        let mut looks = handle.step_looks()?;
        let mut tally = Tally::new(handle);
        let begun = handle.now();
        let mut ticks = Ticks::new(time, hz);
        // A profile keeps the memory of its scheduler, but not beyond the end of the scheduler.
        let halted = Halted::of(handle);
        while is_wanted() && !halted.is_so() {
            tally.take(&mut looks);
            let (pause, is_over) = ticks.next(handle.now() - begun);
            thread::sleep(pause);
            if is_over {
                break;
            }
        }
        let lasted = handle.now() - begun;
        let (samples, frames) = symbols::resolve(tally.stacks, &looks);
        Ok(Profile {
            scheduler: handle.host_name().to_string(),
            lasted,
            hz,
            asked: tally.asked,
            samples,
            frames,
        })
    }
}

impl Profile {
    /// Returns the number of samples: of answers of workers that were in a step.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.samples.iter().map(|sample| sample.count).sum()
    }

    /// Returns the number of questions to workers that were not idle. A question is no sample if it
    /// finds the worker between two steps, or the thread without a processor for 10 ms.
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.asked
    }

    /// Returns how long the samples were taken.
    #[must_use]
    pub fn lasted(&self) -> Duration {
        self.lasted
    }

    /// Returns the number of samples in a second.
    #[must_use]
    pub fn hz(&self) -> u32 {
        self.hz
    }
}

/// Whether a scheduler has halted. All profiles of the scheduler share the flag.
#[derive(Default)]
struct Halted(Arc<AtomicBool>);

impl Halted {
    fn of(scheduler: &Handle) -> Arc<Self> {
        scheduler.extension(|scheduler| {
            let halted = Self::default();
            let flag = Arc::clone(&halted.0);
            // Ordering: Relaxed: nothing is read on the strength of it.
            scheduler.at_halt(move || flag.store(true, Ordering::Relaxed));
            halted
        })
    }

    fn is_so(&self) -> bool {
        // Ordering: Relaxed: nothing is read on the strength of it.
        self.0.load(Ordering::Relaxed)
    }
}

/// When the samples are taken: at whole periods since the begin, without the missed ones.
struct Ticks {
    period: u64,
    end: u64,
    tick: u64,
}

impl Ticks {
    fn new(time: Duration, hz: u32) -> Self {
        Self {
            period: nanos(Duration::from_secs(1) / hz),
            end: nanos(time),
            tick: 0,
        }
    }

    /// Returns the pause before the next sample; or the last pause, before the end, and `true`.
    fn next(&mut self, elapsed: Duration) -> (Duration, bool) {
        let elapsed = nanos(elapsed);
        self.tick = (self.tick + 1).max(elapsed / self.period + 1);
        let next = self.tick.saturating_mul(self.period);
        let pause = next.min(self.end).saturating_sub(elapsed);
        // A simulation's clock stands still meanwhile.
        let pause = Duration::from_nanos(pause.min(self.period));
        (pause, next >= self.end)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The samples, as they come.
struct Tally<'a> {
    handle: &'a Handle,
    asked: u64,
    /// By the process and the addresses of the frames, the innermost first.
    stacks: HashMap<(Who, Box<[u64]>), u64>,
}

impl<'a> Tally<'a> {
    fn new(handle: &'a Handle) -> Self {
        Self {
            handle,
            asked: 0,
            stacks: HashMap::new(),
        }
    }

    fn take(&mut self, looks: &mut StepLooks<'_>) {
        let asked = looks.look(|stack| {
            let mut key = (Who::of(self.handle, stack.pid), stack.frames.into());
            if self.stacks.len() >= MOST_STACKS && !self.stacks.contains_key(&key) {
                key.1 = Box::default();
            }
            *self.stacks.entry(key).or_default() += 1;
        });
        self.asked += asked as u64;
    }
}

impl Who {
    fn of(handle: &Handle, pid: Pid) -> Self {
        let who = handle.look_at(pid, |it| Self {
            type_name: it.type_name(),
            method: Some(it.method()),
            label: it.label(),
        });
        who.unwrap_or(Self {
            type_name: ENDED,
            method: None,
            label: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    // pins: V14
    #[test]
    fn samples_come_at_whole_periods_and_late_ones_are_left_out() {
        let mut ticks = Ticks::new(ms(995), 100);
        assert_eq!(ticks.next(ms(0)), (ms(10), false));
        assert_eq!(ticks.next(ms(12)), (ms(8), false));
        // A too short pause.
        assert_eq!(ticks.next(ms(19)), (ms(10), false));
        assert_eq!(ticks.next(ms(555)), (ms(5), false));
        assert_eq!(ticks.next(ms(560)), (ms(10), false));
        assert_eq!(ticks.next(ms(989)), (ms(1), false));
        assert_eq!(ticks.next(ms(990)), (ms(5), true));
        assert_eq!(ticks.next(ms(2_000)), (ms(0), true));
    }

    // pins: V14
    #[test]
    #[cfg(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ))]
    fn a_profile_lets_go_of_a_scheduler_that_has_ended() {
        let builder = ganger_sched::Scheduler::builder().workers(1);
        let scheduler = builder.profiles(true).start().unwrap();
        let (weak, observer) = (scheduler.downgrade(), Observer::of(&scheduler));
        let (tick, ticks) = std::sync::mpsc::channel();
        let hour = Duration::from_hours(1);
        let profile = thread::spawn(move || {
            let is_wanted = || tick.send(()).is_ok();
            observer.profile_while(hour, 99, is_wanted)
        });
        ticks.recv().unwrap();
        drop(scheduler);
        // Each tick says that the profile goes on; the end drops the sender.
        let goes_on = ticks.iter().take(10_000).count();
        assert!(goes_on < 10_000, "it goes on");
        assert!(profile.join().unwrap().unwrap().lasted() < hour);
        // A stop waits for each thread's last act, and the thread lets go a moment later.
        let is_let_go = (0..10_000).any(|_| {
            thread::sleep(ms(1));
            weak.upgrade().is_none()
        });
        assert!(is_let_go, "a thread holds the scheduler");
    }

    #[test]
    fn a_clock_that_stands_still_ends_the_samples_as_well() {
        let mut ticks = Ticks::new(ms(100), 100);
        let pauses: Vec<_> = (0..10).map(|_| ticks.next(Duration::ZERO)).collect();
        let (last, others) = pauses.split_last().unwrap();
        assert_eq!((others, *last), (&[(ms(10), false); 9][..], (ms(10), true)));
    }
}
