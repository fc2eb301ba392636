//! All operations at once, with exact accounting.
//!
//! Four threads send in turn to eight targets: a host and channels of the local node and of another
//! node. Meanwhile five threads add and remove the host, the peer and the fallback, and attach,
//! close, detach and drop the receivers. Each envelope carries a ticket, which is stamped exactly
//! once: received, returned in an error, or freed with a receiver. Only one target's receiver is
//! dropped, so only its envelopes may be freed. At each place, the envelopes of one sender must
//! arrive in the order of their sends.
//!
//! Each state lasts until enough envelopes have been sent for every target to meet it, so every
//! outcome occurs. `GANGER_STRESS` multiplies the number of states.

use crate::common::{host, node, pid};
use ganger_proc_api::{Envelope, Message, Payload, Pid, SendError, SendErrorKind};
use ganger_relay::{ChannelHost, EnvelopeReceiver, Inbox, Node, Router, receiver_fn};
use ganger_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use ganger_sync::hint::spin_loop;
use ganger_sync::sync::lock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

const SENDERS: usize = 4;
const TARGETS: [&str; 8] = [
    "{rec|1}",
    "{here@rec|2}",
    "{box|1}",
    "{here@box|1}",
    "{box|2}",
    "{there@rec|1}",
    "{there@box|3}",
    "{here@box|3}",
];
/// The only target whose receiver is dropped with envelopes inside.
const DROPPED: &str = "{box|2}";
const ROUNDS: u64 = 1_000;
/// After this many sends, some thread has sent to every target.
const MANY_SENDS: u64 = 4 * (SENDERS * (TARGETS.len() + 2)) as u64;

/// The fate of an envelope: the sum of the stamps on it.
const RECEIVED: u64 = 1;
const RETURNED: u64 = 1 << 20;
const FREED: u64 = 1 << 40;

/// Travels in an envelope, and stamps its fate when it is dropped.
struct Ticket {
    sender: usize,
    number: u64,
    stamp: u64,
    fate: Arc<AtomicU64>,
}

impl Ticket {
    fn of(envelope: Envelope) -> Self {
        let payload = envelope.message.payloads.into_first();
        payload.downcast().unwrap()
    }

    fn settle(mut self, stamp: u64) {
        self.stamp = stamp;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // Ordering: Relaxed, because the fate is read after all threads have been joined.
        self.fate.fetch_add(self.stamp, Ordering::Relaxed);
    }
}

/// A place where envelopes arrive. The place checks the order of each sender's envelopes.
#[derive(Default)]
struct Arrivals(Mutex<[Option<u64>; SENDERS]>);

impl Arrivals {
    fn take(&self, envelope: Envelope) {
        let ticket = Ticket::of(envelope);
        let last = lock(&self.0)[ticket.sender].replace(ticket.number);
        assert!(
            last < Some(ticket.number),
            "sender {}: {} arrived after {last:?}",
            ticket.sender,
            ticket.number
        );
        ticket.settle(RECEIVED);
    }
}

impl EnvelopeReceiver for Arrivals {
    fn send(&self, envelope: Envelope) -> Result<(), SendError> {
        self.take(envelope);
        Ok(())
    }
}

/// The progress of the other threads. A thread that panics counts as done.
struct Progress {
    sent: AtomicU64,
    senders: AtomicUsize,
    churners: AtomicUsize,
}

impl Progress {
    fn new(churners: usize) -> Self {
        Self {
            sent: AtomicU64::new(0),
            senders: AtomicUsize::new(SENDERS),
            churners: AtomicUsize::new(churners),
        }
    }

    /// Calls `body` until enough envelopes have been sent to reach every target.
    fn while_many_are_sent(&self, mut body: impl FnMut()) {
        // Ordering: Relaxed here and in all of this type, because the numbers guard no other data.
        let end = self.sent.load(Ordering::Relaxed) + MANY_SENDS;
        while self.sent.load(Ordering::Relaxed) < end && self.senders.load(Ordering::Relaxed) != 0 {
            body();
            std::thread::yield_now();
        }
    }

    fn is_churning(&self) -> bool {
        self.churners.load(Ordering::Relaxed) != 0
    }
}

/// Counts a thread until it ends, also by a panic.
struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A sender's report at its end.
#[derive(Default)]
struct Sent {
    fates: Vec<Arc<AtomicU64>>,
    errors: HashMap<SendErrorKind, u64>,
}

