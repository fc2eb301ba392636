//! The tasks of a store: those of the mirror, the barriers, the leases and the purges.

mod operations;

use super::log::{self, Missing, Names, Sent};
use super::mirror::{Mirror, Record};
use crate::connect::connect;
use crate::error::NatsError;
use crate::settings::Settings;
use async_nats::connection::State;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, push};
use async_nats::jetstream::context::{Context, ContextBuilder};
use async_nats::{Client, ServerAddr};
use bytes::Bytes;
use futures_util::StreamExt;
use ganger_cluster::{MAX_VALUE, StoreAnswer, StoreChange, StoreError, StoreWatcher};
use operations::Write;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc as threads};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::{sleep, timeout, timeout_at};

/// How long an acknowledgement may take, and an operation may try.
const WITHIN: Duration = Duration::from_secs(5);

/// The most operations under way.
const ROOM: usize = 16_384;

/// How often the leases are looked at.
const LOOK: Duration = Duration::from_millis(20);

/// How often the connection is looked at, while no message comes.
const QUIET: Duration = Duration::from_millis(200);

/// The time between two words of a quiet server to its mirrors.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// Dead messages stay for this time, for mirrors behind the stream.
const DEAD: Duration = Duration::from_secs(60);

/// The most dead messages to be purged. A mirror at its new begin finds the rest.
const MAX_DEAD: usize = 100_000;

type Answer = Result<StoreAnswer, StoreError>;
type Started = threads::Sender<Result<(Arc<Shared>, Handle), NatsError>>;

struct Watcher {
    prefix: Box<str>,
    tell: StoreWatcher,
    /// Whether the watcher has its first snapshot.
    has_begun: bool,
}

/// The state under the mirror's lock.
#[derive(Default)]
struct Inner {
    mirror: Mirror,
    /// Whether the mirror follows the stream.
    follows: bool,
    /// Why the mirror has begun anew.
    why: String,
    watchers: BTreeMap<u64, Watcher>,
}

/// Dead messages: when to purge, the subject, and the last of them.
type Dead = (Instant, String, u64);

/// The state shared by the tasks and the callers.
pub(crate) struct Shared {
    client: Client,
    context: Context,
    names: Names,
    /// The number of this store's subject for barriers.
    run: u64,
    replicas: usize,
    inner: Mutex<Inner>,
    /// The last message in the mirror.
    applied: watch::Sender<u64>,
    /// The last message of the stream, as far as this store knows.
    newest: AtomicU64,
    barriers: mpsc::UnboundedSender<oneshot::Sender<()>>,
    dead: Mutex<VecDeque<Dead>>,
    watches: AtomicU64,
    pub(crate) room: Arc<Semaphore>,
}

/// Runs the store's thread until the store is dropped.
pub(crate) fn run(
    settings: &Settings,
    servers: &[ServerAddr],
    started: &Started,
    stop: oneshot::Receiver<()>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return said(started, Err(error.into())),
    };
    runtime.block_on(async {
        let (barriers, wanted) = mpsc::unbounded_channel();
        let shared = match open(settings, servers, barriers).await {
            Ok(shared) => Arc::new(shared),
            Err(error) => return said(started, Err(error)),
        };
        tokio::spawn(shared.clone().follow());
        tokio::spawn(shared.clone().keep_barriers(wanted));
        tokio::spawn(shared.clone().end_leases());
        tokio::spawn(shared.clone().purge());
        said(started, Ok((shared, Handle::current())));
        // The other end is gone if the store was dropped in a strange moment.
        let _stopped = stop.await;
    });
    runtime.shutdown_background();
}

fn said(started: &Started, result: Result<(Arc<Shared>, Handle), NatsError>) {
    // The starting thread waits for it, so it is there.
    let _unheard = started.send(result);
}

