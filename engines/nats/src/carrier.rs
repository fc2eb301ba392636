//! A running engine: its thread, and the tasks on it.
//!
//! Each lane has a connection with a *writer* and a *reader*. A *keeper* sends beacons and looks
//! at the connections. No task waits for a user: a sink's calls return at once.

use crate::beacon::{Beacon, Hint, Peers};
use crate::connect::{ANSWER, connect};
use crate::error::NatsError;
use crate::notice::Notice;
use crate::outbox::Outbox;
use crate::seal::{self, CHECKSUM, seal};
use crate::settings::Settings;
use crate::subject::{Ready, Subjects, word};
use crate::{LEAST_PAYLOAD, Stats};
use async_nats::connection::State;
use async_nats::{Client, Event, RequestErrorKind, ServerAddr, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use ganger_cluster::{EngineSink, Lane, MAX_FRAME, NodeId};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// The keeper looks at the connections this often, and four times a beacon.
const LOOK: Duration = Duration::from_millis(250);

/// Looks between two beacons, at least. If this many looks are missed, the node was paused.
const LOOKS: u32 = 4;

/// The state shared by the engine's thread and the senders.
pub(crate) struct Carrier {
    settings: Settings,
    subjects: Subjects,
    me: NodeId,
    sink: Arc<dyn EngineSink>,
    outboxes: [Outbox; 2],
    peers: Mutex<Peers>,
    /// The longest frame. Written once, before the first frame is taken.
    max_frame: AtomicUsize,
    /// Frames from other nodes.
    received: [AtomicU64; 2],
    foreign: AtomicU64,
    slow: AtomicU64,
    reconnects: AtomicU64,
}

impl Carrier {
    pub(crate) fn new(settings: Settings, me: &NodeId, sink: Arc<dyn EngineSink>) -> Self {
        Self {
            subjects: Subjects::new(&settings.cluster, me),
            me: me.clone(),
            sink,
            outboxes: [Outbox::new(settings.room), Outbox::new(settings.room)],
            peers: Mutex::new(Peers::new(settings.beacon * 7 / 2)),
            max_frame: AtomicUsize::new(MAX_FRAME),
            received: Default::default(),
            foreign: AtomicU64::new(0),
            slow: AtomicU64::new(0),
            reconnects: AtomicU64::new(0),
            settings,
        }
    }

    pub(crate) fn outbox(&self, lane: Lane) -> &Outbox {
        &self.outboxes[lane.index()]
    }

    pub(crate) fn max_frame(&self) -> usize {
        // Ordering: a number alone; `start` has returned before a caller relies on the number.
        self.max_frame.load(Ordering::Relaxed)
    }

    pub(crate) fn stats(&self) -> Stats {
        // Ordering: figures for people. No figure leads to another.
        let [control, data] = &self.received;
        Stats {
            is_connected: Lane::ALL.map(|lane| self.outbox(lane).is_open()),
            out: Lane::ALL.map(|lane| self.outbox(lane).counts()),
            // Ordering: a figure for people, which leads to no other figure.
            received: [control, data].map(|count| count.load(Ordering::Relaxed)),
            // Ordering: a figure for people, which leads to no other figure.
            foreign: self.foreign.load(Ordering::Relaxed),
            // Ordering: a figure for people, which leads to no other figure.
            slow: self.slow.load(Ordering::Relaxed),
            // Ordering: a figure for people, which leads to no other figure.
            reconnects: self.reconnects.load(Ordering::Relaxed),
            nodes: self.peers().names(),
        }
    }

    fn peers(&self) -> MutexGuard<'_, Peers> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, hints: Vec<Hint>) {
        for hint in hints {
            match hint {
                Hint::Appeared(node) => self.sink.appeared(&node),
                Hint::Vanished(node) => self.sink.vanished(&node),
            }
        }
    }

    fn tell_writable(&self, nodes: &[NodeId]) {
        for node in nodes {
            self.sink.writable(node);
        }
    }

    fn on_event(&self, lane: Lane, event: &Event) {
        if matches!(event, Event::SlowConsumer(_)) {
            // Ordering: a figure.
            self.slow.fetch_add(1, Ordering::Relaxed);
        }
        match event {
            Event::Connected => self.set_open(lane, true),
            Event::Disconnected => self.set_open(lane, false),
            _ => {}
        }
        // A program that is told of the end can send no more frames.
        if let (Some(notice), Some(tell)) =
            (Notice::of(lane, event), self.settings.on_notice.as_ref())
        {
            tell(&notice);
        }
    }

    fn set_open(&self, lane: Lane, is_open: bool) {
        let writable = self.outbox(lane).set_open(is_open);
        self.tell_writable(&writable);
    }

    fn on_frame(&self, lane: Lane, subject: &str, frame: Bytes) {
        let from = self.subjects.sender_of_frame(subject, lane);
        match from.zip(seal::open(frame)) {
            Some((from, frame)) if frame.len() <= MAX_FRAME => {
                // Ordering: a figure.
                self.received[lane.index()].fetch_add(1, Ordering::Relaxed);
                self.sink.frame(&from, frame);
            }
            _ => self.on_foreign(),
        }
    }

    fn on_beacon(&self, subject: &str, bytes: &[u8]) {
        let from = self.subjects.sender_of_beacon(subject);
        let (Some(from), Some(beacon)) = (from, Beacon::parse(bytes)) else {
            return self.on_foreign();
        };
        let hints = self.peers().heard(&from, beacon, Instant::now());
        self.tell(hints);
    }

    fn on_foreign(&self) {
        // Ordering: a figure.
        self.foreign.fetch_add(1, Ordering::Relaxed);
    }
}

