//! Rounds until the time is over.

use crate::memory::{Growth, Memory};
use crate::options::Options;
use crate::patience::Limits;
use crate::plan::cores;
use crate::round::{Tally, Veteran};
use crate::summary::{Outcome, Summary};
use crate::watch::Watch;
use crate::watchdog::Watchdog;
use ganger_soak::chance::next_seed;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, Write};
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time between two printed lines, if no terminal shows a live line.
const BETWEEN_LINES: Duration = Duration::from_secs(30);

/// At every how many-th round the veteran has a wave.
const VETERAN: u64 = 3;

/// The state shared by the rounds and the watchdog.
struct Soak {
    options: Options,
    began: Instant,
    summary: Mutex<Summary>,
    /// The live line, hidden without a terminal.
    live: ProgressBar,
}

/// Runs at least one round, and more until the time is over, the user interrupts, or an error
/// comes. When nothing moves, the program ends itself with an error.
///
/// `round` runs the round of a seed.
///
/// # Errors
/// The error, and how to repeat it.
pub fn soak(
    options: &Options,
    watch: &Arc<Watch>,
    round: impl FnMut(u64, &Watch) -> Result<Tally, String>,
) -> Result<Summary, String> {
    let seed = options.seed.unwrap_or_else(|| fastrand::u64(..));
    let soak = Arc::new(Soak {
        options: options.clone(),
        began: Instant::now(),
        summary: Mutex::new(Summary {
            seed,
            next_seed: seed,
            asked_seconds: options.time().as_secs_f64(),
            cores: cores(),
            ..Summary::default()
        }),
        live: live(),
    });
    let (minutes, cores) = (options.time().as_secs_f64() / 60.0, cores());
    soak.show(&format!(
        "soak: {minutes:.1} minutes, {cores} cores, seed {seed}"
    ));
    let watchdog = soak.watchdog(watch);
    if !watchdog.is_there() {
        return Err("the system grants no thread to watch".to_owned());
    }
    let mut memory = Memory::default();
    let result = soak.rounds(watch, &mut memory, round);
    drop(watchdog);
    soak.finish(result, &memory)
}

impl Soak {
    fn watchdog(self: &Arc<Self>, watch: &Arc<Watch>) -> Watchdog {
        let limits = Limits {
            patience: Duration::from_secs_f64(self.options.patience),
            round: Duration::from_secs_f64(self.options.round_limit),
        };
        let (ticks, barks) = (Arc::clone(self), Arc::clone(self));
        let tick = move |still| ticks.tick(still);
        Watchdog::start(watch, limits, tick, move |what| barks.give_up(what))
    }

    fn rounds(
        &self,
        watch: &Watch,
        memory: &mut Memory,
        mut round: impl FnMut(u64, &Watch) -> Result<Tally, String>,
    ) -> Result<(), String> {
        let mut seed = self.summary().seed;
        let veteran = Veteran::start(seed, watch)?;
        let (mut rounds, mut shown) = (0, Duration::ZERO);
        loop {
            let mut tally = round(seed, watch)?;
            if rounds % VETERAN == 0 {
                tally += veteran.wave(seed, watch)?;
            }
            rounds += 1;
            seed = next_seed(seed);
            let time = self.began.elapsed();
            self.leak(tally.account.started);
            veteran.empty_caches(watch)?;
            memory.sample(time, self.summary().tally.account.started);
            {
                let mut summary = self.summary();
                summary.tally += tally;
                summary.next_seed = seed;
                summary.memory = memory.growth();
                summary.set_time(time);
            }
            if time >= self.options.time() || watch.is_interrupted() {
                break;
            }
            if self.live.is_hidden() && time >= shown + BETWEEN_LINES {
                shown = time;
                self.show(&self.line());
            }
        }
        let ended = veteran.end(watch)?;
        self.summary().tally += ended;
        if watch.is_interrupted() {
            self.summary().outcome = Outcome::Interrupted;
        }
        Ok(())
    }

    /// Leaks memory, if the options ask for it.
    fn leak(&self, processes: u64) {
        let bytes = processes * self.options.leak / 1000;
        Vec::leak(vec![0_u8; usize::try_from(bytes).unwrap_or(0)]);
    }

    /// Makes the checks at the end, and reports the result.
    fn finish(&self, result: Result<(), String>, memory: &Memory) -> Result<Summary, String> {
        let growth = memory.growth();
        let result = result.and(match growth.grows {
            Some(true) => Err(format!("memory grows without an end: {growth:?}\n")),
            _ => Ok(()),
        });
        let mut summary = self.summary();
        summary.memory = growth;
        summary.set_time(self.began.elapsed());
        match &result {
            Ok(()) if summary.outcome == Outcome::Running => summary.outcome = Outcome::Passed,
            Ok(()) => {}
            Err(what) => {
                summary.outcome = Outcome::Failed;
                summary.failure = Some(what.clone());
            }
        }
        self.write(&summary);
        let (outcome, seconds, line) = (summary.outcome, summary.seconds, summary.line());
        self.live.finish_and_clear();
        self.show(&format!("soak: {outcome:?} after {seconds} s: {line}"));
        if let Some(rate) = summary.memory.kib_per_minute {
            let Growth {
                blocks_kib,
                bytes_per_thousand,
                ..
            } = &summary.memory;
            let each = bytes_per_thousand.unwrap_or_default();
            self.show(&format!(
                "in use: {blocks_kib:?} KiB, {rate} KiB a minute, {each} bytes a thousand processes"
            ));
        }
        let failed = |what: String| format!("{what}{}", again(summary.next_seed));
        result.map(|()| summary.clone()).map_err(failed)
    }

    /// Gives up as nothing moves: tells everything, and ends the program.
    fn give_up(&self, what: String) {
        self.live.finish_and_clear();
        let mut summary = self.summary();
        summary.outcome = Outcome::Hung;
        summary.set_time(self.began.elapsed());
        let repeat = again(summary.next_seed);
        summary.failure = Some(what);
        let what = summary.failure.as_deref().unwrap_or_default();
        // If standard error is closed, only the exit code tells.
        let _told = writeln!(io::stderr(), "error: {what}{repeat}");
        self.write(&summary);
        process::exit(1);
    }

    fn tick(&self, still: Duration) {
        let mut summary = self.summary();
        let still_ms = u64::try_from(still.as_millis()).unwrap_or(u64::MAX);
        summary.longest_standstill_ms = summary.longest_standstill_ms.max(still_ms);
        drop(summary);
        let line = self.line();
        self.live.set_message(match still.as_secs() {
            0 => line,
            seconds => format!("nothing has moved for {seconds} s; {line}"),
        });
    }

    fn line(&self) -> String {
        let summary = self.summary();
        let (seconds, line) = (self.began.elapsed().as_secs(), summary.line());
        format!("{seconds:>5} s: {line}; next {}", summary.next_seed)
    }

    fn show(&self, line: &str) {
        let _shown = writeln!(io::stdout(), "{line}");
    }

    fn write(&self, summary: &Summary) {
        if let Some(path) = &self.options.json
            && let Err(error) = summary.write(path)
        {
            let path = path.display();
            let _told = writeln!(io::stderr(), "error: can't write {path}: {error}");
        }
    }

    fn summary(&self) -> MutexGuard<'_, Summary> {
        self.summary.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates a line of a terminal's width.
fn live() -> ProgressBar {
    let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stdout());
    let style = ProgressStyle::with_template("{wide_msg}");
    line.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
}

/// Tells how to repeat a round.
fn again(seed: u64) -> String {
    format!("Repeat it first: cargo xtask soak sched --seed {seed}")
}
