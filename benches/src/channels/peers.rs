//! The channels, and the runtimes of their tasks.

use futures_util::{Stream, StreamExt};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Runs tasks.
pub trait Runtime: 'static {
    /// Creates a runtime with two workers.
    fn new() -> Self;

    /// Starts a task.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static);
}

/// Tasks of Ganger.
pub struct OnGanger(ganger_sched::Scheduler);

impl Runtime for OnGanger {
    fn new() -> Self {
        let scheduler = ganger_sched::Scheduler::builder().workers(2).build();
        let scheduler = scheduler.expect("the settings are fine");
        scheduler.start().expect("it starts once");
        Self(scheduler)
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let body = async move |_: ganger_task::Cx| {
            task.await;
            Ok(())
        };
        drop(self.0.spawn(body).expect("it is not stopping"));
    }
}

/// Tasks of tokio.
pub struct OnTokio(tokio::runtime::Runtime);

impl Runtime for OnTokio {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .build();
        Self(runtime.expect("threads can be started"))
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.0.spawn(task));
    }
}

/// A channel of numbers.
pub trait Channel: 'static {
    /// Its name.
    const NAME: &'static str;
    /// The sending end.
    type Sender: Clone + Send + Sync + 'static;
    /// The receiving end.
    type Receiver: Send + Sync + 'static;

    /// Opens a channel of this capacity, with this many receivers. `None` if the peer has no such
    /// channel.
    fn open(capacity: usize, receivers: usize) -> Option<(Self::Sender, Vec<Self::Receiver>)>;

    /// Sends.
    fn send(sender: &Self::Sender, value: u64) -> impl Future<Output = ()> + Send;

    /// Receives; `None` at the end.
    fn recv(receiver: &mut Self::Receiver) -> impl Future<Output = Option<u64>> + Send;

    /// Whether values can be received by a select.
    const SELECTS: bool = true;

    /// Returns the sum of all values of four channels, by a select for each value.
    fn sum_of_four(receivers: [Self::Receiver; 4]) -> impl Future<Output = u64> + Send;
}

/// Ganger's.
pub struct Ganger;

impl Channel for Ganger {
    const NAME: &'static str = "Ganger";
    type Sender = ganger_channel::Sender<u64>;
    type Receiver = ganger_channel::Receiver<u64>;

    fn open(capacity: usize, receivers: usize) -> Option<(Self::Sender, Vec<Self::Receiver>)> {
        let (sender, receiver) = ganger_channel::channel(capacity);
        Some((sender, vec![receiver; receivers]))
    }

    async fn send(sender: &Self::Sender, value: u64) {
        sender.send(value).await.expect("a receiver is there");
    }

    async fn recv(receiver: &mut Self::Receiver) -> Option<u64> {
        receiver.recv().await.ok()
    }

    async fn sum_of_four([a, b, c, d]: [Self::Receiver; 4]) -> u64 {
        let (mut sum, mut open) = (0, [true; 4]);
        while open.contains(&true) {
            // Closed channels are left out in turn, at the end.
            let got = match open {
                [true, true, true, true] => {
                    ganger_channel::select()
                        .recv(&a, |it| (0, it))
                        .recv(&b, |it| (1, it))
                        .recv(&c, |it| (2, it))
                        .recv(&d, |it| (3, it))
                        .await
                }
                _ => {
                    let at = open.iter().position(|&it| it).unwrap_or(0);
                    (at, [&a, &b, &c, &d][at].recv().await)
                }
            };
            match got {
                (_, Ok(value)) => sum += value,
                (at, Err(_)) => open[at] = false,
            }
        }
        sum
    }
}

/// Returns the sum of four streams: each poll begins with another stream, as a select does.
async fn sum_of<S: Stream<Item = u64> + Unpin>(mut streams: [S; 4]) -> u64 {
    let (mut sum, mut open) = (0, [true; 4]);
    while open.contains(&true) {
        let first = poll_fn(|context| {
            let start = fastrand::usize(..4);
            for at in (0..4).map(|turn| (start + turn) % 4).filter(|&at| open[at]) {
                if let Poll::Ready(got) = streams[at].poll_next_unpin(context) {
                    return Poll::Ready((at, got));
                }
            }
            Poll::Pending
        });
        match first.await {
            (_, Some(value)) => sum += value,
            (at, None) => open[at] = false,
        }
    }
    sum
}

