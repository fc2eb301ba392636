//! The work and the figures of the first program, row by row.

use crate::far::{GROUP, MEMBERS, PIDS};
use crate::pair::{Carrier, How, Nodes, PATIENCE};
use crate::tally::{LAST, block, now, percentiles};
use crate::timed::{LARGE, Measured, PAIRS, SMALL, came_all, micros, round_trips, streams};
use ganger::cluster::NameLost;
use ganger::prelude::*;
use ganger::{ExitCause, Message, SendErrorKind};
use ganger_bench_options::catalog::Id;
use ganger_bench_options::job::{Error, Job};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How many members the group of X5 has, at all other nodes.
const MEMBERS_IN_ALL: usize = 1_000;

/// The pause of the sender of X6 between its looks for due messages.
const PACE: Duration = Duration::from_micros(100);

/// How long X10 looks at idle nodes, after they have settled.
const SETTLED: Duration = Duration::from_secs(1);

/// How often X10 does each of its local workloads.
const TURNS: usize = 5;

const PRODUCERS: u64 = 10;

/// Runs the first program's part of a run.
pub(crate) fn run<C: Carrier>(job: &Job, carrier: C) -> Measured {
    let start = |how, others| Nodes::start(job, carrier, how, others);
    let trips = |how| {
        let nodes = start(how, 1)?;
        let to = nodes.receivers(1)?[0];
        round_trips(job, |count| nodes.round_trips(to, count))
    };
    let stream = |how, size, pairs| {
        let nodes = start(how, 1)?;
        let to = nodes.receivers(pairs)?;
        streams(job, |count| nodes.streams(&to, count, size))
    };
    match job.id {
        Id::X1 => {
            let mut all = trips(How::Plain)?;
            if carrier.has_tls() {
                all.extend(named(trips(How::OverTls)?, ["p50, TLS", "p99, TLS"]));
            }
            let own = named(
                trips(How::OwnSockets)?,
                ["p50, own sockets", "p99, own sockets"],
            );
            all.extend(own);
            Ok(all)
        }
        Id::X2 => stream(How::Plain, SMALL, 1),
        Id::X3 => {
            let mut all = stream(How::Plain, LARGE, 1)?;
            if carrier.has_tls() {
                all.extend(named(stream(How::OverTls, LARGE, 1)?, ["time, TLS"]));
            }
            Ok(all)
        }
        Id::X4 => stream(How::Plain, SMALL, PAIRS),
        Id::X5 => start(How::Plain, 2)?.broadcasts(job.elements()),
        Id::X6 => start(How::Plain, 1)?.one_way(job.elements()),
        Id::X7 => start(How::Plain, 1)?.stopped(Duration::from_millis(job.elements())),
        Id::X8 => start(How::Plain, 1)?.monitors(job.elements()),
        Id::X9 => {
            let crash = start(How::Plain, 1)?.end(|nodes| {
                nodes.second().kill();
                Ok(())
            })?;
            let hang = start(How::Plain, 1)?.end(|nodes| nodes.second().stop())?;
            Ok(vec![("crash", crash), ("hang", hang)])
        }
        Id::X10 => {
            let alone = Scheduler::builder().workers(job.workers).start()?;
            let nodes = start(How::Plain, 2)?;
            let mut all = beside(&alone, &nodes.scheduler, job.elements())?;
            all.extend(nodes.idle(job)?);
            Ok(all)
        }
        Id::X16 => {
            let mut all: Vec<_> = named(trips(How::Plain)?, ["round trip, p50"]).collect();
            let nodes = start(How::Registrar, 1)?;
            all.extend(round_trips(job, |count| nodes.take_names(count))?);
            Ok(all)
        }
        _ => Err(Error::Missing("it is no workload of nodes".to_owned()).into()),
    }
}

