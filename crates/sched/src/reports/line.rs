//! One line a period about a scheduler, for a person watching a log.

use crate::base::stats::{Stats, WorkerStats};
use ganger_proc_api::Instant;
use ganger_time::TimerStats;
use std::fmt;
use std::time::Duration;

/// A scheduler at a moment.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) at: Instant,
    pub(crate) stats: Stats,
    pub(crate) workers: Vec<WorkerStats>,
    pub(crate) timers: TimerStats,
}

/// A count of a scheduler.
type Count = fn(&WorkerStats) -> u64;

/// The present work of the scheduler, and its work since the sample before.
pub(crate) struct Line<'a> {
    pub(crate) host: &'a str,
    pub(crate) before: &'a Sample,
    pub(crate) now: &'a Sample,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, before, now } = *self;
        let (stats, ms) = (&now.stats, |time: Duration| time.as_millis());
        let up = Duration::from_nanos(now.at.as_nanos());
        let awake = stats.workers.saturating_sub(stats.sleeping);
        write!(
            f,
            "ganger {host} {}ms: live={} workers={} busy={} searching={} asleep={} spares={} \
             relieved={} ready={} global={} timers={}",
            ms(up),
            stats.live,
            stats.workers,
            awake.saturating_sub(stats.searching),
            stats.searching,
            stats.sleeping,
            stats.spares,
            stats.relieved,
            stats.ready,
            stats.global_queue,
            now.timers.pending,
        )?;
        let (new, old) = (&stats.total, &before.stats.total);
        write!(f, " in {}ms:", ms(now.at - before.at))?;
        let counts: [(&str, Count); 11] = [
            ("turns", |it| it.turns),
            ("steps", |it| it.steps),
            ("commands", |it| it.yields),
            ("started", |it| it.started),
            ("ended", WorkerStats::ended),
            ("failed", |it| it.failed + it.panicked),
            ("undelivered", |it| it.undelivered),
            ("steals", |it| it.steals),
            ("sleeps", |it| it.sleeps),
            ("blocked", |it| it.blocked_steps),
            ("long", |it| it.long_steps),
        ];
        for (name, count) in counts {
            write!(f, " {name}={}", count(new).saturating_sub(count(old)))?;
        }
        let fired = now.timers.fired.saturating_sub(before.timers.fired);
        write!(f, " fired={fired} turns=[")?;
        for (worker, new) in now.workers.iter().enumerate() {
            let old = before.workers.get(worker).map_or(0, |it| it.turns);
            write!(f, " {}", new.turns.saturating_sub(old))?;
        }
        f.write_str(" ]")
    }
}

/// Reads a period: a number with `ms`, `s` or `m` behind it; 0 and `off` are none.
pub(crate) fn period(text: &str) -> Option<Duration> {
    if ["0", "off"].contains(&text) {
        return Some(Duration::ZERO);
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u32 = number.parse().ok()?;
    let unit = match unit {
        "ms" => Duration::from_millis(1),
        "s" => Duration::from_secs(1),
        "m" => Duration::from_secs(60),
        _ => return None,
    };
    unit.checked_mul(number)
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    fn sample(millis: u64, turns: [u64; 2]) -> Sample {
        let of = |turns| WorkerStats {
            turns,
            steps: 2 * turns,
            failed: 1,
            panicked: turns / 100,
            ..WorkerStats::default()
        };
        let [one, two] = turns.map(of);
        let mut total = one;
        total += two;
        Sample {
            at: Instant::from_nanos(millis * 1_000_000),
            stats: Stats {
                workers: 2,
                spares: 1,
                relieved: 0,
                longest_step: Duration::ZERO,
                sleeping: 1,
                searching: 0,
                live: 12,
                global_queue: 3,
                ready: 5,
                total,
            },
            workers: vec![one, two],
            timers: TimerStats::default(),
        }
    }

    // pins: V12
    #[test]
    fn a_line_has_the_moment_and_the_period() {
        let (before, now) = (sample(1_000, [10, 0]), sample(2_007, [110, 50]));
        let line = Line {
            host: "main",
            before: &before,
            now: &now,
        };
        assert_eq!(
            line.to_string(),
            "ganger main 2007ms: live=12 workers=2 busy=1 searching=0 asleep=1 spares=1 \
             relieved=0 ready=5 global=3 timers=0 in 1007ms: turns=150 steps=300 commands=0 \
             started=0 ended=1 failed=1 undelivered=0 steals=0 sleeps=0 blocked=0 long=0 fired=0 \
             turns=[ 100 50 ]"
        );
    }

    #[test]
    fn periods_are_read_and_other_texts_are_not() {
        let millis = |text| period(text).map(|it| it.as_millis());
        assert_eq!([millis("0"), millis("off"), millis("0s")], [Some(0); 3]);
        assert_eq!([millis("250ms"), millis("1s")], [Some(250), Some(1_000)]);
        assert_eq!(millis("2m"), Some(120_000));
        for wrong in [
            "",
            "1",
            "s",
            "-1s",
            "1.5s",
            "1 s",
            "1h",
            "on",
            "99999999999s",
        ] {
            assert_eq!(period(wrong), None, "{wrong}");
        }
    }
}
