//! The lower bound over a broker: the client alone, without processes, and without a word of lost
//! messages. So the sender waits for the receiver's word every few messages.

use async_nats::{Client, Subscriber};
use futures_util::StreamExt;
use ganger::BoxError;
use ganger_bench_cluster::{
    LARGE, LAST, Measured, Place, SMALL, Tally, block, percentiles, round_trips, second, streams,
};
use ganger_bench_options::catalog::Id;
use ganger_bench_options::job::{Error, Job};
use std::time::{Duration, Instant};
use tokio::runtime::Builder;

const TO: &str = "bench.to";
const BACK: &str = "bench.back";

/// After so many messages the receiver says that they are there; twice as many may be on their way.
const PART: u64 = 16_384;

const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a workload by the client alone.
pub(crate) fn run(job: &Job, url: &str) -> Measured {
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(job.workers).enable_all().build()?;
    let id = job.id;
    let url = url.to_owned();
    // Each part in a task: the thread of `block_on` is no worker.
    if Place::of_second().is_some() {
        let serves = runtime.spawn(async move { serve(&url, id == Id::X1nats).await });
        runtime.block_on(serves)??;
        return Ok(Vec::new());
    }
    let second = second("beta", &url, None)?;
    let play = |count| {
        let url = url.clone();
        runtime.block_on(runtime.spawn(async move { play(Pair::new(&url).await?, count).await }))?
    };
    let send = |size| {
        let (runtime, url) = (&runtime, url.clone());
        move |count| {
            let url = url.clone();
            let sends = async move { send(Pair::new(&url).await?, count, size).await };
            runtime.block_on(runtime.spawn(sends))?
        }
    };
    let measured = match id {
        Id::X1nats => round_trips(job, play),
        Id::X2nats => streams(job, send(SMALL)),
        Id::X3nats => streams(job, send(LARGE)),
        _ => Err(Error::Missing("the client has no processes".to_owned()).into()),
    };
    drop(second);
    measured
}

/// A connection, and what comes back.
struct Pair {
    client: Client,
    back: Subscriber,
}

impl Pair {
    /// Connects, and waits for the second program.
    async fn new(url: &str) -> Result<Self, BoxError> {
        let client = async_nats::connect(url).await?;
        let mut back = client.subscribe(BACK).await?;
        let begin = Instant::now();
        // The second program answers, once it has subscribed.
        while begin.elapsed() < PATIENCE {
            client.publish(TO, block(LAST, 0, SMALL).into()).await?;
            if tokio::time::timeout(Duration::from_millis(100), back.next()).await.is_ok() {
                return Ok(Self { client, back });
            }
        }
        Err("the second program does not come".into())
    }
}

async fn play(mut pair: Pair, count: u64) -> Result<[u64; 2], BoxError> {
    let mut times = Vec::new();
    for number in 0..count {
        let begin = Instant::now();
        pair.client.publish(TO, block(number, 0, SMALL).into()).await?;
        let back = pair.back.next().await.ok_or("the connection has ended")?;
        times.push(u64::try_from(begin.elapsed().as_nanos())?);
        if back.payload[..] != block(number, 0, SMALL)[..] {
            return Err("another block comes back".into());
        }
    }
    Ok(percentiles(&mut times))
}

async fn send(mut pair: Pair, count: u64, size: usize) -> Result<u64, BoxError> {
    let mut parts = 0;
    for number in 0..count {
        if number / PART > parts + 1 {
            pair.back.next().await.ok_or("the connection has ended")?;
            parts += 1;
        }
        pair.client.publish(TO, block(number, 0, size).into()).await?;
    }
    pair.client.publish(TO, block(LAST, 0, size).into()).await?;
    for _ in parts..count / PART {
        pair.back.next().await.ok_or("the connection has ended")?;
    }
    let account = pair.back.next().await.ok_or("the connection has ended")?;
    Ok(u64::from_le_bytes(account.payload[..8].try_into()?))
}

/// Gets messages until the first program ends this one.
async fn serve(url: &str, answers_all: bool) -> Result<(), BoxError> {
    let client = async_nats::connect(url).await?;
    let mut to = client.subscribe(TO).await?;
    let (mut tally, mut count) = (Tally::default(), 0);
    while let Some(message) = to.next().await {
        let account = tally.note(&message.payload);
        count = if account.is_some() { 0 } else { count + 1 };
        if let Some(account) = account {
            let account = account.map(u64::to_le_bytes).concat();
            client.publish(BACK, account.into()).await?;
        } else if answers_all {
            client.publish(BACK, message.payload).await?;
        } else if count % PART == 0 {
            client.publish(BACK, message.payload.slice(..8)).await?;
        }
    }
    Ok(())
}