/// Sends to `targets` in turn until the last churner is done.
fn send_while_churning(
    sender: usize,
    targets: &[&str],
    receiver: &dyn EnvelopeReceiver,
    progress: &Progress,
) -> Sent {
    let _counted = Counted(&progress.senders);
    let source = Pid::new(host("senders"), sender as u64);
    let targets: Vec<_> = targets.iter().map(|target| pid(target)).collect();
    let mut sent = Sent::default();
    while progress.is_churning() {
        for &target in &targets {
            let fate = Arc::<AtomicU64>::default();
            let number = sent.fates.len() as u64;
            sent.fates.push(Arc::clone(&fate));
            let ticket = Ticket {
                sender,
                number,
                stamp: FREED,
                fate,
            };
            let message = Message::new("ticket", Payload::any(ticket)).from_pid(source);
            if let Err(error) = receiver.send(message.to(target)) {
                *sent.errors.entry(error.kind).or_default() += 1;
                let envelope = error.into_envelope();
                assert_eq!(
                    (envelope.target, envelope.message.source),
                    (target, Some(source))
                );
                let ticket = Ticket::of(envelope);
                assert_eq!((ticket.sender, ticket.number), (sender, number));
                ticket.settle(RETURNED);
            }
            progress.sent.fetch_add(1, Ordering::Relaxed);
        }
        std::thread::yield_now();
    }
    sent
}

/// Adds and removes the host `rec` of a node.
fn churn_host(node: &Node, arrivals: &Arc<Arrivals>, rounds: u64, progress: &Progress) {
    let _counted = Counted(&progress.churners);
    for _ in 0..rounds {
        node.add_host(host("rec"), arrivals.clone()).unwrap();
        progress.while_many_are_sent(|| {
            node.add_host(host("rec"), arrivals.clone()).unwrap_err();
        });
        node.remove_host(host("rec")).unwrap();
        progress.while_many_are_sent(|| assert!(node.remove_host(host("rec")).is_none()));
    }
}

/// Adds and removes the other node as a peer, and as the fallback.
fn churn_peer(router: &Router, other: &Arc<Router>, rounds: u64, progress: &Progress) {
    let _counted = Counted(&progress.churners);
    let there = node("there");
    for round in 0..rounds {
        router.add_peer(there, other.clone()).unwrap();
        progress.while_many_are_sent(|| {
            router.add_peer(there, other.clone()).unwrap_err();
        });
        if round % 2 == 0 {
            let other = Arc::clone(other);
            router.set_fallback(Arc::new(receiver_fn(move |envelope| other.send(envelope))));
        }
        router.remove_peer(there).unwrap();
        progress.while_many_are_sent(|| assert!(router.remove_peer(there).is_none()));
        router.clear_fallback();
    }
}

/// Attaches `target` and receives, then closes, detaches or, for `DROPPED`, drops the receiver.
fn churn_channel(channels: &ChannelHost, target: Pid, rounds: u64, progress: &Progress) {
    let _counted = Counted(&progress.churners);
    let arrivals = Arrivals::default();
    let ends = if target == pid(DROPPED) { 4 } else { 3 };
    let take_all = |inbox: &Inbox| {
        while let Ok(envelope) = inbox.try_recv() {
            arrivals.take(envelope);
        }
    };
    for round in 0..rounds {
        let inbox = channels.attach(target).unwrap();
        progress.while_many_are_sent(|| {
            channels.attach(target).unwrap_err();
            take_all(&inbox);
        });
        match round % ends {
            0 => inbox.close().into_iter().for_each(|p| arrivals.take(p)),
            1 => {
                assert!(channels.detach(target));
                inbox.iter().for_each(|envelope| arrivals.take(envelope));
            }
            2 => {
                assert!(channels.detach(target));
                let next = channels.attach(target).unwrap();
                inbox.iter().for_each(|envelope| arrivals.take(envelope));
                drop(inbox);
                progress.while_many_are_sent(|| take_all(&next));
                next.close().into_iter().for_each(|p| arrivals.take(p));
            }
            _ => {
                progress.while_many_are_sent(|| {});
                drop(inbox);
            }
        }
        progress.while_many_are_sent(|| assert!(!channels.detach(target)));
    }
}

/// Returns the factor by which the tests run longer.
fn factor() -> u64 {
    std::env::var("GANGER_STRESS").map_or(1, |text| text.parse().unwrap())
}