/// Tells the starting thread how the start went.
pub(crate) type Started = mpsc::Sender<Result<(), NatsError>>;

/// The connections of both lanes.
struct Lanes {
    clients: [Client; 2],
    inboxes: [Subscriber; 2],
    beacons: Subscriber,
}

/// Runs the engine's thread until the engine is told to stop, and within what time.
pub(crate) fn run(
    carrier: &Arc<Carrier>,
    servers: &[ServerAddr],
    started: &Started,
    stop: oneshot::Receiver<Duration>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return said(started, Err(error.into())),
    };
    runtime.block_on(async {
        let lanes = match open(carrier, servers).await {
            Ok(lanes) => lanes,
            Err(error) => return said(started, Err(error)),
        };
        let Lanes {
            clients,
            inboxes,
            beacons,
        } = lanes;
        for (lane, inbox) in Lane::ALL.into_iter().zip(inboxes) {
            let client = clients[lane.index()].clone();
            tokio::spawn(write(carrier.clone(), lane, client));
            tokio::spawn(read(carrier.clone(), lane, inbox));
        }
        let run = fastrand::u64(..);
        tokio::spawn(listen(carrier.clone(), beacons));
        tokio::spawn(keep(carrier.clone(), clients.clone(), run));
        said(started, Ok(()));
        // The other end is gone if the engine was dropped in a strange moment: then at once.
        let within = stop.await.unwrap_or(Duration::ZERO);
        let leave = leave(carrier, &clients[Lane::Control.index()], run);
        // The rest is lost, as in a crash.
        let _late = timeout(within, leave).await;
    });
    runtime.shutdown_background();
}

fn said(started: &Started, result: Result<(), NatsError>) {
    // The starting thread waits for it, so it is there.
    let _unheard = started.send(result);
}

async fn open(carrier: &Arc<Carrier>, servers: &[ServerAddr]) -> Result<Lanes, NatsError> {
    let end = Instant::now() + carrier.settings.within;
    let control = lane(carrier, servers, Lane::Control).await?;
    let data = lane(carrier, servers, Lane::Data).await?;
    let payload = control.max_payload().min(data.max_payload());
    if payload < LEAST_PAYLOAD {
        return Err(NatsError::SmallPayload(payload));
    }
    // Ordering: a number alone; `start` returns before a caller relies on the number.
    (carrier.max_frame).store((payload - CHECKSUM).min(MAX_FRAME), Ordering::Relaxed);
    let subjects = &carrier.subjects;
    let inboxes = [
        subscribe(&control, subjects.inbox(Lane::Control)).await?,
        subscribe(&data, subjects.inbox(Lane::Data)).await?,
    ];
    let beacons = subscribe(&control, subjects.beacons()).await?;
    for client in [&control, &data] {
        settle(client, subjects, end).await?;
    }
    Ok(Lanes {
        clients: [control, data],
        inboxes,
        beacons,
    })
}

async fn lane(
    carrier: &Arc<Carrier>,
    servers: &[ServerAddr],
    lane: Lane,
) -> Result<Client, NatsError> {
    let told = Arc::downgrade(carrier);
    let on_event = move |event| {
        // The client has a task of its own for this: it must not keep the engine.
        if let Some(carrier) = told.upgrade() {
            carrier.on_event(lane, &event);
        }
        std::future::ready(())
    };
    let answers = carrier.subjects.answers();
    let client = (&*format!("ganger {}, {}", carrier.me, word(lane)), answers);
    connect(&carrier.settings, servers, client, on_event).await
}

async fn subscribe(client: &Client, subject: String) -> Result<Subscriber, NatsError> {
    let subscribed = client.subscribe(subject).await;
    subscribed.map_err(|error| NatsError::Denied(error.to_string()))
}