async fn open(
    settings: &Settings,
    servers: &[ServerAddr],
    barriers: mpsc::UnboundedSender<oneshot::Sender<()>>,
) -> Result<Shared, NatsError> {
    let begin = Instant::now();
    let name = ("ganger store", "_INBOX".to_owned());
    let client = connect(settings, servers, name, |_| std::future::ready(())).await?;
    if client.max_payload() < 2 * MAX_VALUE {
        return Err(NatsError::SmallForStore(client.max_payload()));
    }
    let context = ContextBuilder::new()
        .timeout(WITHIN)
        .max_ack_inflight(2 * ROOM)
        .build(client.clone());
    let names = Names::new(&settings.cluster);
    let replicas = loop {
        match log::open(&context, &names).await {
            Ok(replicas) => break replicas,
            Err(Missing::Never(error)) => return Err(error),
            // A cluster of servers that has just started has no leader yet.
            Err(Missing::Later(error)) if begin.elapsed() > settings.within => return Err(error),
            Err(Missing::Later(_)) => sleep(QUIET).await,
        }
    };
    Ok(Shared {
        client,
        context,
        names,
        run: fastrand::u64(1..),
        replicas,
        inner: Mutex::default(),
        applied: watch::Sender::new(0),
        newest: AtomicU64::new(0),
        barriers,
        dead: Mutex::default(),
        watches: AtomicU64::new(0),
        room: Arc::new(Semaphore::new(ROOM)),
    })
}

/// The messages of a mirror so far.
#[derive(Debug, Default)]
struct Seen {
    count: u64,
    /// The last.
    at: u64,
    /// Since when the stream has a later message.
    is_behind: Option<Instant>,
}

impl Seen {
    /// Checks the number of a message: the server numbers what it sends, and the client drops
    /// messages when too many wait.
    fn next(&mut self, number: u64, at: u64) -> Result<(), &'static str> {
        self.count += 1;
        self.at = at;
        self.is_behind = None;
        let is_next = number == self.count;
        is_next
            .then_some(())
            .ok_or("the client has dropped messages")
    }

    /// Checks the time without a message. A server with later messages may wait for the client's
    /// word to go on.
    fn silence(&mut self, newest: u64, now: Instant) -> Result<(), &'static str> {
        if newest <= self.at {
            self.is_behind = None;
            return Ok(());
        }
        let since = *self.is_behind.get_or_insert(now);
        let is_in_time = now.duration_since(since) <= WITHIN;
        let why = "the broker sends no messages: may the user publish to `$JS.FC.>`?";
        is_in_time.then_some(()).ok_or(why)
    }
}

fn unavailable(why: &str) -> StoreError {
    StoreError::Unavailable(why.into())
}

impl Shared {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    pub(crate) fn describe(&self) -> String {
        let stream = &self.names.stream;
        match self.replicas {
            1 => format!("JetStream, stream {stream}, on one server"),
            replicas => format!("JetStream, stream {stream}, on {replicas} servers"),
        }
    }

    // Barriers.

    /// Waits until the mirror has all that was written before the call.
    async fn barrier(&self, until: Instant) -> Result<(), StoreError> {
        let (tell, told) = oneshot::channel();
        let is_asked = self.barriers.send(tell).is_ok();
        // A barrier that waits behind another has the time of both.
        let until = until + WITHIN;
        match timeout_at(until.into(), told).await {
            Ok(Ok(())) if is_asked => Ok(()),
            _ => {
                let why = self.inner().why.clone();
                let why = format!("no majority of the brokers answers. Last loss: {why}");
                Err(unavailable(&why))
            }
        }
    }

    /// Writes a barrier for all waiting operations, again and again.
    async fn keep_barriers(
        self: Arc<Self>,
        mut wanted: mpsc::UnboundedReceiver<oneshot::Sender<()>>,
    ) {
        while let Some(first) = wanted.recv().await {
            let mut waiting = vec![first];
            while let Ok(next) = wanted.try_recv() {
                waiting.push(next);
            }
            // After a failure the drop of the senders tells the operations of the missing answer.
            if let Sent::Stored(at) = self.write_barrier().await
                && self.until_applied(at, Instant::now() + WITHIN).await
            {
                for waits in waiting {
                    // The caller's time may be up.
                    let _late = waits.send(());
                }
            }
        }
    }

    async fn write_barrier(&self) -> Sent {
        let headers = log::headers(None, None, false);
        let subject = self.names.barrier(self.run);
        let sent = log::publish(&self.context, subject, headers, Bytes::new()).await;
        if let Sent::Stored(at) = sent {
            // Ordering: a number alone.
            self.newest.fetch_max(at, Ordering::Relaxed);
        }
        sent
    }

