//! Runs a job: the repetitions, a small run of the same first, the clock, and the check of the
//! result. The same for every peer.

use super::bell::{Bell, LAST, Sender};
use super::board::{Board, PERIOD, duration};
use super::busy::Busy;
use super::catalog::{Id, Kind, Peer};
use super::contestant::{Contestant, Deliver, Services, Timed, failed};
use super::gate::{Gate, gate};
use super::job::{Error, Job};
use super::latency::Latencies;
use super::load::Packet;
use super::memory;
use super::sample::Sample;
use super::timed::{Due, Naps};
use super::turns::{How, Race, Stuck};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Warm-up does this part of the work.
const WARM_UP: u64 = 20;

/// For how long a process blocks its thread.
const BLOCK: Duration = Duration::from_millis(500);

/// The number of busy processes during a measurement of wake-ups.
const BUSY: u64 = 7;

/// For how long a busy process computes in a step.
const LONG_STEP: Duration = Duration::from_millis(1);
const SHORT_STEP: Duration = Duration::from_micros(10);

/// The time between two sends of a step, and of a thread that is no worker.
const ROUND: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(10);

/// How long a receiver may take at the end.
const GRACE: Duration = Duration::from_secs(2);

/// The time of timers that must not fire.
const HOUR: Duration = Duration::from_secs(3_600);

/// How long a job of a pool computes.
const SHORT_JOB: Duration = Duration::from_micros(1);

/// How many messages fill a mailbox.
const LIMIT: usize = 1_024;

const NANOS_A_MICRO: f64 = 1e3;
const NANOS_A_MILLI: f64 = 1e6;

/// Returns the workloads with peers written in Rust, in order, with each of those peers.
pub fn list() -> impl Iterator<Item = (Id, Peer)> {
    let ids = Id::ALL.iter();
    let ids = ids.filter(|id| !id.is_queue() && !id.is_of_cluster());
    ids.flat_map(|&id| id.spec().peers.iter().map(move |&peer| (id, peer)))
        .filter(|(_, peer)| peer.kind() == Kind::Rust)
}