/// Waits until the broker has all of the client's words. The client asks a question to no node, and
/// the broker answers with the lack of a receiver. The client asks again until the end: a broker
/// that goes away meanwhile takes the question along.
async fn settle(client: &Client, subjects: &Subjects, end: Instant) -> Result<(), NatsError> {
    loop {
        let asked = client.request(subjects.question(), Bytes::new());
        return match timeout(ANSWER, asked).await {
            Ok(Err(error)) if error.kind() == RequestErrorKind::NoResponders => Ok(()),
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(NatsError::Denied(error.to_string())),
            Err(_) if Instant::now() < end => continue,
            Err(_) => Err(NatsError::Silent(subjects.rights())),
        };
    }
}

/// Runs the writer of a lane.
async fn write(carrier: Arc<Carrier>, lane: Lane, client: Client) {
    let outbox = carrier.outbox(lane);
    let mut subjects = Ready::new(carrier.subjects.clone(), lane);
    let statistics = client.statistics();
    // Ordering: a counter of the client; the value is compared with its own last.
    let connects = || statistics.connects.load(Ordering::Relaxed);
    loop {
        let (batch, cost) = outbox.next().await;
        let (before, all) = (connects(), batch.len() as u64);
        let mut lost = 0;
        for (to, frame) in batch {
            let published = client.publish(subjects.get(&to), seal(&frame)).await;
            lost += u64::from(published.is_err());
        }
        // An error says that the client has ended, as at a stop.
        let _ended = client.flush().await;
        if connects() != before {
            // The client has dropped what it had written for the former connection.
            lost = all;
        }
        let writable = outbox.flushed(cost, lost);
        carrier.tell_writable(&writable);
    }
}

/// Runs the reader of a lane.
async fn read(carrier: Arc<Carrier>, lane: Lane, mut inbox: Subscriber) {
    while let Some(message) = inbox.next().await {
        carrier.on_frame(lane, &message.subject, message.payload);
    }
}

/// Runs the reader of beacons.
async fn listen(carrier: Arc<Carrier>, mut beacons: Subscriber) {
    while let Some(message) = beacons.next().await {
        carrier.on_beacon(&message.subject, &message.payload);
    }
}

/// Runs the keeper, which sends beacons, and looks for the connections and for the other nodes'
/// beacons. Events tell a change sooner, but the client drops events when many wait.
async fn keep(carrier: Arc<Carrier>, clients: [Client; 2], run: u64) {
    let control = &clients[Lane::Control.index()];
    let subject = carrier.subjects.beacon();
    let beacon = Beacon { run, leaves: false };
    let every = carrier.settings.beacon;
    let look = LOOK.min(every / LOOKS);
    let mut looks = interval(look);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let statistics = Lane::ALL.map(|lane| clients[lane.index()].statistics());
    // Ordering: counters of the client; each value is compared with its own last.
    let connects = || [0, 1].map(|lane: usize| statistics[lane].connects.load(Ordering::Relaxed));
    let mut before = connects();
    let mut last = Instant::now();
    let mut next_beacon = last;
    loop {
        looks.tick().await;
        let is_there = Lane::ALL.map(|lane| {
            let is_there = clients[lane.index()].connection_state() == State::Connected;
            carrier.set_open(lane, is_there);
            is_there
        });
        let has_control = is_there[Lane::Control.index()];
        let is_new = std::mem::replace(&mut before, connects()) != before;
        let now = Instant::now();
        if has_control && (is_new || now >= next_beacon) {
            next_beacon = now + every;
            let bytes = Bytes::copy_from_slice(&beacon.encode());
            // An error says that the client has ended, as at a stop.
            let _ended = control.publish(subject.clone(), bytes).await;
        }
        let was_paused = now - last > look * LOOKS;
        last = now;
        if is_new {
            // Ordering: a figure.
            carrier.reconnects.fetch_add(1, Ordering::Relaxed);
        }
        let hints = if has_control && !is_new && !was_paused {
            carrier.peers().expire(now)
        } else {
            // The silent have their full time. After a broker has come back, waiting sessions open
            // at once.
            let hints = carrier.peers().forgive(now);
            if is_new { hints } else { Vec::new() }
        };
        carrier.tell(hints);
    }
}

/// Lets the last frames leave, then says farewell.
async fn leave(carrier: &Carrier, control: &Client, run: u64) {
    for lane in Lane::ALL {
        carrier.outbox(lane).close();
    }
    for lane in Lane::ALL {
        carrier.outbox(lane).emptied().await;
    }
    let farewell = Beacon { run, leaves: true };
    let bytes = Bytes::copy_from_slice(&farewell.encode());
    // An error tells the end of the client: then the other nodes notice the silence.
    let _ended = control.publish(carrier.subjects.beacon(), bytes).await;
    let _ended = control.flush().await;
}
