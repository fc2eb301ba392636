//! The client of NATS by itself, without nodes; and the writes of a store by itself.

use async_nats::{Client, ConnectOptions, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use ganger::BoxError;
use ganger::cluster::{Store, StoreOp, StoreReply};
use ganger_bench_cluster::{LAST, SMALL, Second, Tally, block, percentiles, second};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// The name of the second program.
pub(crate) const NODE: &str = "bare";

const THERE: &str = "bare.there";
const BACK: &str = "bare.back";

/// After so many messages the sender waits for an answer. Without the answer the broker cuts a
/// receiver off, and the sender hears nothing of the cut.
const IN_FLIGHT: u64 = 20_000;

const PATIENCE: Duration = Duration::from_secs(60);

async fn connect(url: &str, subject: &'static str) -> Result<(Client, Subscriber), BoxError> {
    let options = ConnectOptions::new().subscription_capacity(1 << 20);
    let client = options.connect(url).await?;
    let inbox = client.subscribe(subject).await?;
    client.flush().await?;
    Ok((client, inbox))
}

fn runtime() -> Result<Runtime, BoxError> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// Is the second program: sends messages back that have a subject for answers, counts the others,
/// and tells the count after the last.
pub(crate) fn serve(url: &str) -> Result<(), BoxError> {
    runtime()?.block_on(async {
        let (client, mut inbox) = connect(url, THERE).await?;
        client.publish(BACK, Bytes::from_static(b"ready")).await?;
        client.flush().await?;
        let mut tally = Tally::default();
        while let Some(message) = inbox.next().await {
            if let Some(to) = message.reply {
                client.publish(to, message.payload).await?;
                client.flush().await?;
            } else if let Some(account) = tally.note(&message.payload) {
                let bytes = account.map(u64::to_le_bytes).concat();
                client.publish(BACK, bytes.into()).await?;
                client.flush().await?;
            }
        }
        Ok(())
    })
}

/// Both ends of the client.
pub(crate) struct Pair {
    runtime: Runtime,
    client: Client,
    inbox: Subscriber,
    _second: Second,
}

impl Pair {
    pub(crate) fn start(url: &str) -> Result<Self, BoxError> {
        let runtime = runtime()?;
        let (client, inbox) = runtime.block_on(connect(url, BACK))?;
        let second = second(NODE, url, None)?;
        let mut pair = Self {
            runtime,
            client,
            inbox,
            _second: second,
        };
        let ready = pair.runtime.block_on(next(&mut pair.inbox))?;
        (ready == "ready")
            .then_some(pair)
            .ok_or("another word".into())
    }

    /// Measures the 50th and the 99th percentile of round trips, in nanoseconds.
    pub(crate) fn round_trips(&mut self, count: u64) -> Result<[u64; 2], BoxError> {
        self.runtime.block_on(async {
            let mut times = Vec::new();
            for number in 0..count {
                let begin = Instant::now();
                ask(&self.client, &mut self.inbox, number).await?;
                times.push(u64::try_from(begin.elapsed().as_nanos())?);
            }
            Ok(percentiles(&mut times))
        })
    }

    /// Sends so many messages, and returns how many have come in their order.
    pub(crate) fn stream(&mut self, count: u64, size: usize) -> Result<u64, BoxError> {
        self.runtime.block_on(async {
            for number in 0..count {
                let message = block(number, 0, size).into();
                self.client.publish(THERE, message).await?;
                if number % IN_FLIGHT == IN_FLIGHT - 1 {
                    ask(&self.client, &mut self.inbox, number).await?;
                }
            }
            self.client
                .publish(THERE, block(LAST, 0, size).into())
                .await?;
            self.client.flush().await?;
            let account = next(&mut self.inbox).await?;
            Ok(u64::from_le_bytes(account[..8].try_into()?))
        })
    }
}

async fn next(inbox: &mut Subscriber) -> Result<Bytes, BoxError> {
    let message = timeout(PATIENCE, inbox.next()).await?;
    Ok(message.ok_or("the client has ended")?.payload)
}

async fn ask(client: &Client, inbox: &mut Subscriber, number: u64) -> Result<(), BoxError> {
    let message = Bytes::from(block(number, 0, SMALL));
    (client.publish_with_reply(THERE, BACK, message.clone())).await?;
    client.flush().await?;
    let back = next(inbox).await?;
    (back == message)
        .then_some(())
        .ok_or("another block comes back".into())
}

/// Measures the percentiles of writes of new entries, each after the one before.
pub(crate) fn writes(store: &dyn Store, count: u64) -> Result<[u64; 2], BoxError> {
    let (tell, told) = channel();
    let mut times = Vec::new();
    for number in 0..count {
        let op = StoreOp::Create {
            key: format!("bare/{count}/{number}").into(),
            value: vec![7; SMALL],
            lease: None,
        };
        let tell = tell.clone();
        let begin = Instant::now();
        store.apply(op, StoreReply::new(move |answer| _ = tell.send(answer)));
        told.recv_timeout(PATIENCE)??;
        times.push(u64::try_from(begin.elapsed().as_nanos())?);
    }
    Ok(percentiles(&mut times))
}