/// Runs the peer as the job says.
///
/// # Errors
/// If the peer has no such workload, refuses, gets stuck, or has a wrong result.
pub(super) fn measure<C: Services>(peer: &C, job: &Job) -> Result<Vec<Sample>, Error> {
    let run = Run { peer, job };
    let processes = |default: u64| job.processes.unwrap_or(default);
    let (few, many, ring) = (processes(100), processes(1_000), processes(10_000));
    let producers = job.producers.unwrap_or(100);
    let commands = |n| sum_below(n + 1);
    match job.id {
        Id::W1 | Id::A1 => run.each(1, |n| peer.spawn(n)),
        Id::W2 => run.skynet(),
        Id::W3a | Id::A2a => run.each(1, |n| peer.yields(1, n)),
        Id::W3b | Id::A2b => run.each(few, |n| peer.yields(few, n)),
        Id::W4 | Id::A3 => run.each(1, |n| peer.ping_pong::<u64>(1, n)),
        Id::W4b | Id::A4 => run.each(many, |n| peer.ping_pong::<u64>(many, n)),
        Id::W4pid => run.each(1, |n| peer.ping_pong_by_pid(1, n)),
        Id::W4t => run.each(1, |n| peer.ping_pong::<Packet>(1, n)),
        Id::W5 => run.each(1, |n| peer.tokens::<u64>(ring, 1, n)),
        Id::W5b | Id::A5 => run.each(100, |n| peer.tokens::<u64>(ring, 100, n)),
        Id::W5bt => run.each(100, |n| peer.tokens::<Packet>(ring, 100, n)),
        Id::W6 | Id::A6 => run.summed(producers, sum_below, |n| peer.fan_in::<u64>(producers, n)),
        Id::W6all => run.summed(producers, sum_below, |n| peer.fan_in_all(producers, n)),
        Id::W6t => run.summed(producers, sum_below, |n| {
            peer.fan_in::<Packet>(producers, n)
        }),
        Id::W7 => run.summed(many, sum_below, |n| peer.fan_out::<u64>(many, n)),
        Id::W7t => run.summed(many, sum_below, |n| peer.fan_out::<Packet>(many, n)),
        Id::W8 | Id::A7 => run.memory_idle(),
        Id::W9 => run.summed(1, commands, |n| peer.command_inline(n)),
        Id::W9ask | Id::A8 => run.summed(1, commands, |n| peer.command_asked(n)),
        Id::S1 | Id::A9 => run.summed(1, commands, |n| peer.call(n)),
        Id::S1out => run.summed(1, commands, |n| peer.call_from_outside(n)),
        Id::S2 => run.summed(1, |n| n, |n| peer.spawn_monitored(n)),
        Id::S3 => run.summed(1, |n| n, |n| peer.restart(n)),
        Id::S3in => run.summed(1, |n| n, |n| peer.restart_in_place(n)),
        Id::S4 => run.summed(many, sum_below, |n| peer.broadcast(many, n)),
        Id::S4each => run.summed(many, sum_below, |n| peer.broadcast_each(many, n)),
        Id::S5 => run.summed(few, commands, |n| peer.pool(few, n, Duration::ZERO)),
        Id::S5us => run.summed(few, commands, |n| peer.pool(few, n, SHORT_JOB)),
        Id::W10 => run.wake_latency(Sender::Parks),
        Id::W10spin => run.wake_latency(Sender::Spins),
        Id::W10busy => run.wake_latency_beside_busy(Sender::Parks),
        Id::W10busyspin => run.wake_latency_beside_busy(Sender::Spins),
        Id::W11 => run.idle_cpu(many),
        Id::W12 => run.stuck_workers(many, How::Sleep),
        Id::W12cpu => run.stuck_workers(many, How::Compute),
        Id::W13 => run.fairness(few),
        Id::W13b => run.woken_beside_busy(few, LONG_STEP),
        Id::W13b10 => run.woken_beside_busy(few, SHORT_STEP),
        Id::W13c => run.woken_from_outside(LONG_STEP),
        Id::W13c10 => run.woken_from_outside(SHORT_STEP),
        Id::W13d => run.woken_by_herald(few, LONG_STEP),
        Id::W13d10 => run.woken_by_herald(few, SHORT_STEP),
        Id::W14 | Id::A10 => run.timer_churn(false),
        Id::W14step | Id::A10step => run.timer_churn(true),
        Id::W15 | Id::A11 => run.timer_fire(1),
        Id::W15min => run.timer_fire(60),
        Id::W16 => run.timer_lateness(many, 0, How::Compute, Duration::ZERO),
        Id::W16b => run.timer_lateness(many, BUSY, How::Compute, LONG_STEP),
        Id::W16b10 => run.timer_lateness(many, BUSY, How::Compute, SHORT_STEP),
        Id::W16stuck => run.timer_lateness(many, C::workers(job), How::Sleep, BLOCK),
        Id::W17 => run.timers_idle(),
        Id::Q2 => run.send_blocking(job.producers.unwrap_or(8)),
        other => {
            let why = format!("{other} is for ganger-queues, or ganger-cluster-workload");
            Err(Error::Missing(why))
        }
    }
}

/// A job with its peer.
struct Run<'a, C> {
    peer: &'a C,
    job: &'a Job,
}

