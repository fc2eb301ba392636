//! Runs a job: the repetitions, a small run of the same first, the clock, and the check of the
//! result. The same for every peer.

mod depend;
mod wake;

use super::bell::LAST;
use super::bell::Sender;
use super::board::{Board, PERIOD, duration};
use super::catalog::{Id, Kind, Peer};
use super::contestant::{Contestant, Deliver, Timed, failed};
use super::gate::Gate;
use super::job::{Error, Job};
use super::latency::Latencies;
use super::memory;
use super::sample::Sample;
use super::timed::{Due, Naps};
use super::turns::{How, Race, Stuck};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Warm-up does this part of the work.
const WARM_UP: u64 = 20;

/// The time for which a process blocks its thread.
const BLOCK: Duration = Duration::from_millis(500);

/// The number of processes that compute while others are woken.
const BUSY: u64 = 7;

/// For how long each of them does so in a step.
const LONG_STEP: Duration = Duration::from_millis(1);
const SHORT_STEP: Duration = Duration::from_micros(10);

/// The time between two sends of a step, and of a thread that is no worker.
const ROUND: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(10);

/// How long a receiver may take at the end.
const GRACE: Duration = Duration::from_secs(2);

/// The time of timers that must not fire.
const HOUR: Duration = Duration::from_secs(3_600);

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
/// If the peer has no such workload, or something goes wrong: it refuses, gets stuck, or has a
/// wrong result.
pub(super) fn measure<C: Contestant>(
    peer: &C,
    gate: &'static Gate,
    job: &Job,
) -> Result<Vec<Sample>, Error> {
    let run = Run { peer, gate, job };
    let processes = |default: u64| job.processes.unwrap_or(default);
    match job.id {
        Id::W1 | Id::A1 => run.each(1, |processes| peer.spawn(processes)),
        Id::W2 => run.skynet(),
        Id::W3a | Id::A2a => run.each(1, |steps| peer.yields(1, steps)),
        Id::W3b | Id::A2b => run.each(processes(100), |steps| peer.yields(processes(100), steps)),
        Id::W4 | Id::A3 => run.each(1, |trips| peer.ping_pong(1, trips)),
        Id::W4b | Id::A4 => run.each(processes(1_000), |trips| {
            peer.ping_pong(processes(1_000), trips)
        }),
        Id::W4pid => run.each(1, |trips| peer.ping_pong_by_pid(1, trips)),
        Id::W4t => run.each(1, |trips| peer.typed_ping_pong(1, trips)),
        Id::W5 => run.each(1, |hops| peer.ring(processes(10_000), 1, hops)),
        Id::W5b | Id::A5 => run.each(100, |hops| peer.ring(processes(10_000), 100, hops)),
        Id::W5bt => run.each(100, |hops| peer.typed_ring(processes(10_000), 100, hops)),
        Id::W6 | Id::W6all | Id::W6t | Id::A6 => {
            let producers = job.producers.unwrap_or(100);
            run.each(producers, |messages| {
                let time = match job.id {
                    Id::W6all => peer.fan_in_all(producers, messages)?,
                    Id::W6t => peer.typed_fan_in(producers, messages)?,
                    _ => peer.fan_in(producers, messages)?,
                };
                run.check_sum(producers * sum_below(messages))?;
                Ok(time)
            })
        }
        Id::W7 | Id::W7t => {
            let receivers = processes(1_000);
            run.each(receivers, |messages| {
                let time = match job.id {
                    Id::W7t => peer.typed_fan_out(receivers, messages)?,
                    _ => peer.fan_out(receivers, messages)?,
                };
                run.check_sum(receivers * sum_below(messages))?;
                Ok(time)
            })
        }
        Id::W8 | Id::A7 => run.memory_idle(),
        Id::W9 => run.each(1, |commands| {
            let time = peer.command_inline(commands)?;
            run.check_sum(sum_below(commands + 1))?;
            Ok(time)
        }),
        Id::W9ask | Id::A8 => run.each(1, |commands| {
            let time = peer.command_asked(commands)?;
            run.check_sum(sum_below(commands + 1))?;
            Ok(time)
        }),
        Id::A9 | Id::S1 | Id::S1out | Id::S2 | Id::S3 | Id::S3in => run.depend(),
        Id::S4 | Id::S4each | Id::S5 | Id::S5us => run.depend(),
        Id::W10 => run.wake_latency(Sender::Parks),
        Id::W10spin => run.wake_latency(Sender::Spins),
        Id::W10busy => run.wake_latency_beside_busy(Sender::Parks),
        Id::W10busyspin => run.wake_latency_beside_busy(Sender::Spins),
        Id::W11 => run.idle_cpu(processes(1_000)),
        Id::W12 => run.stuck_workers(processes(1_000), How::Sleep),
        Id::W12cpu => run.stuck_workers(processes(1_000), How::Compute),
        Id::W13 => run.fairness(processes(100)),
        Id::W13b => run.woken_beside_busy(processes(100), LONG_STEP),
        Id::W13b10 => run.woken_beside_busy(processes(100), SHORT_STEP),
        Id::W13c => run.woken_from_outside(LONG_STEP),
        Id::W13c10 => run.woken_from_outside(SHORT_STEP),
        Id::W13d => run.woken_by_herald(processes(100), LONG_STEP),
        Id::W13d10 => run.woken_by_herald(processes(100), SHORT_STEP),
        Id::W14 | Id::A10 => run.timer_churn(false),
        Id::W14step | Id::A10step => run.timer_churn(true),
        Id::W15 | Id::A11 => run.timer_fire(1),
        Id::W15min => run.timer_fire(60),
        Id::W16 => run.timer_lateness(processes(1_000), 0, How::Compute, Duration::ZERO),
        Id::W16b => run.timer_lateness(processes(1_000), BUSY, How::Compute, LONG_STEP),
        Id::W16b10 => run.timer_lateness(processes(1_000), BUSY, How::Compute, SHORT_STEP),
        Id::W16stuck => {
            let workers = peer.workers() as u64;
            run.timer_lateness(processes(1_000), workers, How::Sleep, BLOCK)
        }
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
    gate: &'static Gate,
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
        let time = time(count)?;
        Ok(vec![self.sample(
            "time",
            count * parts,
            nanos_each(time, count * parts),
        )])
    }

    /// The time, if the sum is right.
    fn summed(&self, time: Duration, sum: u64) -> Timed {
        self.check_sum(sum).map(|()| time)
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
        let blockers = self.peer.workers() as u64;
        let (board, stuck) = (self.board(processes)?, Stuck::new(how, BLOCK));
        let mut deliver = self.peer.due(&board)?;
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
        let mut latencies = Latencies::new()?;
        board
            .lateness()
            .try_for_each(|late| latencies.record(late))?;
        self.gate.time(processes + blockers, || {
            stuck.stop();
            deliver(LAST);
            Ok(())
        })?;
        let mut p99 = self.sample("p99", ticks, latencies.percentile(99.0) / NANOS_A_MILLI);
        latencies.describe(&mut p99, NANOS_A_MILLI);
        let max = self.sample("max", ticks, latencies.max() / NANOS_A_MILLI);
        Ok(vec![p99, max])
    }

    fn fairness(&self, processes: u64) -> Result<Vec<Sample>, Error> {
        let millis = self.job.elements();
        let run = |millis: u64| {
            let race = Race::new(usize::try_from(processes).map_err(failed)?);
            self.peer.race(race, processes)?;
            thread::sleep(Duration::from_millis(millis));
            self.gate.time(processes, || {
                race.stop();
                Ok(())
            })?;
            Ok(race.laps())
        };
        run(millis / WARM_UP)?;
        let laps = run(millis)?;
        match (laps.iter().min(), laps.iter().max()) {
            (Some(&least), Some(&most)) if least > 0 && laps.len() as u64 == processes => {
                Ok(vec![self.sample(
                    "ratio",
                    millis,
                    most as f64 / least as f64,
                )])
            }
            _ => Err(Error::Failed(format!(
                "somebody has not run at all: {laps:?}"
            ))),
        }
    }

    fn woken_beside_busy(&self, receivers: u64, step: Duration) -> Result<Vec<Sample>, Error> {
        let rounds = self.job.elements();
        let board = self.board(receivers)?;
        let deliver = Arc::new(Mutex::new(self.peer.due(&board)?));
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

    fn woken_from_outside(&self, step: Duration) -> Result<Vec<Sample>, Error> {
        let board = self.board(1)?;
        let mut deliver = self.peer.due(&board)?;
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
        self.gate.time(processes, || {
            thread::sleep(left);
            before = memory::cpu_time()?;
            Ok(())
        })?;
        let used = memory::cpu_time()? - before;
        drop(crowd);
        Ok(vec![self.sample(
            "cpu",
            processes,
            nanos_each(used, processes),
        )])
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
        self.gate.time(processes + blockers, || {
            naps.stop();
            stuck.stop();
            Ok(())
        })?;
        let late = naps.late();
        if late.len() as u64 != processes {
            let wrong = format!("{} of {processes} processes have slept", late.len());
            return Err(Error::Failed(wrong));
        }
        let mut latencies = Latencies::new()?;
        late.iter()
            .flatten()
            .try_for_each(|&late| latencies.record(duration(late)))?;
        let p50 = self.sample("p50", n, latencies.percentile(50.0) / NANOS_A_MICRO);
        let mut p99 = self.sample("p99", n, latencies.percentile(99.0) / NANOS_A_MICRO);
        latencies.describe(&mut p99, NANOS_A_MICRO);
        let max = self.sample("max", n, latencies.max() / NANOS_A_MICRO);
        Ok(vec![p50, p99, max])
    }

    fn timers_idle(&self) -> Result<Vec<Sample>, Error> {
        let n = self.job.elements();
        // As in W8.
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

    /// A board for a tick an element.
    fn board(&self, processes: u64) -> Result<Arc<Board>, Error> {
        let processes = usize::try_from(processes).map_err(failed)?;
        let ticks = usize::try_from(self.job.elements()).map_err(failed)?;
        Ok(Arc::new(Board::new(processes, ticks)))
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
        let mut latencies = Latencies::new()?;
        board
            .lateness()
            .try_for_each(|late| latencies.record(late))?;
        self.gate.time(receivers + BUSY, || {
            busy.stop();
            end();
            Ok(())
        })?;
        let n = self.job.elements();
        let p50 = self.sample("p50", n, latencies.percentile(50.0) / NANOS_A_MICRO);
        let mut p99 = self.sample("p99", n, latencies.percentile(99.0) / NANOS_A_MICRO);
        latencies.describe(&mut p99, NANOS_A_MICRO);
        Ok(vec![p50, p99])
    }

    fn check_sum(&self, expected: u64) -> Result<(), Error> {
        check_sum(self.gate, expected)
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
    fn trees_have_as_many_processes_as_they_may() {
        assert_eq!(levels(1), 1);
        assert_eq!(levels(1_110), 2);
        assert_eq!(levels(1_111), 3);
        assert_eq!(levels(1_111_111), 6);
    }

    #[test]
    fn a_wrong_sum_is_an_error() {
        let gate = Gate::new();
        for brought in [9, 10, 11] {
            gate.hit_with(brought);
            let checked = check_sum(gate, 10);
            assert_eq!(checked.is_ok(), brought == 10, "{checked:?}");
        }
    }

    #[test]
    fn sums_are_of_the_numbers_below() {
        for count in 0..5 {
            assert_eq!(sum_below(count), (0..count).sum::<u64>());
        }
    }
}
