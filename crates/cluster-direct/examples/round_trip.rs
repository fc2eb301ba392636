//! How long a round trip between two programs takes: process to process, where the engine is a
//! guest of the node's scheduler, and where it has a scheduler of its own, beside blocking sockets.
//!
//! The three take turns, so that a busy machine is busy for all. Each line has the least and the
//! middle of the medians, the ratio of both to blocking sockets, and how often a thread of the
//! first program has waited, for each round trip.
//!
//! `cargo run --release -p ganger-cluster-direct --example round_trip -- [workers]`

use ganger_cluster::Cluster;
use ganger_cluster_direct::Direct;
use ganger_net::Net;
use ganger_proc_api::{BoxError, Event, NodeName, Pid, process_fn};
use ganger_sched::{Handle, Scheduler};
use ganger_task::Cx;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// The size of a message over blocking sockets.
const SIZE: usize = 64;
const TRIPS: usize = 500;
const TURNS: usize = 20;
const PATIENCE: Duration = Duration::from_secs(30);

fn main() -> Result<(), BoxError> {
    let workers = env::args().nth(1).map_or(Ok(2), |it| it.parse())?;
    match env::var("SEEDS") {
        Ok(seeds) => second(&seeds, workers),
        Err(_) => first(workers),
    }
}

/// Starts a node whose engine is a guest, or not.
fn node(
    name: &str,
    seed: Option<&str>,
    is_guest: bool,
    workers: usize,
) -> Result<(Scheduler, Cluster, Direct), BoxError> {
    let engine = Direct::listen("127.0.0.1:0").cookie("the cookie of this example");
    let engine = engine.seeds(seed);
    let mut scheduler = Scheduler::builder().workers(workers).node(name);
    if is_guest {
        scheduler = scheduler.driver(Net::new()?);
    }
    let scheduler = scheduler.start()?;
    let cluster = Cluster::builder().engine(engine.clone()).join(&scheduler)?;
    Ok((scheduler, cluster, engine))
}

/// Answers, until the first program ends.
fn second(seeds: &str, workers: usize) -> Result<(), BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    thread::spawn(move || -> std::io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut bytes = [0; SIZE];
        loop {
            stream.read_exact(&mut bytes)?;
            stream.write_all(&bytes)?;
        }
    });
    let mut nodes = Vec::new();
    for (seed, is_guest) in seeds.split(',').zip([true, false]) {
        let name = if is_guest { "guest-b" } else { "own-b" };
        let node = node(name, Some(seed), is_guest, workers)?;
        node.0.named("echo").spawn(process_fn(|ctx, events, _| {
            for event in events {
                if let Event::Message(message) = event {
                    let sender = message.source.ok_or("nothing to answer to")?;
                    ctx.send(sender, "echo", message.take::<u64>()?)?;
                }
            }
            Ok(())
        }))?;
        nodes.push(node);
    }
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn first(workers: usize) -> Result<(), BoxError> {
    let guest = node("guest-a", None, true, workers)?;
    let own = node("own-a", None, false, workers)?;
    let seeds: Vec<_> = [&guest, &own]
        .iter()
        .filter_map(|it| it.2.local_addr())
        .map(|it| it.to_string())
        .collect();
    let mut child = Command::new(env::current_exe()?)
        .arg(workers.to_string())
        .env("SEEDS", seeds.join(","))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    let said = child.stdout.take().ok_or("no output")?;
    BufReader::new(said).read_line(&mut line)?;
    let mut stream = TcpStream::connect(line.trim())?;
    stream.set_nodelay(true)?;
    let guest_echo = find(&guest.1, "guest-b")?;
    let own_echo = find(&own.1, "own-b")?;

    let mut sockets = Column::default();
    let mut guests = Column::default();
    let mut owns = Column::default();
    for _ in 0..TURNS {
        sockets.turn(|| blocking(&mut stream))?;
        guests.turn(|| play(&guest.0, guest_echo))?;
        owns.turn(|| play(&own.0, own_echo))?;
    }
    let floor = sockets.figures();
    for (name, column) in [
        ("blocking sockets", sockets),
        ("guest of the scheduler", guests),
        ("scheduler of its own", owns),
    ] {
        let [least, middle, p99] = column.figures();
        let ratios = [least / floor[0], middle / floor[1]];
        let waits = column.waits as f64 / (TURNS * TRIPS) as f64;
        print!("{name:24} least {least:6.1} us ({:4.2}), ", ratios[0]);
        print!("middle {middle:6.1} us ({:4.2}), ", ratios[1]);
        println!("p99 {p99:7.1} us, {waits:4.2} waits");
    }
    drop(child.stdin.take());
    child.wait()?;
    Ok(())
}

/// Waits until the other node is connected and has its process.
fn find(cluster: &Cluster, node: &str) -> Result<Pid, BoxError> {
    let node = NodeName::new(node)?;
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if let Ok(Some(pid)) = cluster.whereis(node, "echo").wait_timeout(PATIENCE) {
            return Ok(pid);
        }
    }
    Err("the other node has no echo".into())
}

fn blocking(stream: &mut TcpStream) -> Result<Vec<Duration>, BoxError> {
    let mut bytes = [7; SIZE];
    let mut times = Vec::with_capacity(TRIPS);
    for _ in 0..TRIPS {
        let begin = Instant::now();
        stream.write_all(&bytes)?;
        stream.read_exact(&mut bytes)?;
        times.push(begin.elapsed());
    }
    Ok(times)
}

fn play(scheduler: &Handle, echo: Pid) -> Result<Vec<Duration>, BoxError> {
    let (tell, told) = channel();
    let player = scheduler.spawn(async move |cx: Cx<u64>| {
        let mut times = Vec::with_capacity(TRIPS);
        for round in 0..TRIPS as u64 {
            let begin = Instant::now();
            cx.send(echo, round)?;
            let answer = cx.recv().await.ok_or("asked to end")?;
            times.push(begin.elapsed());
            if answer != round {
                return Err("another number".into());
            }
        }
        Ok(tell.send(times)?)
    })?;
    let times = told.recv_timeout(PATIENCE);
    player.wait().into_result()?;
    Ok(times?)
}

/// The turns of one way.
#[derive(Default)]
struct Column {
    medians: Vec<f64>,
    all: Vec<Duration>,
    waits: u64,
}

impl Column {
    fn turn(
        &mut self,
        play: impl FnOnce() -> Result<Vec<Duration>, BoxError>,
    ) -> Result<(), BoxError> {
        let before = waits();
        let mut times = play()?;
        self.waits += waits().saturating_sub(before);
        times.sort();
        self.medians.push(micros(times[times.len() / 2]));
        self.all.extend(times);
        Ok(())
    }

    /// Returns the least and the middle of the medians, and the 99th percentile of all.
    fn figures(&self) -> [f64; 3] {
        let mut medians = self.medians.clone();
        medians.sort_by(f64::total_cmp);
        let mut all = self.all.clone();
        all.sort();
        [
            medians[0],
            medians[medians.len() / 2],
            micros(all[all.len() * 99 / 100]),
        ]
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Counts how often the threads of this program have waited. Zero where the system does not tell.
fn waits() -> u64 {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten();
    let texts = threads.filter_map(|it| fs::read_to_string(it.ok()?.path().join("status")).ok());
    let counts = texts.filter_map(|text| {
        let line = text
            .lines()
            .find_map(|it| it.strip_prefix("voluntary_ctxt_switches:"))?;
        line.trim().parse::<u64>().ok()
    });
    counts.sum()
}