impl<C: Contestant> Run<'_, C> {
    /// Divides the elements into equal parts: `time` runs all parts at once, with a part's number
    /// of elements.
    fn each(&self, parts: u64, time: impl Fn(u64) -> Timed) -> Result<Vec<Sample>, Error> {
        let elements = self.job.elements();
        let count = |elements: u64| (elements / parts).max(1);
        time(count(elements / WARM_UP))?;
        let count = count(elements);
        let n = count * parts;
        let time = time(count)?;
        Ok(vec![self.sample("time", n, nanos_each(time, n))])
    }

    /// Runs the parts as [`each`](Self::each) does, where each part brings the sum of its elements.
    fn summed(
        &self,
        parts: u64,
        sum: impl Fn(u64) -> u64,
        time: impl Fn(u64) -> Timed,
    ) -> Result<Vec<Sample>, Error> {
        self.each(parts, |count| {
            let time = time(count)?;
            self.check_sum(parts * sum(count))?;
            Ok(time)
        })
    }

    fn wake_latency(&self, sender: Sender) -> Result<Vec<Sample>, Error> {
        let samples = self.job.elements();
        let bell = Bell::new();
        let strike = move |number| bell.strike(number);
        let mut deliver = self.peer.listen(1, |_| strike)?;
        let mut latencies = Latencies::new()?;
        let warm_up = samples / WARM_UP;
        let mut before = 0;
        for number in 0..warm_up + samples {
            if number == warm_up {
                before = memory::switches()?;
            }
            thread::sleep(Duration::from_millis(1));
            let latency = bell.hear(number, sender, &mut deliver);
            if number >= warm_up {
                latencies.record(latency)?;
            }
        }
        let switches = memory::switches()?.saturating_sub(before);
        self.end(1, || deliver(LAST))?;
        let mut figures = self.latencies(&latencies, NANOS_A_MICRO, &["p50", "p99"]);
        let switches = switches as f64 / samples as f64;
        figures.push(self.sample("switches", samples, switches));
        Ok(figures)
    }

    /// Measures the wake latency while another program computes on each processor.
    fn wake_latency_beside_busy(&self, sender: Sender) -> Result<Vec<Sample>, Error> {
        let _busy = Busy::start()?;
        self.wake_latency(sender)
    }

    fn skynet(&self) -> Result<Vec<Sample>, Error> {
        let levels = levels(self.job.elements());
        let mut time = Duration::ZERO;
        for levels in [levels.saturating_sub(2).max(1), levels] {
            time = self.peer.skynet(levels)?;
            self.check_sum(sum_below(10_u64.pow(levels)))?;
        }
        let processes = (10_u64.pow(levels + 1) - 1) / 9;
        let millis = time.as_nanos() as f64 / NANOS_A_MILLI;
        Ok(vec![self.sample("time", processes, millis)])
    }

    fn memory_idle(&self) -> Result<Vec<Sample>, Error> {
        let processes = self.job.elements();
        // Less than elsewhere: its traces in the allocator do not grow the measured run.
        let (_, few) = self.peer.crowd((processes / 100).max(1))?;
        self.peer.wake(few)?;
        let before = memory::resident()?;
        let (spawn, crowd) = self.peer.crowd(processes)?;
        let more = memory::resident()?.saturating_sub(before);
        let wake = self.peer.wake(crowd)?;
        Ok(vec![
            self.sample("rss", processes, more as f64 / processes as f64),
            self.sample("spawn", processes, nanos_each(spawn, processes)),
            self.sample("wake", processes, nanos_each(wake, processes)),
        ])
    }

    fn idle_cpu(&self, processes: u64) -> Result<Vec<Sample>, Error> {
        let (_, crowd) = self.peer.crowd(processes)?;
        let millis = self.job.elements();
        let figures = self.idle(Duration::from_millis(millis), millis)?;
        self.peer.wake(crowd)?;
        Ok(figures.into())
    }

    /// Measures the resources used in `time` without work.
    fn idle(&self, time: Duration, n: u64) -> Result<[Sample; 2], Error> {
        // The started processes have nothing left to do by then.
        thread::sleep(Duration::from_millis(100));
        let switches = memory::switches()?;
        let (begin, before) = (Instant::now(), memory::cpu_time()?);
        thread::sleep(time);
        let (time, used) = (begin.elapsed(), memory::cpu_time()? - before);
        let switches = memory::switches()?.saturating_sub(switches);
        let millis = used.as_secs_f64() * 1e3 / time.as_secs_f64();
        let switches = switches as f64 / time.as_secs_f64();
        Ok([
            self.sample("cpu", n, millis),
            self.sample("switches", n, switches),
        ])
    }

    fn stuck_workers(&self, processes: u64, how: How) -> Result<Vec<Sample>, Error> {
        let (_, crowd) = self.peer.crowd(processes)?;
        self.peer.wake(crowd)?;
        let ticks = self.job.elements();
        let blockers = C::workers(self.job);
        let stuck = Stuck::new(how, BLOCK);
        let (board, mut deliver) = self.board(processes)?;
        board.start();
        self.peer.block(stuck, blockers)?;
        let timer = thread::scope(|scope| {
            let timer = scope.spawn(|| {
                for tick in 0..ticks {
                    thread::sleep(board.due(tick).saturating_duration_since(Instant::now()));
                    deliver(tick);
                }
            });
            timer.join()
        });
        timer.map_err(|_| Error::Failed("the timer thread panicked".to_owned()))?;
        thread::sleep((board.due(ticks - 1) + PERIOD).saturating_duration_since(Instant::now()));
        let latencies = Latencies::of(board.lateness())?;
        self.end(processes + blockers, || {
            stuck.stop();
            deliver(LAST);
        })?;
        Ok(self.latencies(&latencies, NANOS_A_MILLI, &["p99", "max"]))
    }

    fn fairness(&self, processes: u64) -> Result<Vec<Sample>, Error> {
        let millis = self.job.elements();
        let run = |millis: u64| {
            let race = Race::new(usize::try_from(processes).map_err(failed)?);
            self.peer.race(race, processes)?;
            thread::sleep(Duration::from_millis(millis));
            self.end(processes, || race.stop())?;
            Ok(race.laps())
        };
        run(millis / WARM_UP)?;
        let laps = run(millis)?;
        match (laps.iter().min(), laps.iter().max()) {
            (Some(&least), Some(&most)) if least > 0 && laps.len() as u64 == processes => {
                let ratio = most as f64 / least as f64;
                Ok(vec![self.sample("ratio", millis, ratio)])
            }
            _ => Err(Error::Failed(format!(
                "somebody has not run at all: {laps:?}"
            ))),
        }
    }

    fn woken_beside_busy(&self, receivers: u64, step: Duration) -> Result<Vec<Sample>, Error> {
        let rounds = self.job.elements();
        let (board, deliver) = self.board(receivers)?;
        let deliver = Arc::new(Mutex::new(deliver));
        let (over, is_over) = mpsc::channel();
        let send = {
            let (board, deliver) = (Arc::clone(&board), Arc::clone(&deliver));
            let mut round = 0;
            move || {
                if round < rounds {
                    board.send(round);
                    locked(&deliver)(round);
                } else if round == rounds {
                    let _is_told = over.send(());
                }
                round += 1;
            }
        };
        board.start();
        let busy = Stuck::that_sends(step, ROUND, send);
        self.peer.block(busy, BUSY)?;
        let patience = 10 * ROUND * u32::try_from(rounds + 1).map_err(failed)?;
        is_over.recv_timeout(patience).map_err(failed)?;
        self.end_woken(&board, receivers, busy, || locked(&deliver)(LAST))
    }

    /// Measures from the send of a process that this thread wakes, the herald, to the steps of its
    /// receivers, while busy processes compute and continue.
    fn woken_by_herald(&self, receivers: u64, step: Duration) -> Result<Vec<Sample>, Error> {
        let (board, deliver) = self.board(receivers)?;
        let deliver = Arc::new(Mutex::new(deliver));
        let mut tell = self.peer.listen(1, |_| {
            let (board, deliver) = (Arc::clone(&board), Arc::clone(&deliver));
            move |round| {
                let is_last = round == LAST;
                if !is_last {
                    board.send(round);
                }
                locked(&deliver)(round);
                is_last
            }
        })?;
        board.start();
        let busy = Stuck::new(How::Compute, step);
        self.peer.block(busy, BUSY)?;
        for round in 0..self.job.elements() {
            thread::sleep(ROUND);
            tell(round);
        }
        self.end_woken(&board, receivers + 1, busy, || tell(LAST))
    }

    fn woken_from_outside(&self, step: Duration) -> Result<Vec<Sample>, Error> {
        let (board, mut deliver) = self.board(1)?;
        board.start();
        let busy = Stuck::new(How::Compute, step);
        self.peer.block(busy, BUSY)?;
        thread::sleep(ROUND);
        for tick in 0..self.job.elements() {
            thread::sleep(PAUSE);
            board.send(tick);
            deliver(tick);
        }
        self.end_woken(&board, 1, busy, || deliver(LAST))
    }

    fn send_blocking(&self, threads: u64) -> Result<Vec<Sample>, Error> {
        let time = |limit| {
            let mut time = Duration::ZERO;
            for elements in [self.job.elements() / WARM_UP, self.job.elements()] {
                let messages = (elements / threads).max(1);
                time = self.peer.send_blocking(threads, messages, limit)?;
                self.check_sum(threads * sum_below(messages))?;
            }
            Ok::<_, Error>(nanos_each(time, self.job.elements()))
        };
        let n = self.job.elements();
        Ok(vec![
            self.sample("unlimited", n, time(None)?),
            self.sample("limited", n, time(Some(LIMIT))?),
        ])
    }

    fn timer_churn(&self, has_step: bool) -> Result<Vec<Sample>, Error> {
        let n = self.job.elements();
        let time = || {
            self.peer.timer_churn((n / WARM_UP).max(1), has_step)?;
            self.peer.timer_churn(n, has_step)
        };
        let alone = time()?;
        let others = self.job.processes.unwrap_or(n);
        let (_, others) = self.peer.timed_crowd(others, in_an_hour())?;
        let crowded = time()?;
        self.peer.wake(others)?;
        Ok(vec![
            self.sample("alone", n, nanos_each(alone, n)),
            self.sample("crowded", n, nanos_each(crowded, n)),
        ])
    }

    fn timer_fire(&self, seconds: u64) -> Result<Vec<Sample>, Error> {
        let processes = self.job.elements();
        // The lead is the time to set all timers: all of them are set before the first is due.
        let (lead, span) = match self.job.is_quick() {
            true => (4_000, 100 * seconds),
            false => (8_000, 1_000 * seconds),
        };
        let due = Due {
            first: Instant::now() + Duration::from_millis(lead),
            span: Duration::from_millis(span),
        };
        let (_, crowd) = self.peer.timed_crowd(processes, due)?;
        let left = due.first.checked_duration_since(Instant::now());
        let left = left.ok_or_else(|| failed("timers were due before all were set"))?;
        let mut before = Duration::ZERO;
        gate().time(processes, || {
            thread::sleep(left);
            before = memory::cpu_time()?;
            Ok(())
        })?;
        let used = memory::cpu_time()? - before;
        drop(crowd);
        let each = nanos_each(used, processes);
        Ok(vec![self.sample("cpu", processes, each)])
    }

    fn timer_lateness(
        &self,
        processes: u64,
        blockers: u64,
        how: How,
        step: Duration,
    ) -> Result<Vec<Sample>, Error> {
        let n = self.job.elements();
        let (naps, stuck) = (Naps::new(), Stuck::new(how, step));
        self.peer.block(stuck, blockers)?;
        self.peer.nap(naps, processes)?;
        thread::sleep(Duration::from_millis(n));
        self.end(processes + blockers, || {
            naps.stop();
            stuck.stop();
        })?;
        let late = naps.late();
        if late.len() as u64 != processes {
            let wrong = format!("{} of {processes} processes have slept", late.len());
            return Err(Error::Failed(wrong));
        }
        let latencies = Latencies::of(late.iter().flatten().map(|&late| duration(late)))?;
        Ok(self.latencies(&latencies, NANOS_A_MICRO, &["p50", "p99", "max"]))
    }

    fn timers_idle(&self) -> Result<Vec<Sample>, Error> {
        let n = self.job.elements();
        // A few first, as in `memory_idle`: their traces in the allocator do not grow the measured
        // run.
        let (_, few) = self.peer.timed_crowd((n / 100).max(1), in_an_hour())?;
        self.peer.wake(few)?;
        let begin = memory::resident()?;
        let (_, without) = self.peer.crowd(n)?;
        let between = memory::resident()?;
        let (_, with) = self.peer.timed_crowd(n, in_an_hour())?;
        let end = memory::resident()?;
        let more = (end - between).saturating_sub(between - begin);
        let time = Duration::from_millis(if self.job.is_quick() { 500 } else { 5_000 });
        let [cpu, switches] = self.idle(time, n)?;
        self.peer.wake(with)?;
        self.peer.wake(without)?;
        let rss = self.sample("rss", n, more as f64 / n as f64);
        Ok(vec![rss, cpu, switches])
    }

    /// Creates a board for a tick an element, and starts its processes.
    fn board(&self, processes: u64) -> Result<(Arc<Board>, Deliver), Error> {
        let rows = usize::try_from(processes).map_err(failed)?;
        let ticks = usize::try_from(self.job.elements()).map_err(failed)?;
        let board = Arc::new(Board::new(rows, ticks));
        let due = self.peer.listen(processes, |row| {
            let board = Arc::clone(&board);
            let row = usize::try_from(row).expect("a row of the board");
            move |tick| board.arrive(row, tick)
        })?;
        Ok((board, due))
    }

    /// Ends processes by `end`, and waits until each has hit the gate.
    fn end(&self, processes: u64, end: impl FnOnce()) -> Result<(), Error> {
        let ended = gate().time(processes, || {
            end();
            Ok(())
        });
        ended.map(drop)
    }

    /// Waits for the receivers, and ends them by `end`, and the busy processes.
    fn end_woken(
        &self,
        board: &Board,
        receivers: u64,
        busy: &'static Stuck,
        end: impl FnOnce(),
    ) -> Result<Vec<Sample>, Error> {
        let begin = Instant::now();
        while !board.is_full() && begin.elapsed() < GRACE {
            thread::sleep(PERIOD);
        }
        let latencies = Latencies::of(board.lateness())?;
        self.end(receivers + BUSY, || {
            busy.stop();
            end();
        })?;
        Ok(self.latencies(&latencies, NANOS_A_MICRO, &["p50", "p99"]))
    }

    /// Returns the samples of these variants, in units of `unit` nanoseconds; the first has the
    /// histogram.
    fn latencies(&self, latencies: &Latencies, unit: f64, variants: &[&str]) -> Vec<Sample> {
        let sample = |(nth, &variant): (usize, &&str)| {
            let nanos = match variant {
                "p50" => latencies.percentile(50.0),
                "p99" => latencies.percentile(99.0),
                _ => latencies.max(),
            };
            let mut sample = self.sample(variant, self.job.elements(), nanos / unit);
            if nth == 0 {
                latencies.describe(&mut sample, unit);
            }
            sample
        };
        variants.iter().enumerate().map(sample).collect()
    }

    fn check_sum(&self, expected: u64) -> Result<(), Error> {
        check_sum(gate(), expected)
    }

    fn sample(&self, variant: &str, n: u64, value: f64) -> Sample {
        let sample = Sample::new(self.job, variant, value);
        Sample { n, ..sample }
    }
}

