//! The way of an envelope to its receiver, by PID: through nodes, routers and mailboxes, and
//! through a scheduler that passes it on. The receiver at the end drops envelopes.

use criterion::{BatchSize, Criterion};
use ganger_proc_api::{BoxError, Envelope, Message, Pid, SendErrorKind};
use ganger_relay::{ChannelHost, EnvelopeReceiver, Node, Router, receiver_fn};
use ganger_sched::Scheduler;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

fn main() -> Result<(), BoxError> {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    let router = Arc::new(router()?);
    through_router(&mut criterion, &router)?;
    through_mailbox(&mut criterion, &router)?;
    through_scheduler(&mut criterion, router)?;
    text(&mut criterion)?;
    criterion.final_summary();
    Ok(())
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

/// From a scheduler to its router, and to a PID of its own without a process. The benchmark `step`
/// has a send to a process.
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