    async fn until_applied(&self, at: u64, until: Instant) -> bool {
        let mut applied = self.applied.subscribe();
        let reached = applied.wait_for(|applied| *applied >= at);
        matches!(timeout_at(until.into(), reached).await, Ok(Ok(_)))
    }

    // The mirror.

    /// Follows the stream, and begins anew after each loss.
    async fn follow(self: Arc<Self>) {
        loop {
            let lost = self.follow_once().await;
            {
                let mut inner = self.inner();
                inner.why = lost.err().map(|why| why.to_string()).unwrap_or_default();
                if std::mem::take(&mut inner.follows) {
                    for watcher in inner.watchers.values().filter(|it| it.has_begun) {
                        (watcher.tell)(StoreChange::Lost);
                    }
                }
            }
            sleep(QUIET).await;
        }
    }

    async fn follow_once(&self) -> Result<(), async_nats::Error> {
        let statistics = self.client.statistics();
        // Ordering: a counter of the client; the value is compared with its own last.
        let connects = || statistics.connects.load(Ordering::Relaxed);
        let connection = connects();
        let stream = self.context.get_stream_no_info(&self.names.stream).await?;
        let consumer = stream.create_consumer(push::Config {
            deliver_subject: self.client.new_inbox(),
            deliver_policy: DeliverPolicy::LastPerSubject,
            filter_subject: self.names.all(),
            ack_policy: AckPolicy::None,
            idle_heartbeat: HEARTBEAT,
            flow_control: true,
            memory_storage: true,
            num_replicas: 1,
            inactive_threshold: 2 * HEARTBEAT,
            ..push::Config::default()
        });
        let mut messages = consumer.await?.messages().await?;
        let Sent::Stored(goal) = self.write_barrier().await else {
            return Err("the barrier is not acknowledged".into());
        };
        let mut last = BTreeMap::new();
        let mut is_whole = false;
        let mut seen = Seen::default();
        loop {
            let next = timeout(QUIET, messages.next()).await;
            if connects() != connection || !self.is_connected() {
                return Err("the connection was lost".into());
            }
            let Ok(next) = next else {
                // Ordering: a number alone.
                seen.silence(self.newest.load(Ordering::Relaxed), Instant::now())?;
                continue;
            };
            let message = next.ok_or("the subscription has ended")??;
            let info = message.info()?;
            let at = info.stream_sequence;
            seen.next(info.consumer_sequence, at)?;
            let (headers, body) = (message.headers.as_ref(), &message.payload);
            let record = self.names.record(&message.subject, headers, body);
            if is_whole {
                self.take(at, record)?;
                continue;
            }
            last.insert(message.subject.to_string(), (at, record));
            if at >= goal {
                self.begin(std::mem::take(&mut last), at)?;
                is_whole = true;
            }
        }
    }

    /// Takes the first whole state.
    fn begin(
        &self,
        last: BTreeMap<String, (u64, Record)>,
        at: u64,
    ) -> Result<(), async_nats::Error> {
        let (mirror, dead) = Mirror::of(last, at, Instant::now());
        let own = self.names.barrier(self.run);
        self.bury(dead.into_iter().filter(|(subject, _)| *subject != own));
        {
            let mut inner = self.inner();
            if at < inner.mirror.applied {
                return Err("the stream has been deleted, and made again".into());
            }
            inner.mirror = mirror;
            inner.follows = true;
            for watcher in inner.watchers.values().filter(|it| it.has_begun) {
                (watcher.tell)(inner.mirror.snapshot(&watcher.prefix));
            }
        }
        self.applied.send_replace(at);
        Ok(())
    }

    /// Takes the next message, and tells the watchers.
    fn take(&self, at: u64, record: Record) -> Result<(), async_nats::Error> {
        {
            let mut inner = self.inner();
            if at != inner.mirror.applied + 1 {
                return Err("messages are missing".into());
            }
            let changes = inner.mirror.apply(at, record, Instant::now());
            for change in changes {
                let (StoreChange::Put(ganger_cluster::Entry { key, .. })
                | StoreChange::Gone { key, .. }) = &change
                else {
                    continue;
                };
                for watcher in inner.watchers.values() {
                    if watcher.has_begun && key.starts_with(&*watcher.prefix) {
                        (watcher.tell)(change.clone());
                    }
                }
            }
        }
        self.applied.send_replace(at);
        Ok(())
    }