fn in_an_hour() -> Due {
    Due {
        first: Instant::now() + HOUR,
        span: HOUR,
    }
}

fn locked(deliver: &Mutex<Deliver>) -> MutexGuard<'_, Deliver> {
    deliver.lock().unwrap_or_else(PoisonError::into_inner)
}

fn check_sum(gate: &Gate, expected: u64) -> Result<(), Error> {
    match gate.take_sum() {
        sum if sum == expected => Ok(()),
        sum => {
            let wrong = format!("the sum is {sum}; it has to be {expected}");
            Err(Error::Failed(wrong))
        }
    }
}

/// Returns the levels of the largest tree of ten children each that has at most `processes`
/// processes; at least 1.
fn levels(processes: u64) -> u32 {
    let fits = |levels: &u32| (10_u64.pow(levels + 1) - 1) / 9 <= processes;
    (1..10).take_while(fits).last().unwrap_or(1)
}

fn sum_below(count: u64) -> u64 {
    count * count.saturating_sub(1) / 2
}

fn nanos_each(time: Duration, elements: u64) -> f64 {
    time.as_nanos() as f64 / elements as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_sum_is_an_error() {
        let gate = Gate::new();
        for brought in [9, 10, 11] {
            gate.hit_with(brought);
            let checked = check_sum(gate, 10);
            assert_eq!(checked.is_ok(), brought == 10, "{checked:?}");
        }
    }
}