/// Returns the same figures by other names.
fn named<const N: usize>(
    figures: Vec<(&'static str, f64)>,
    names: [&'static str; N],
) -> impl Iterator<Item = (&'static str, f64)> {
    names.into_iter().zip(figures.into_iter().map(|it| it.1))
}

/// Sends `count` messages for X6, at half of the speed at which `quick` took the same number.
/// `send` gets how many messages are due, and the number of the message.
pub(crate) fn paced(
    count: u64,
    quick: Duration,
    mut send: impl FnMut(u64, u64) -> Result<(), BoxError>,
) -> Result<(), BoxError> {
    let (begin, mut sent) = (Instant::now(), 0);
    while sent < count {
        let due = begin.elapsed().as_nanos() * u128::from(count) / (2 * quick.as_nanos());
        let due = count.min(u64::try_from(due)?);
        while sent < due {
            send(due, sent)?;
            sent += 1;
        }
        thread::sleep(PACE);
    }
    Ok(())
}

/// Returns the times of X6 from send to receipt, in us.
pub(crate) fn one_way(count: u64, account: [u64; 3]) -> Measured {
    came_all(count, account[0])?;
    Ok(vec![
        ("p50", micros(account[1])),
        ("p99", micros(account[2])),
    ])
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

impl Nodes {
    /// Returns the address of a receiver.
    fn address(&self, to: Pid) -> Result<Address<Vec<u8>>, BoxError> {
        let address = self.scheduler.address(to).ok_or("it has ended")?;
        Ok(address.typed()?)
    }

    /// Starts `count` receivers at the second node.
    fn receivers(&self, count: u64) -> Result<Vec<Pid>, BoxError> {
        let boss = self.boss()?;
        let asks = self.scheduler.spawn(async move |cx: Cx<Vec<Pid>>| {
            cx.send(boss, count)?;
            let mut all = Vec::new();
            while (all.len() as u64) < count {
                all.extend(cx.timeout(PATIENCE, cx.recv()).await?.ok_or("cancelled")?);
            }
            Ok(Payload::any(all))
        })?;
        asks.wait().take()
    }

    fn round_trips(&self, to: Pid, count: u64) -> Result<[u64; 2], BoxError> {
        let player = self.scheduler.spawn(async move |cx: Cx<Vec<u8>>| {
            let mut times = Vec::new();
            for number in 0..count {
                let begin = Instant::now();
                cx.send(to, block(number, 0, SMALL))?;
                let back = cx.recv().await.ok_or("cancelled")?;
                times.push(u64::try_from(begin.elapsed().as_nanos())?);
                if back != block(number, 0, SMALL) {
                    return Err("another block comes back".into());
                }
            }
            Ok(Payload::any(times))
        })?;
        let mut times = player.wait().take::<Vec<u64>>()?;
        self.account(to)?;
        Ok(percentiles(&mut times))
    }

    /// Measures X16: the times in which a process gets names, each after the name before.
    fn take_names(&self, count: u64) -> Result<[u64; 2], BoxError> {
        let names = self.cluster.strong_names()?;
        let owner = self.scheduler.spawn(actor_fn(|_, lost: NameLost, _| {
            Err(format!("it is lost: {lost:?}").into())
        }))?;
        let (mut times, mut last) = (Vec::new(), None);
        for number in 0..count {
            let name = format!("{count} {number}");
            let begin = Instant::now();
            let taken = names.register(&name, owner.address().recipient());
            let token = taken.wait_timeout(PATIENCE)?;
            times.push(u64::try_from(begin.elapsed().as_nanos())?);
            if last.replace(token).is_some_and(|last| last >= token) {
                return Err("a fencing number does not grow".into());
            }
        }
        Ok(percentiles(&mut times))
    }

    /// Sends an equal part of `count` to each receiver, and returns how many have come.
    fn streams(&self, to: &[Pid], count: u64, size: usize) -> Result<u64, BoxError> {
        let each = count / to.len() as u64;
        let senders = to.iter().map(|&to| {
            let address = self.address(to)?;
            let sender = self.scheduler.spawn(async move |cx: Cx<Vec<u64>>| {
                for number in 0..each {
                    address.send_async(block(number, 0, size)).await?;
                    cx.consume_budget().await;
                }
                Ok(Payload::any(account(&cx, to).await?))
            })?;
            Ok(sender)
        });
        let senders = senders.collect::<Result<Vec<_>, BoxError>>()?;
        let mut came = 0;
        for sender in senders {
            came += sender.wait().take::<Vec<u64>>()?[0];
        }
        Ok(came)
    }

    /// Asks a receiver for its account.
    fn account(&self, to: Pid) -> Result<[u64; 3], BoxError> {
        let asks = self
            .scheduler
            .spawn(async move |cx: Cx<Vec<u64>>| Ok(Payload::any(account(&cx, to).await?)))?;
        let account = asks.wait().take::<Vec<u64>>()?;
        Ok(account.try_into().map_err(|_| "it is no account")?)
    }

    /// Measures X5: the time of a broadcast, until each other node has told that all of its members
    /// have the message; and the frames of a broadcast to a node.
    fn broadcasts(&self, count: u64) -> Measured {
        let bosses = self.bosses()?;
        let (nodes, each) = (bosses.len(), MEMBERS_IN_ALL / bosses.len());
        let group = self.cluster.groups(GROUP).group(GROUP);
        let cluster = self.cluster.clone();
        let frames = move || -> u64 {
            let peers = cluster.peers();
            peers.iter().map(|peer| peer.session.frames[1]).sum()
        };
        let sender = self.scheduler.spawn(async move |cx: Cx<Vec<u64>>| {
            for boss in bosses {
                cx.send(boss, MEMBERS | each as u64)?;
            }
            while group.members().len() < MEMBERS_IN_ALL {
                cx.sleep(Duration::from_millis(1)).await?;
            }
            let before = frames();
            let begin = Instant::now();
            for number in 0..count {
                let delivered = group.broadcast(&block(number, 0, SMALL));
                if delivered.taken != MEMBERS_IN_ALL {
                    return Err(format!("{delivered:?}").into());
                }
                for _ in 0..nodes {
                    cx.timeout(PATIENCE, cx.recv()).await?.ok_or("cancelled")?;
                }
            }
            let time = begin.elapsed();
            Ok(Payload::any((time, frames() - before)))
        })?;
        let (time, frames) = sender.wait().take::<(Duration, u64)>()?;
        Ok(vec![
            ("time", time.as_nanos() as f64 / 1e3 / count as f64),
            ("frames", frames as f64 / (count * nodes as u64) as f64),
        ])
    }

    fn one_way(&self, count: u64) -> Measured {
        let to = self.receivers(1)?;
        let begin = Instant::now();
        came_all(count, self.streams(&to, count, SMALL)?)?;
        let quick = begin.elapsed();
        let address = self.address(to[0])?;
        paced(count, quick, |_, number| {
            Ok(address.send_blocking(block(number, now(), SMALL))?)
        })?;
        one_way(count, self.account(to[0])?)
    }

    fn stopped(&mut self, time: Duration) -> Measured {
        let to = self.receivers(1)?;
        self.streams(&to, 10_000, LARGE)?;
        let address = self.address(to[0])?;
        self.second().stop()?;
        let before = resident()?;
        let (begin, mut sent) = (Instant::now(), 0);
        let mut refused = 0_u64;
        while begin.elapsed() < time {
            match address.send(block(sent, 0, LARGE)) {
                Ok(()) => sent += 1,
                Err(error) if error.kind == SendErrorKind::Full => {
                    refused += 1;
                    thread::sleep(Duration::from_millis(1));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let more = resident()?.saturating_sub(before);
        self.second().go_on()?;
        came_all(sent, self.account(to[0])?[0])?;
        match refused {
            0 => Err("nothing bounds what waits".into()),
            _ => Ok(vec![("rss", more as f64 / f64::from(1 << 20))]),
        }
    }

    fn monitors(&mut self, count: u64) -> Measured {
        let wait = |told: &Receiver<Told>| told.recv_timeout(PATIENCE);
        let mut times = Vec::new();
        let mut watch = |nodes: &Self| {
            let all = nodes.receivers(count)?;
            let (watcher, told) = watcher(&nodes.scheduler, count)?;
            let begin = Instant::now();
            for some in all.chunks(usize::try_from(PIDS)?) {
                watcher.send(Message::of(some.to_vec()))?;
            }
            wait(&told)?;
            // The boss answers only after the monitors are there.
            let boss = nodes.boss()?;
            times.push(millis(begin.elapsed()));
            Ok::<_, BoxError>((boss, told))
        };
        let (boss, told) = watch(self)?;
        let begin = Instant::now();
        self.scheduler
            .send(Message::of(0_u64).from_pid(boss).to(boss))?;
        wait(&told)?;
        let died = millis(begin.elapsed());
        let (_, told) = watch(self)?;
        self.second().kill();
        let Told { first, cause, .. } = wait(&told)?;
        let ended = millis(first.ok_or("no notice")?.elapsed());
        check(cause)?;
        let set_up = times.into_iter().fold(f64::INFINITY, f64::min);
        Ok(vec![
            ("set up", set_up),
            ("all die", died),
            ("session ends", ended),
        ])
    }

    /// Measures the time until a monitor says that the second program has ended.
    fn end(mut self, end: impl FnOnce(&mut Self) -> Result<(), BoxError>) -> Result<f64, BoxError> {
        let to = self.receivers(1)?;
        let (watcher, told) = watcher(&self.scheduler, 1)?;
        watcher.send(Message::of(to))?;
        told.recv_timeout(PATIENCE)?;
        self.boss()?;
        let begin = Instant::now();
        end(&mut self)?;
        let cause = told.recv_timeout(PATIENCE)?.cause;
        let time = millis(begin.elapsed());
        check(cause).map(|()| time)
    }

    /// Measures X10: the processor time of each of the other nodes, without any work.
    fn idle(&self, job: &Job) -> Measured {
        let time = if job.is_quick() { SETTLED } else { 5 * SETTLED };
        thread::sleep(SETTLED);
        let used = || {
            let used = self.others.iter().map(|it| processor_time(it.0.id()));
            used.sum::<Result<Duration, BoxError>>()
        };
        let (begin, before) = (Instant::now(), used()?);
        thread::sleep(time);
        let used = millis(used()?.saturating_sub(before)) / self.others.len() as f64;
        Ok(vec![("cpu", used / begin.elapsed().as_secs_f64())])
    }
}

/// Sends the last message to a receiver, and waits for its account.
async fn account(cx: &Cx<Vec<u64>>, to: Pid) -> Result<Vec<u64>, BoxError> {
    loop {
        match cx.send(to, block(LAST, 0, SMALL)) {
            Ok(()) => break,
            Err(error) if error.kind == SendErrorKind::Full => {
                cx.sleep(Duration::from_millis(1)).await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(cx.timeout(PATIENCE, cx.recv()).await?.ok_or("cancelled")?)
}

/// Word of the watcher: first, with no cause, as soon as it monitors all processes; later, when all
/// have ended.
struct Told {
    first: Option<Instant>,
    cause: Option<ExitCause>,
}

fn check(cause: Option<ExitCause>) -> Result<(), BoxError> {
    match cause {
        Some(ExitCause::NoConnection) => Ok(()),
        other => Err(format!("a process of a program that has ended: {other:?}").into()),
    }
}

/// Starts a process that monitors the processes of the messages to it, `count` in all.
fn watcher(scheduler: &Scheduler, count: u64) -> Result<(ProcessHandle, Receiver<Told>), BoxError> {
    let (tell, told) = channel();
    let (mut watched, mut ended, mut first) = (0, 0, None);
    let watcher = scheduler.spawn(process_fn(move |ctx, events, _| {
        for event in events {
            match event {
                Event::Message(message) => {
                    for pid in message.take::<Vec<Pid>>()? {
                        ctx.monitor(pid, Tag::default())?;
                        watched += 1;
                    }
                    if watched == count {
                        let cause = None;
                        tell.send(Told { first, cause })?;
                    }
                }
                Event::Exit(notice) => {
                    first.get_or_insert_with(Instant::now);
                    ended += 1;
                    if ended == count {
                        let cause = Some(notice.cause.clone());
                        tell.send(Told { first, cause })?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }))?;
    Ok((watcher, told))
}

/// Measures X10: a round trip of a pair, and a message of many producers to one consumer, in a
/// scheduler by itself and in a node, in turns.
fn beside(alone: &Scheduler, node: &Scheduler, count: u64) -> Measured {
    let names = ["round trip, alone", "round trip", "fan in, alone", "fan in"];
    let mut all = names.map(|name| (name, f64::INFINITY));
    for _ in 0..TURNS {
        let times = [
            ping_pong(alone, count / 2)?,
            ping_pong(node, count / 2)?,
            fan_in(alone, count)?,
            fan_in(node, count)?,
        ];
        for (least, time) in all.iter_mut().zip(times) {
            least.1 = least.1.min(time);
        }
    }
    Ok(all.into())
}

fn ping_pong(scheduler: &Scheduler, count: u64) -> Result<f64, BoxError> {
    let pong = scheduler.spawn(process_fn(|ctx, events, _| {
        for event in events {
            if let Event::Message(message) = event {
                let to = message.source.ok_or("nothing to answer to")?;
                ctx.send(to, "pong", message.take::<u64>()?)?;
            }
        }
        Ok(())
    }))?;
    let to = pong.pid();
    let begin = Instant::now();
    let ping = scheduler.spawn(process_fn(move |ctx, events, out| {
        for event in events {
            let left = match event {
                Event::Message(message) => message.take::<u64>()?,
                _ => continue,
            };
            match left {
                0 => out.done(()),
                left => ctx.send(to, "ping", left - 1)?,
            }
        }
        Ok(())
    }))?;
    ping.send(Message::of(count))?;
    ping.wait().into_result()?;
    Ok(begin.elapsed().as_nanos() as f64 / count as f64)
}

fn fan_in(scheduler: &Scheduler, count: u64) -> Result<f64, BoxError> {
    let each = count / PRODUCERS;
    let (mut sum, mut got) = (0, 0);
    let consumer = scheduler.spawn(actor_fn(move |_, number: u64, out| {
        sum += number;
        got += 1;
        if got == each * PRODUCERS {
            out.done(sum);
        }
        Ok(())
    }))?;
    let begin = Instant::now();
    for _ in 0..PRODUCERS {
        let to = consumer.address().clone();
        scheduler.spawn(async move |_: Cx| {
            (0..each).try_for_each(|number| to.send(number))?;
            Ok(())
        })?;
    }
    let sum = consumer.wait().take::<u64>()?;
    let time = begin.elapsed().as_nanos() as f64 / count as f64;
    came_all(PRODUCERS * each * (each - 1) / 2, sum).map(|()| time)
}

/// Returns how many bytes of this program are in memory.
fn resident() -> Result<u64, BoxError> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibi = line.ok_or("the system does not say")?.trim();
    Ok(kibi.trim_end_matches(" kB").parse::<u64>()? << 10)
}

/// Returns the processor time of all threads of a program.
fn processor_time(program: u32) -> Result<Duration, BoxError> {
    let mut nanos = 0;
    for thread in std::fs::read_dir(format!("/proc/{program}/task"))? {
        let text = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        let first = text.split_whitespace().next();
        nanos += first.ok_or("the system does not say")?.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanos))
}