/// tokio's channel, which has a single receiver.
pub struct Tokio;

struct TokioStream(tokio::sync::mpsc::Receiver<u64>);

impl Stream for TokioStream {
    type Item = u64;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<u64>> {
        self.0.poll_recv(context)
    }
}

impl Channel for Tokio {
    const NAME: &'static str = "tokio";
    type Sender = tokio::sync::mpsc::Sender<u64>;
    type Receiver = tokio::sync::mpsc::Receiver<u64>;

    fn open(capacity: usize, receivers: usize) -> Option<(Self::Sender, Vec<Self::Receiver>)> {
        if capacity == 0 || receivers > 1 {
            return None;
        }
        let (sender, receiver) = tokio::sync::mpsc::channel(capacity);
        Some((sender, vec![receiver]))
    }

    async fn send(sender: &Self::Sender, value: u64) {
        sender.send(value).await.expect("a receiver is there");
    }

    async fn recv(receiver: &mut Self::Receiver) -> Option<u64> {
        receiver.recv().await
    }

    async fn sum_of_four(receivers: [Self::Receiver; 4]) -> u64 {
        sum_of(receivers.map(TokioStream)).await
    }
}

/// The channel of the crate async-channel.
pub struct AsyncChannel;

impl Channel for AsyncChannel {
    const NAME: &'static str = "async-channel";
    type Sender = async_channel::Sender<u64>;
    type Receiver = async_channel::Receiver<u64>;

    fn open(capacity: usize, receivers: usize) -> Option<(Self::Sender, Vec<Self::Receiver>)> {
        if capacity == 0 {
            return None;
        }
        let (sender, receiver) = async_channel::bounded(capacity);
        Some((sender, vec![receiver; receivers]))
    }

    async fn send(sender: &Self::Sender, value: u64) {
        sender.send(value).await.expect("a receiver is there");
    }

    async fn recv(receiver: &mut Self::Receiver) -> Option<u64> {
        receiver.recv().await.ok()
    }

    async fn sum_of_four(receivers: [Self::Receiver; 4]) -> u64 {
        sum_of(receivers.map(Box::pin)).await
    }
}

/// The channel of the crate kanal.
pub struct Kanal;

impl Channel for Kanal {
    const NAME: &'static str = "kanal";
    // Its streams lose values when they are polled together with others.
    const SELECTS: bool = false;
    type Sender = kanal::AsyncSender<u64>;
    type Receiver = kanal::AsyncReceiver<u64>;

    fn open(capacity: usize, receivers: usize) -> Option<(Self::Sender, Vec<Self::Receiver>)> {
        let (sender, receiver) = kanal::bounded_async(capacity);
        Some((sender, vec![receiver; receivers]))
    }

    async fn send(sender: &Self::Sender, value: u64) {
        sender.send(value).await.expect("a receiver is there");
    }

    async fn recv(receiver: &mut Self::Receiver) -> Option<u64> {
        receiver.recv().await.ok()
    }

    async fn sum_of_four(receivers: [Self::Receiver; 4]) -> u64 {
        let [a, b, c, d] = &receivers;
        sum_of([a, b, c, d].map(|it| Box::pin(it.stream()))).await
    }
}

/// The channel of the crate flume.
pub struct Flume;

impl Channel for Flume {
    const NAME: &'static str = "flume";
    type Sender = flume::Sender<u64>;
    type Receiver = flume::Receiver<u64>;

    fn open(capacity: usize, receivers: usize) -> Option<(Self::Sender, Vec<Self::Receiver>)> {
        let (sender, receiver) = flume::bounded(capacity);
        Some((sender, vec![receiver; receivers]))
    }

    async fn send(sender: &Self::Sender, value: u64) {
        sender.send_async(value).await.expect("a receiver is there");
    }

    async fn recv(receiver: &mut Self::Receiver) -> Option<u64> {
        receiver.recv_async().await.ok()
    }

    async fn sum_of_four(receivers: [Self::Receiver; 4]) -> u64 {
        sum_of(receivers.map(|it| Box::pin(it.into_stream()))).await
    }
}
