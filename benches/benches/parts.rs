//! Single parts of Ganger on a single thread: the map from ids to processes, the flight recorder's
//! ring, the state word of a process, and the way of an envelope to its receiver.

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};
use ganger_proc_api::{BoxError, Envelope, Message, Pid, SendErrorKind};
use ganger_relay::{ChannelHost, EnvelopeReceiver, Node, Router, receiver_fn};
use ganger_ring::event::{Event, Pick, WORDS};
use ganger_ring::ring;
use ganger_sched::Scheduler;
use ganger_sched::internal::measured::{Processes, StateWord};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn main() -> Result<(), BoxError> {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    registry(&mut criterion)?;
    push(&mut criterion);
    snapshot(&mut criterion);
    state(&mut criterion);
    let router = Arc::new(router()?);
    through_router(&mut criterion, &router)?;
    through_mailbox(&mut criterion, &router)?;
    through_scheduler(&mut criterion, router)?;
    text(&mut criterion)?;
    criterion.final_summary();
    Ok(())
}

/// A look-up, an insertion with its removal, and an id that a user chooses. The order of visits is
/// such that no cache predicts it.
fn registry(criterion: &mut Criterion) -> Result<(), BoxError> {
    let scheduler = Scheduler::builder().workers(2).build()?;
    let mut group = criterion.benchmark_group("registry");
    for count in [1_000_u32, 100_000] {
        let processes = Processes::new(&scheduler, count);
        let mut order = Order::of(count);
        let mut next = || order.next();
        group.bench_function(BenchmarkId::new("look_up", count), |bencher| {
            bencher.iter(|| assert!(processes.id(next()).is_some_and(|id| processes.has(id))));
        });
        group.bench_function(BenchmarkId::new("look_up_absent", count), |bencher| {
            let absent = |nth| processes.id(nth).map(|id| id + (1 << 32));
            bencher.iter(|| assert!(!absent(next()).is_some_and(|id| processes.has(id))));
        });
        group.bench_function(BenchmarkId::new("remove_and_insert", count), |bencher| {
            bencher.iter(|| assert!(processes.replace(next())));
        });
        group.bench_function(BenchmarkId::new("reserve_and_remove", count), |bencher| {
            bencher.iter(|| assert!(processes.reserve(next().into())));
        });
    }
    group.finish();
    Ok(())
}

/// The numbers below a power of ten, over and over, each once a round.
struct Order {
    at: u32,
    stride: u32,
    count: u32,
}

impl Order {
    fn of(count: u32) -> Self {
        // Has no factor in common with a power of ten.
        let stride = 61_803 % count;
        Self {
            at: 0,
            stride,
            count,
        }
    }

    fn next(&mut self) -> u32 {
        self.at += self.stride;
        if self.at >= self.count {
            self.at -= self.count;
        }
        self.at
    }
}

/// Larger than the caches of a core.
const BYTES: usize = 16 << 20;

fn event(process: u64) -> Event {
    Event::TurnBegins {
        process,
        name: 7,
        pick: Pick::Local,
    }
}

/// An event, into a ring that fits a cache and into a large one; and with a clock read for each.
fn push(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ring/push");
    for (name, bytes) in [("16_KiB", 16 << 10), ("16_MiB", BYTES)] {
        let (writer, _reader) = ring::<WORDS>(bytes);
        let mut number = 0;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                number += 1;
                writer.push(event(black_box(number)).record(number));
            });
        });
    }
    let (writer, _reader) = ring::<WORDS>(BYTES);
    let begin = Instant::now();
    group.bench_function("16_MiB_with_clock", |bencher| {
        bencher.iter(|| {
            let at = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
            writer.push(event(black_box(5)).record(at));
        });
    });
}

/// A copy of a full ring of 16 MiB, with nothing written meanwhile.
fn snapshot(criterion: &mut Criterion) {
    let (writer, reader) = ring::<WORDS>(BYTES);
    for number in 0..reader.slots() as u64 {
        writer.push(event(number).record(number));
    }
    let mut group = criterion.benchmark_group("ring/snapshot");
    group.throughput(Throughput::Bytes(BYTES as u64));
    group.bench_function("16_MiB", |bencher| bencher.iter(|| reader.snapshot()));
}

