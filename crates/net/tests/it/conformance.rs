//! The async streams and the blocking streams of the standard library behave the same: the bytes of
//! a peer arrive alike, in any parts and with any end.

use crate::support::{PATIENCE, connected, ok, read_some, result, start};
use ganger_net::TcpStream;
use ganger_sched::Scheduler;
use ganger_task::Cx;
use proptest::collection::vec;
use proptest::prelude::*;
use std::io::{self, ErrorKind, Write};
use std::net::{self, Shutdown};
use std::thread;
use std::time::Duration;

#[derive(Debug, Clone)]
struct Plan {
    /// The writes of the peer, and the lengths of its reads.
    sends: Vec<usize>,
    takes: usize,
    /// The writes of this side, and the lengths of its reads.
    answers: Vec<usize>,
    reads: usize,
    /// Whether the peer breaks the connection at its end.
    breaks: bool,
}

fn plans() -> impl Strategy<Value = Plan> {
    let parts = || vec(prop_oneof![1_usize..20, 1_usize..40_000], 0..12);
    let buffer = || prop_oneof![1_usize..8, 1_usize..30_000];
    (
        parts(),
        buffer(),
        parts(),
        buffer(),
        prop::bool::weighted(0.2),
    )
        .prop_map(|(sends, takes, answers, reads, breaks)| Plan {
            sends,
            takes: takes.max(64),
            answers,
            reads: reads.max(64),
            breaks,
        })
}

/// Returns bytes with their positions as values.
fn bytes(parts: &[usize]) -> Vec<u8> {
    (0..=250).cycle().take(parts.iter().sum()).collect()
}

/// The end of the peer, as a side has found it.
type End = Result<(), ErrorKind>;

/// Runs the peer, which writes and reads at the same time, on two threads. Returns the bytes read.
fn other_side(stream: net::TcpStream, plan: &Plan) -> Vec<u8> {
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    let (sent, mut read) = (bytes(&plan.sends), Vec::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut rest = &sent[..];
            for &part in &plan.sends {
                let (now, later) = rest.split_at(part);
                if (&stream).write_all(now).is_err() {
                    break;
                }
                rest = later;
            }
            if !plan.breaks {
                stream.shutdown(Shutdown::Write).unwrap();
            }
        });
        if !plan.breaks {
            let mut buffer = vec![0; plan.takes];
            while let Ok(length @ 1..) = read_some(&stream, &mut buffer) {
                read.extend_from_slice(&buffer[..length]);
            }
        }
    });
    if plan.breaks {
        let socket = socket2::SockRef::from(&stream);
        socket.set_linger(Some(Duration::ZERO)).unwrap();
    }
    read
}

/// Runs this side with blocking sockets.
fn by_std(stream: net::TcpStream, plan: &Plan) -> (Vec<u8>, End) {
    let (mut read, mut end) = (Vec::new(), Ok(()));
    thread::scope(|scope| {
        scope.spawn(|| {
            let (all, mut at) = (bytes(&plan.answers), 0);
            for &part in &plan.answers {
                if (&stream).write_all(&all[at..at + part]).is_err() {
                    return;
                }
                at += part;
            }
            // Fails if the connection is broken.
            let _ = stream.shutdown(Shutdown::Write);
        });
        let mut buffer = vec![0; plan.reads];
        end = loop {
            match read_some(&stream, &mut buffer) {
                Ok(0) => break Ok(()),
                Ok(length) => read.extend_from_slice(&buffer[..length]),
                Err(error) => break Err(error.kind()),
            }
        };
    });
    (read, end)
}

