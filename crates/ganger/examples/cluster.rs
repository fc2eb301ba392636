//! Two programs as a cluster. The second is started by the first, killed, and started again.
//!
//! `cargo run -p ganger --release --features cluster --example cluster`
//!
//! Over NATS, with `ganger-cluster-nats`: `Nats::new("nats://…")` in the place of `Direct`.

use ganger::cluster::{Cluster, NodeChange};
use ganger::direct::Direct;
use ganger::prelude::*;
use ganger::{NodeName, Scheduler};
use std::env;
use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const ROUNDS: usize = 10_000;
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn main() -> Result<(), BoxError> {
    match (env::var("SEED"), env::var("SECRET")) {
        (Ok(seed), Ok(secret)) => beta(seed, &secret),
        _ => alpha(),
    }
}

/// Starts a scheduler as a node.
fn join(name: &str, engine: Direct) -> Result<(Scheduler, Cluster), BoxError> {
    let scheduler = Scheduler::builder().workers(1).node(name).start()?;
    let cluster = Cluster::builder().engine(engine).join(&scheduler)?;
    Ok((scheduler, cluster))
}

/// Answers each number, until the first program ends.
fn beta(seed: String, secret: &str) -> Result<(), BoxError> {
    let engine = Direct::listen("127.0.0.1:0").seeds([seed]).cookie(secret);
    let (scheduler, cluster) = join("beta", engine)?;
    let _echo = scheduler.named("echo").spawn(process_fn(|ctx, events, _| {
        for event in events {
            if let Event::Message(message) = event {
                let sender = message.source.ok_or("nothing to answer to")?;
                ctx.send(sender, "echo", message.take::<u64>()?)?;
            }
        }
        Ok(())
    }))?;
    println!("beta: up, as incarnation {}", cluster.incarnation());
    // The pipe is closed when the first program ends.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn alpha() -> Result<(), BoxError> {
    let secret = format!("{:x}", RandomState::new().hash_one("a cookie"));
    let engine = Direct::listen("127.0.0.1:0").cookie(&secret);
    let (scheduler, cluster) = join("alpha", engine.clone())?;
    let seed = engine
        .local_addr()
        .ok_or("alpha does not listen")?
        .to_string();
    println!("alpha: up, listening at {seed}");
    let (tell, changes) = channel();
    let watcher = scheduler.spawn(actor_fn(move |_, change: NodeChange, _| {
        Ok(tell.send(change)?)
    }))?;
    cluster.watch_nodes(watcher.address().recipient());

    let start_beta = || {
        let mut beta = Command::new(env::current_exe()?);
        let beta = beta.env("SEED", &seed).env("SECRET", &secret);
        beta.stdin(Stdio::piped()).spawn()
    };
    let mut child = start_beta()?;
    let echo = find_echo(&cluster, &changes)?;
    play(&scheduler, echo)?;
    kill(&scheduler, &mut child, echo)?;

    child = start_beta()?;
    let again = find_echo(&cluster, &changes)?;
    println!("alpha: beta's echo is {again} by now");
    let end = scheduler.spawn(async move |cx: Cx| Ok(cx.monitor(echo).await?.to_string()))?;
    println!("alpha: {echo}: {}", end.wait().take::<String>()?);
    // Its input ends.
    drop(child.stdin.take());
    child.wait()?;
    Ok(())
}

/// Waits until beta is connected, and asks it for its process.
fn find_echo(cluster: &Cluster, changes: &Receiver<NodeChange>) -> Result<Pid, BoxError> {
    loop {
        match changes.recv_timeout(PATIENCE)? {
            NodeChange::Up { .. } => break,
            down => println!("alpha: {down:?}"),
        }
    }
    for (node, incarnation) in cluster.nodes() {
        println!("alpha: {node} is up, as incarnation {incarnation}");
    }
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        // Beta may be connected before it has the process.
        let echo = cluster.whereis(NodeName::new("beta")?, "echo");
        if let Some(echo) = echo.wait_timeout(PATIENCE)? {
            return Ok(echo);
        }
    }
    Err("beta has no echo".into())
}

/// Plays ping-pong, and says how long a round takes.
fn play(scheduler: &Scheduler, echo: Pid) -> Result<(), BoxError> {
    let (tell, times) = channel();
    let player = scheduler.spawn(async move |cx: Cx<u64>| {
        for round in 0..ROUNDS as u64 {
            let begin = Instant::now();
            cx.send(echo, round)?;
            let answer = cx.recv().await.ok_or("asked to end")?;
            tell.send(begin.elapsed())?;
            if answer != round {
                return Err("another number".into());
            }
        }
        Ok(())
    })?;
    player.wait().into_result()?;
    let mut times: Vec<_> = times.into_iter().collect();
    times.sort();
    let at = |percent: usize| times[times.len() * percent / 100].as_micros();
    println!(
        "alpha: {ROUNDS} round trips to {echo}: p50 {} us, p99 {} us",
        at(50),
        at(99)
    );
    Ok(())
}

/// Kills beta without a word, and waits until a monitor says so.
fn kill(scheduler: &Scheduler, beta: &mut Child, echo: Pid) -> Result<(), BoxError> {
    let (tell, begun) = channel();
    let monitor = scheduler.spawn(async move |cx: Cx| {
        let end = cx.monitor(echo);
        tell.send(())?;
        Ok(end.await?.to_string())
    })?;
    begun.recv_timeout(PATIENCE)?;
    println!("alpha: killing beta");
    let begin = Instant::now();
    beta.kill()?;
    beta.wait()?;
    let end = monitor.wait().take::<String>()?;
    println!(
        "alpha: the monitor of {echo}: {end}, after {:.2?}",
        begin.elapsed()
    );
    Ok(())
}