    // Watches.

    pub(crate) fn add_watcher(&self, prefix: &str, tell: StoreWatcher) -> u64 {
        // Ordering: a number alone.
        let id = self.watches.fetch_add(1, Ordering::Relaxed);
        let watcher = Watcher {
            prefix: prefix.into(),
            tell,
            has_begun: false,
        };
        self.inner().watchers.insert(id, watcher);
        id
    }

    pub(crate) fn end_watch(&self, id: u64) {
        // The callback may have state whose drop takes a while.
        let ended = self.inner().watchers.remove(&id);
        drop(ended);
    }

    /// Gives a watcher its first snapshot, behind a barrier.
    pub(crate) async fn begin_watch(&self, id: u64) {
        loop {
            let is_fresh = self.barrier(Instant::now()).await.is_ok();
            {
                let mut inner = self.inner();
                let Inner {
                    mirror,
                    follows,
                    watchers,
                    ..
                } = &mut *inner;
                let Some(watcher) = watchers.get_mut(&id) else {
                    return;
                };
                if is_fresh && *follows {
                    watcher.has_begun = true;
                    (watcher.tell)(mirror.snapshot(&watcher.prefix));
                    return;
                }
            }
            sleep(QUIET).await;
        }
    }

    // Leases.

    /// Ends the leases that no node has renewed for their time.
    async fn end_leases(self: Arc<Self>) {
        loop {
            sleep(LOOK).await;
            if !self.is_connected() {
                continue;
            }
            for end in self.due(Instant::now()) {
                let shared = self.clone();
                tokio::spawn(async move {
                    // Another has been faster, or the lease was renewed, or the next look tries
                    // again.
                    let _sent = shared.send(&end, 0).await;
                });
            }
        }
    }

    fn due(&self, now: Instant) -> Vec<Write> {
        let mut inner = self.inner();
        if !inner.follows {
            return Vec::new();
        }
        let leases = inner.mirror.leases.iter_mut();
        let due: Vec<_> = leases
            .filter(|(_, held)| held.due <= now)
            .map(|(id, held)| {
                held.due = now + WITHIN;
                *id
            })
            .collect();
        let ends = due.iter().filter_map(|id| self.end_of(&inner.mirror, *id));
        ends.collect()
    }

    // Dead messages.

    fn bury(&self, dead: impl IntoIterator<Item = (String, u64)>) {
        let due = Instant::now() + DEAD;
        let mut all = self.dead.lock().unwrap_or_else(PoisonError::into_inner);
        for (subject, at) in dead {
            if all.len() < MAX_DEAD {
                all.push_back((due, subject, at));
            }
        }
    }

    fn next_dead(&self) -> Option<Dead> {
        let mut all = self.dead.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = all.front().is_some_and(|it| it.0 <= Instant::now());
        if is_due { all.pop_front() } else { None }
    }

    /// Purges dead messages. Later messages of their subjects stay.
    async fn purge(self: Arc<Self>) {
        loop {
            sleep(Duration::from_secs(1)).await;
            while let Some((_, subject, at)) = self.next_dead() {
                let stream = self.context.get_stream_no_info(&self.names.stream).await;
                let Ok(stream) = stream else {
                    continue;
                };
                // A mirror at its new begin finds the rest.
                let _left = stream.purge().filter(subject).sequence(at + 1).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_message_and_a_stalled_broker_begin_a_mirror_anew() {
        let start = Instant::now();
        let late = start + 2 * WITHIN;
        let mut seen = Seen::default();
        // The first messages of a mirror have holes in their numbers in the stream.
        for (number, at) in [(1, 7), (2, 9), (3, 40)] {
            seen.next(number, at).unwrap();
        }
        // A message under way comes in time.
        seen.silence(40, start).unwrap();
        seen.silence(41, late).unwrap();
        seen.silence(41, late + WITHIN).unwrap();
        seen.next(4, 41).unwrap();
        seen.silence(42, late + 2 * WITHIN).unwrap();
        seen.silence(42, late + 4 * WITHIN).unwrap_err();
        seen.next(6, 43).unwrap_err();
    }
}
