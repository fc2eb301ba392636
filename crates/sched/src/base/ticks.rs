//! A clock for events that follow each other within nanoseconds.
//!
//! **Problem.** A flight recorder reads the clock once or twice in each turn. The system's clock
//! takes longer than a short step.
//!
//! **Protocol.** On x86_64 a reading is the processor's time stamp counter, where the kernel trusts
//! it: then the counters of all cores run at one constant rate and show the same (Intel, Software
//! Developer's Manual 3, section 19.17). Elsewhere a reading is the system's clock, in nanoseconds.
//! The writer keeps readings as they are. The reader of records converts them to nanoseconds: it
//! reads both clocks, as the scheduler did at its start, and takes the straight line between the
//! two. So no thread waits for a calibration, and a later reader knows the rate all the better. A
//! thread may lose its core between the two clocks. So it reads them some times, and takes the
//! shortest look.
//!
//! **Limit.** While the machine sleeps (suspend), the system's clock stands still, and the counter
//! goes on or begins anew. The line bends there, and the times of all records are wrong by a part
//! of the sleep.

use super::clock::{Clock, MonotonicClock, nanos};

/// Reads the clock of the machine.
pub(crate) struct Ticks {
    clock: MonotonicClock,
    /// The counter's reading at the clock's `from`; `None` without a usable counter.
    counter: Option<Origin>,
}

#[derive(Clone, Copy)]
struct Origin {
    ticks: u64,
    nanos: u64,
}

/// Makes nanoseconds of readings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    from: (u64, u64),
    to: (u64, u64),
}

impl Ticks {
    /// Creates a clock whose readings become nanoseconds of `clock`.
    pub(crate) fn of(clock: MonotonicClock) -> Self {
        let origin = || {
            let (ticks, nanos) = both(&clock);
            Origin { ticks, nanos }
        };
        Self {
            clock,
            counter: counter::is_trusted().then(origin),
        }
    }

    /// Returns a reading.
    #[inline(always)]
    pub(crate) fn read(&self) -> u64 {
        match self.counter {
            Some(_) => counter::read(),
            None => nanos(self.clock.now()),
        }
    }

    /// Returns the scale of all readings so far, and the present time of the clock, in nanoseconds.
    pub(crate) fn scale(&self) -> (Scale, u64) {
        let Some(Origin { ticks, nanos }) = self.counter else {
            let now = nanos(self.clock.now());
            return (Scale::SAME, now);
        };
        let (from, to) = ((ticks, nanos), both(&self.clock));
        (Scale { from, to }, to.1)
    }
}

/// How often both clocks are read for a moment.
const TRIES: usize = 5;

/// Reads the counter and the clock, at the same moment except for the time of a reading of the
/// clock.
fn both(clock: &MonotonicClock) -> (u64, u64) {
    tightest([(); TRIES].map(|()| {
        let before = counter::read();
        let nanos = nanos(clock.now());
        (before, nanos, counter::read())
    }))
}

/// Returns the shortest of some readings of the clock, each between two of the counter: the counter
/// in its middle, and the clock.
fn tightest(tries: [(u64, u64, u64); TRIES]) -> (u64, u64) {
    let took = |&(before, _, after): &(u64, u64, u64)| after.saturating_sub(before);
    let best = tries.iter().min_by_key(|it| took(it));
    best.map_or((0, 0), |it| (it.0 + took(it) / 2, it.1))
}

impl Scale {
    /// The scale of readings in nanoseconds.
    pub(crate) const SAME: Self = Self {
        from: (0, 0),
        to: (1, 1),
    };

    /// Returns the nanoseconds of a reading. Never goes back where the readings do not.
    pub(crate) fn nanos(&self, reading: u64) -> u64 {
        let ((from_ticks, from), (to_ticks, to)) = (self.from, self.to);
        let ticks = u128::from(to_ticks.saturating_sub(from_ticks).max(1));
        let length = u128::from(to.saturating_sub(from));
        let past = u128::from(reading.saturating_sub(from_ticks));
        // Past times length is below 2^128 for any two numbers of 64 bits.
        u64::try_from(past * length / ticks).map_or(u64::MAX, |it| from.saturating_add(it))
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
mod counter {
    use std::fs;
    use std::sync::OnceLock;

    /// The kernel's list of its trusted clocks. The counter is there while it runs at a constant
    /// rate, also in sleep states, and the same on all cores.
    const SOURCES: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

    pub(super) fn is_trusted() -> bool {
        static IS_TRUSTED: OnceLock<bool> = OnceLock::new();
        *IS_TRUSTED.get_or_init(|| {
            let sources = fs::read_to_string(SOURCES).unwrap_or_default();
            sources.split_whitespace().any(|it| it == "tsc")
        })
    }

    #[inline(always)]
    pub(super) fn read() -> u64 {
        // SAFETY: all processors of this architecture have the counter. Linux lets programs read
        // it, unless a program has asked for the contrary, for itself (PR_SET_TSC).
        unsafe { std::arch::x86_64::_rdtsc() }
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
mod counter {
    pub(super) fn is_trusted() -> bool {
        false
    }

    #[inline(always)]
    pub(super) fn read() -> u64 {
        0
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    #[test]
    fn readings_become_nanoseconds_of_the_clock() {
        let clock = MonotonicClock::new();
        let ticks = Ticks::of(clock);
        let before = nanos(clock.now());
        let reading = ticks.read();
        let after = nanos(clock.now());
        // The longer the line, the less a look at the clock matters.
        while nanos(clock.now()) < after + 5_000_000 {
            std::hint::spin_loop();
        }
        let (scale, now) = ticks.scale();
        assert!(now >= after + 5_000_000);
        // A thread may lose its core between the two readings of a look.
        let (least, most) = (before.saturating_sub(4_000_000), after + 4_000_000);
        let seen = scale.nanos(reading);
        assert!((least..=most).contains(&seen), "{least} {seen} {most}");
    }

    #[test]
    fn a_thread_that_loses_its_core_between_the_clocks_reads_them_again() {
        let tries = [
            (1_000, 10, 9_000),
            (9_100, 90, 9_200),
            (9_300, 92, 9_340),
            (9_400, 94, 9_460),
            (9_500, 95, 9_600),
        ];
        assert_eq!(tightest(tries), (9_320, 92));
        assert_eq!(tightest([(7, 3, 5); TRIES]), (7, 3));
    }

    #[test]
    fn a_scale_goes_by_the_straight_line() {
        let scale = Scale {
            from: (1_000, 50),
            to: (4_000, 1_050),
        };
        let nanos = [0, 1_000, 2_500, 4_000, 5_500].map(|it| scale.nanos(it));
        assert_eq!(nanos, [50, 50, 550, 1_050, 1_550]);
        let large = Scale {
            from: (0, 0),
            to: (u64::MAX, u64::MAX),
        };
        assert_eq!(large.nanos(u64::MAX - 1), u64::MAX - 1);
        assert_eq!(Scale::SAME.nanos(7), 7);
        let none = Scale {
            from: (5, 9),
            to: (5, 9),
        };
        assert_eq!(none.nanos(7), 9);
    }
}