/// Runs this side in a process.
fn by_net(
    scheduler: &Scheduler,
    net: &ganger_net::Net,
    stream: net::TcpStream,
    plan: &Plan,
) -> (Vec<u8>, End) {
    let stream = net.enter(|| TcpStream::from_std(stream)).unwrap();
    let plan = plan.clone();
    let (send, outcome) = std::sync::mpsc::channel();
    let task = scheduler.spawn(async move |cx: Cx| {
        let (reads, writes) = stream.split();
        let writer = async {
            let (all, mut at) = (bytes(&plan.answers), 0);
            for &part in &plan.answers {
                if writes.write_all(&all[at..at + part]).await.is_err() {
                    break;
                }
                at += part;
            }
            drop(writes);
        };
        let reader = async {
            let (mut read, mut buffer) = (Vec::new(), vec![0; plan.reads]);
            loop {
                match reads.read(&mut buffer).await {
                    Ok(0) => return (read, Ok(())),
                    Ok(length) => read.extend_from_slice(&buffer[..length]),
                    Err(error) => return (read, Err(error.kind())),
                }
            }
        };
        let ((), outcome) = cx.join((writer, reader)).await;
        send.send(outcome)?;
        ok(())
    });
    result(task.unwrap());
    outcome.recv().unwrap()
}

fn check(plan: &Plan, here: &(Vec<u8>, End), there: &[u8]) -> Result<(), TestCaseError> {
    let sent = bytes(&plan.sends);
    if plan.breaks {
        // The system may drop its bytes when the connection breaks.
        prop_assert!(sent.starts_with(&here.0));
        // The system reports the break once: to a write, perhaps, and the read then sees an end.
        let is_told = here.1 == Err(ErrorKind::ConnectionReset);
        prop_assert!(is_told || here.1 == Ok(()) && !plan.answers.is_empty());
    } else {
        prop_assert_eq!(here.1, Ok(()));
        prop_assert!(here.0 == sent);
        prop_assert!(there == bytes(&plan.answers));
    }
    Ok(())
}

// pins: I6
#[test]
fn streams_do_what_those_of_the_standard_library_do() {
    let (scheduler, net) = start(2);
    let config = ProptestConfig {
        cases: 60,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(plan in plans())| {
        let both = |side: &dyn Fn(net::TcpStream) -> (Vec<u8>, End)| {
            let (client, server) = connected();
            thread::scope(|scope| {
                let there = scope.spawn(|| other_side(client, &plan));
                let here = side(server);
                (here, there.join().unwrap())
            })
        };
        let (here, there) = both(&|stream| by_std(stream, &plan));
        check(&plan, &here, &there)?;
        let (here, there) = both(&|stream| by_net(&scheduler, &net, stream, &plan));
        check(&plan, &here, &there)?;
    });
    assert_eq!(net.sockets(), 0);
}

/// Reads and writes by the traits of `futures-io`.
// pins: I6
#[test]
fn the_traits_of_futures_work() {
    use futures_util::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, io::BufReader};
    let (scheduler, net) = start(2);
    let task = scheduler.spawn(async move |cx: Cx| {
        let (client, server) = connected();
        let (client, server) = (TcpStream::from_std(client)?, TcpStream::from_std(server)?);
        let writes = async move {
            let mut client = client;
            for number in 0..1000 {
                let line = format!("line {number}\n");
                AsyncWriteExt::write_all(&mut client, line.as_bytes()).await?;
            }
            AsyncWriteExt::close(&mut client).await?;
            let mut text = String::new();
            AsyncReadExt::read_to_string(&mut client, &mut text).await?;
            Ok::<_, io::Error>(text)
        };
        let reads = async move {
            let (reads, mut writes) = server.split();
            let (mut reads, mut line, mut count) = (BufReader::new(reads), String::new(), 0_u64);
            while reads.read_line(&mut line).await? > 0 {
                assert_eq!(line, format!("line {count}\n"));
                line.clear();
                count += 1;
            }
            AsyncWriteExt::write_all(&mut writes, b"bye").await?;
            Ok::<_, io::Error>(count)
        };
        let (text, count) = cx.join((writes, reads)).await;
        assert_eq!(text?, "bye");
        ok(count?)
    });
    assert_eq!(result(task.unwrap()).as_u64(), Some(1000));
    assert_eq!(net.sockets(), 0);
}
