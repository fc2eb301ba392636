//! How far it is, and how long it will still take.

use super::lines::Point;
use super::plan::Turn;
use crate::whole::catalog::{Id, Peer};
use ganger_bench_options::mode::Mode;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::HashMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// A bar on a terminal; elsewhere a line for each workload.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    times: Times,
    start: Instant,
}

/// The times of runs so far, to estimate the runs ahead.
#[derive(Clone, Debug, Default)]
struct Times {
    of_run: HashMap<(Id, Peer, Point), Duration>,
    of_workload: HashMap<Id, Mean>,
    of_all: Mean,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: Duration,
    count: u32,
}

/// The estimate of a run before any run has ended.
const FIRST_GUESS: Duration = Duration::from_secs(2);

impl Progress {
    /// Creates the progress of this number of turns.
    #[must_use]
    pub fn new(turns: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}");
            let bar = ProgressBar::new(turns as u64);
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Self {
            bar,
            times: Times::default(),
            start: Instant::now(),
        }
    }

    /// Begins a turn; `left` are this turn and the turns behind it.
    pub fn begin<'a>(&mut self, turn: &Turn, left: impl Iterator<Item = &'a Turn>) {
        if let Some(bar) = &self.bar {
            let left = spoken(self.times.left(left));
            let (id, peer) = (turn.job.id, turn.job.peer);
            bar.set_message(format!("{id} {peer} · {left} left"));
            bar.tick();
        }
    }

    /// Ends a turn, with its time; `None` if it was left out.
    pub fn end(&mut self, turn: &Turn, took: Option<Duration>) {
        if let Some(took) = took {
            self.times.add(turn, took);
        }
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// Something for people to read, above the bar.
    pub fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }

    /// Removes the bar after the last turn.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        eprintln!("measured for {}", spoken(self.start.elapsed()));
    }
}

impl Times {
    fn add(&mut self, turn: &Turn, took: Duration) {
        self.of_run.insert(key(turn), took);
        self.of_workload.entry(turn.job.id).or_default().add(took);
        self.of_all.add(took);
    }

    /// Estimates the time of these turns: by their earlier times, or their times in the other mode,
    /// or the workload's times, or all times.
    fn left<'a>(&self, turns: impl Iterator<Item = &'a Turn>) -> Duration {
        turns.map(|turn| self.of(turn)).sum()
    }

    fn of(&self, turn: &Turn) -> Duration {
        let workload = || self.of_workload.get(&turn.job.id).and_then(Mean::get);
        let (id, peer, point) = key(turn);
        let in_mode = |mode| {
            self.of_run
                .get(&(id, peer, Point { mode, ..point }))
                .copied()
        };
        in_mode(point.mode)
            .or_else(|| in_mode(Mode::AsIs))
            .or_else(workload)
            .or_else(|| self.of_all.get())
            .unwrap_or(FIRST_GUESS)
    }
}

impl Mean {
    fn add(&mut self, time: Duration) {
        self.sum += time;
        self.count += 1;
    }

    fn get(&self) -> Option<Duration> {
        self.sum.checked_div(self.count)
    }
}

fn key(turn: &Turn) -> (Id, Peer, Point) {
    let job = &turn.job;
    let point = Point {
        workers: job.workers,
        processes: job.processes,
        producers: job.producers,
        mode: turn.mode,
    };
    (job.id, job.peer, point)
}

/// A time as people say it: no more than two units.
fn spoken(time: Duration) -> String {
    let seconds = time.as_secs() + u64::from(time.subsec_millis() >= 500);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3_600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::whole::job::{Job, Size};

    fn turn(id: Id, peer: Peer) -> Turn {
        let job = Job::new(id, peer, 2, Size::Full);
        let mode = Mode::AsIs;
        Turn { rep: 0, mode, job }
    }

    #[test]
    fn what_took_long_will_take_long() {
        let seconds = Duration::from_secs;
        let (w1, w2) = (turn(Id::W1, Peer::Ganger), turn(Id::W1, Peer::Tokio));
        let other = turn(Id::W2, Peer::Go);
        let all = [w1.clone(), w2.clone(), other.clone()];
        let mut times = Times::default();
        assert_eq!(times.left(all.iter()), 3 * FIRST_GUESS);
        times.add(&w1, seconds(10));
        assert_eq!(times.left(all.iter()), seconds(30), "all as the first");
        times.add(&other, seconds(1));
        assert_eq!(times.left(all.iter()), seconds(10 + 10 + 1));
        times.add(&w2, seconds(4));
        let third = turn(Id::W1, Peer::Actix);
        assert_eq!(times.of(&third), seconds(7), "the mean of its workload");
        times.add(&w1, seconds(2));
        assert_eq!(times.of(&w1), seconds(2), "the newest");
        let with_loops = Turn {
            mode: Mode::Loops,
            ..w1.clone()
        };
        assert_eq!(times.of(&with_loops), seconds(2), "as without loops");
        times.add(&with_loops, seconds(3));
        assert_eq!(times.of(&with_loops), seconds(3));
        assert_eq!(times.of(&w1), seconds(2));
    }

    #[test]
    fn times_are_said_in_at_most_two_units() {
        let of_milliseconds = |time| spoken(Duration::from_millis(time));
        assert_eq!(
            [of_milliseconds(1_499), of_milliseconds(1_500)],
            ["1 s", "2 s"]
        );
        let spoken = |seconds| spoken(Duration::from_secs(seconds));
        assert_eq!([spoken(0), spoken(59)], ["0 s", "59 s"]);
        assert_eq!([spoken(60), spoken(3_599)], ["1 min 00 s", "59 min 59 s"]);
        assert_eq!(spoken(2 * 3_600 + 61), "2 h 01 min");
    }
}
