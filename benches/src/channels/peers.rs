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

/// A channel: its name, both ends, and its functions.
macro_rules! channel {
    ($(#[$doc:meta])* $peer:ident, $name:literal, $sender:ty, $receiver:ty;
        open($capacity:ident, $receivers:ident) $open:expr;
        send($to:ident, $value:ident) $send:expr;
        recv($from:ident) $recv:expr; sum($all:ident) $sum:expr; $(selects $selects:expr;)?) => {
        $(#[$doc])*
        pub struct $peer;

        impl Channel for $peer {
            const NAME: &'static str = $name;
            type Sender = $sender;
            type Receiver = $receiver;

            fn open(
                $capacity: usize,
                $receivers: usize,
            ) -> Option<(Self::Sender, Vec<Self::Receiver>)> {
                $open
            }

            async fn send($to: &Self::Sender, $value: u64) {
                $send.await.expect("a receiver is there");
            }

            async fn recv($from: &mut Self::Receiver) -> Option<u64> {
                $recv
            }

            $(const SELECTS: bool = $selects;)?

            async fn sum_of_four($all: [Self::Receiver; 4]) -> u64 {
                $sum
            }
        }
    };
}

/// Returns both ends of a channel with many receivers.
fn shared<S, R: Clone>((sender, receiver): (S, R), receivers: usize) -> Option<(S, Vec<R>)> {
    Some((sender, vec![receiver; receivers]))
}

channel! {
    /// Ganger's.
    Ganger, "Ganger", ganger_channel::Sender<u64>, ganger_channel::Receiver<u64>;
    open(capacity, receivers) shared(ganger_channel::channel(capacity), receivers);
    send(to, value) to.send(value);
    recv(from) from.recv().await.ok();
    sum(all) selected(all).await;
}

channel! {
    /// tokio's channel, which has a single receiver, and room.
    Tokio, "tokio", tokio::sync::mpsc::Sender<u64>, tokio::sync::mpsc::Receiver<u64>;
    open(capacity, receivers) (capacity > 0 && receivers == 1).then(|| {
        let (sender, receiver) = tokio::sync::mpsc::channel(capacity);
        (sender, vec![receiver])
    });
    send(to, value) to.send(value);
    recv(from) from.recv().await;
    sum(all) sum_of(all.map(TokioStream)).await;
}

channel! {
    /// The channel of the crate async-channel, which has room.
    AsyncChannel, "async-channel", async_channel::Sender<u64>, async_channel::Receiver<u64>;
    open(capacity, receivers) match capacity {
        0 => None,
        _ => shared(async_channel::bounded(capacity), receivers),
    };
    send(to, value) to.send(value);
    recv(from) from.recv().await.ok();
    sum(all) sum_of(all.map(Box::pin)).await;
}

channel! {
    /// The channel of the crate kanal. Its streams lose values when they are polled together with
    /// others.
    Kanal, "kanal", kanal::AsyncSender<u64>, kanal::AsyncReceiver<u64>;
    open(capacity, receivers) shared(kanal::bounded_async(capacity), receivers);
    send(to, value) to.send(value);
    recv(from) from.recv().await.ok();
    sum(_all) 0;
    selects false;
}

channel! {
    /// The channel of the crate flume.
    Flume, "flume", flume::Sender<u64>, flume::Receiver<u64>;
    open(capacity, receivers) shared(flume::bounded(capacity), receivers);
    send(to, value) to.send_async(value);
    recv(from) from.recv_async().await.ok();
    sum(all) sum_of(all.map(|it| Box::pin(it.into_stream()))).await;
}

/// Returns the sum of four of Ganger's channels.
async fn selected([a, b, c, d]: [ganger_channel::Receiver<u64>; 4]) -> u64 {
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

struct TokioStream(tokio::sync::mpsc::Receiver<u64>);

impl Stream for TokioStream {
    type Item = u64;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<u64>> {
        self.0.poll_recv(context)
    }
}