/// A name, and a transition of the word, which returns whether it went as expected.
type Transition = (&'static str, fn(&StateWord) -> bool);

/// Transitions without contention: the cost in a turn and in a wake-up.
fn state(criterion: &mut Criterion) {
    let transitions: [Transition; 4] = [
        ("park_and_wake", StateWord::park_and_wake),
        ("requeue", StateWord::requeue),
        ("wake_while_running", StateWord::wake_while_running),
        ("wake_while_ready", StateWord::wake_while_ready),
    ];
    let mut group = criterion.benchmark_group("state");
    for (name, transition) in transitions {
        let word = StateWord::default();
        group.bench_function(name, |bencher| {
            bencher.iter(|| assert!(transition(black_box(&word))));
        });
    }
    group.finish();
}

/// The router of the node `here`, with a host, a peer, and a fallback for other nodes.
fn router() -> Result<Router, BoxError> {
    let sink = || {
        Arc::new(receiver_fn(|envelope| {
            black_box(envelope);
            Ok(())
        }))
    };
    let node = Arc::new(Node::new("here".parse()?));
    node.add_host("sink".parse()?, sink())?;
    let router = Router::new(node);
    router.add_peer("peer".parse()?, sink())?;
    router.set_fallback(sink());
    Ok(router)
}

fn envelope(target: Pid) -> Envelope {
    Message::new("number", 7_u64).to(target)
}

/// Routes by the PID's node; the envelope is made outside of the measured time.
fn through_router(criterion: &mut Criterion, router: &Router) -> Result<(), BoxError> {
    let mut group = criterion.benchmark_group("routing/router");
    for (name, target) in [
        ("local", "{sink|1}"),
        ("local_by_node", "{here@sink|1}"),
        ("peer", "{peer@sink|1}"),
        ("fallback", "{elsewhere@sink|1}"),
    ] {
        let target = target.parse()?;
        group.bench_function(name, |bencher| {
            let send = |envelope| assert!(router.send(envelope).is_ok());
            bencher.iter_batched(|| envelope(target), send, BatchSize::SmallInput);
        });
    }
    let nowhere = "{nowhere|1}".parse()?;
    group.bench_function("refused", |bencher| {
        // Returned envelopes are dropped outside of the measured time.
        let send = |envelope| router.send(envelope).unwrap_err();
        bencher.iter_batched(|| envelope(nowhere), send, BatchSize::SmallInput);
    });
    group.finish();
    Ok(())
}

/// A channel with a PID: a send to it, and the receipt.
fn through_mailbox(criterion: &mut Criterion, router: &Router) -> Result<(), BoxError> {
    let mailbox = Arc::new(ChannelHost::new(router.local().name(), "box".parse()?));
    router.local().add_host(mailbox.host(), mailbox.clone())?;
    let inbox = mailbox.open();
    criterion.bench_function("routing/mailbox", |bencher| {
        let send = |envelope| {
            assert!(router.send(envelope).is_ok());
            inbox.try_recv().expect("what was sent")
        };
        bencher.iter_batched(|| envelope(inbox.pid()), send, BatchSize::SmallInput);
    });
    Ok(())
}

/// From a scheduler to its router, and to a PID of its own without a process. `cargo xtask bench`
/// has sends to processes.
fn through_scheduler(criterion: &mut Criterion, router: Arc<Router>) -> Result<(), BoxError> {
    let scheduler = Scheduler::builder()
        .workers(1)
        .node("here")
        .router(router)
        .build()?;
    let mut group = criterion.benchmark_group("routing/scheduler");
    for (name, target) in [("other_host", "{sink|1}"), ("other_node", "{peer@sink|1}")] {
        let target = target.parse()?;
        group.bench_function(name, |bencher| {
            let send = |envelope| assert!(scheduler.send(envelope).is_ok());
            bencher.iter_batched(|| envelope(target), send, BatchSize::SmallInput);
        });
    }
    let ended = "{main|1}".parse()?;
    let error = scheduler.send(envelope(ended)).unwrap_err();
    assert_eq!(error.kind, SendErrorKind::NotFound);
    group.bench_function("no_process", |bencher| {
        let send = |envelope| scheduler.send(envelope).unwrap_err();
        bencher.iter_batched(|| envelope(ended), send, BatchSize::SmallInput);
    });
    group.finish();
    Ok(())
}

/// PIDs as text: names are looked up among the known names.
fn text(criterion: &mut Criterion) -> Result<(), BoxError> {
    let pid: Pid = "{here@sink|4294967296}".parse()?;
    let text = pid.to_string();
    let mut group = criterion.benchmark_group("routing/pid");
    group.bench_function("parse", |bencher| {
        bencher.iter(|| black_box(text.as_str()).parse::<Pid>());
    });
    group.bench_function("to_text", |bencher| {
        bencher.iter(|| black_box(pid).to_string());
    });
    group.finish();
    Ok(())
}