/// Checks that each envelope has exactly one fate, and counts the envelopes of each fate.
fn count_fates(results: &[Sent], targets: &[&str]) -> HashMap<u64, u64> {
    let mut count: HashMap<u64, u64> = HashMap::new();
    for (sender, sent) in results.iter().enumerate() {
        for (number, fate) in sent.fates.iter().enumerate() {
            // Ordering: Relaxed, because all threads have been joined.
            let fate = fate.load(Ordering::Relaxed);
            assert!(
                [RECEIVED, RETURNED, FREED].contains(&fate),
                "envelope {number} of sender {sender}: stamped {fate:#x}"
            );
            let target = targets[number % targets.len()];
            assert!(
                fate != FREED || target == DROPPED,
                "envelope {number} of sender {sender} was lost on its way to {target}"
            );
            *count.entry(fate).or_default() += 1;
        }
    }
    count
}

// pins: R2, R3, R4, R5
#[test]
fn every_envelope_is_received_or_returned_or_freed_once_and_in_order() {
    let rounds = ROUNDS * factor();

    let [router, other] =
        ["here", "there"].map(|name| Arc::new(Router::new(Arc::new(Node::new(node(name))))));
    let [channels, other_channels] = [&router, &other].map(|router| {
        let channels = Arc::new(ChannelHost::new(router.local().name(), host("box")));
        router
            .local()
            .add_host(channels.host(), channels.clone())
            .unwrap();
        channels
    });
    let (arrivals, other_arrivals) = (Arc::<Arrivals>::default(), Arc::<Arrivals>::default());
    other
        .local()
        .add_host(host("rec"), other_arrivals.clone())
        .unwrap();
    let progress = Progress::new(5);

    let results: Vec<Sent> = std::thread::scope(|scope| {
        let (router, other, progress) = (&router, &other, &progress);
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                scope.spawn(move || send_while_churning(sender, &TARGETS, router, progress))
            })
            .collect();
        scope.spawn(|| churn_host(router.local(), &arrivals, rounds, progress));
        scope.spawn(|| churn_peer(router, other, rounds, progress));
        for (channels, target) in [
            (&channels, "{box|1}"),
            (&channels, DROPPED),
            (&other_channels, "{box|3}"),
        ] {
            scope.spawn(move || churn_channel(channels, pid(target), rounds, progress));
        }
        senders
            .into_iter()
            .map(|sender| sender.join().unwrap())
            .collect()
    });

    let count = count_fates(&results, &TARGETS);
    let errors_of = |kind| {
        results
            .iter()
            .filter_map(|sent| sent.errors.get(&kind))
            .sum::<u64>()
    };
    let expected = [
        SendErrorKind::NotFound,
        SendErrorKind::HostNotFound,
        SendErrorKind::NodeNotFound,
    ]
    .map(errors_of);
    let returned = expected.iter().sum::<u64>() + errors_of(SendErrorKind::Closed);
    assert_eq!(count[&RETURNED], returned, "no other error");
    assert!(expected.iter().all(|&errors| errors > 0), "{expected:?}");
    assert!(count[&RECEIVED] > 0 && count[&FREED] > 0, "{count:?}");
}

// pins: R2, R4, R5
#[test]
fn no_envelope_is_lost_between_a_send_and_a_close() {
    const TARGET: &str = "{box|1}";
    let channels = ChannelHost::new(node("here"), host("box"));
    let progress = Progress::new(1);
    let results: Vec<Sent> = std::thread::scope(|scope| {
        let (channels, progress) = (&channels, &progress);
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                scope.spawn(move || send_while_churning(sender, &[TARGET; 256], channels, progress))
            })
            .collect();
        {
            let _counted = Counted(&progress.churners);
            let arrivals = Arrivals::default();
            let (mut rounds, mut met) = (0, 0);
            // A round without an envelope checks nothing. A wait for an envelope would take the
            // receiver off its core, and then the two threads would never act at once.
            while rounds < 30_000 * factor() || met == 0 {
                let inbox = channels.attach(pid(TARGET)).unwrap();
                let first = (0..200).find_map(|_| {
                    spin_loop();
                    inbox.try_recv().ok()
                });
                met += u64::from(first.is_some());
                rounds += 1;
                let rest = inbox.close();
                first.into_iter().chain(rest).for_each(|p| arrivals.take(p));
            }
        }
        senders
            .into_iter()
            .map(|sender| sender.join().unwrap())
            .collect()
    });
    assert!(count_fates(&results, &[TARGET])[&RECEIVED] > 0);
}
