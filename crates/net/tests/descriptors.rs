//! Descriptors: none is left behind, and a server survives a lack of them. A program of its own,
//! because the test counts the descriptors of the whole program, and takes all of them.
#![cfg(target_os = "linux")]

use ganger_net::{Child, Net, Signal, SignalKind, TcpListener, TcpStream};
use ganger_proc_api::{BoxError, ExitReason};
use ganger_sched::Scheduler;
use ganger_task::Cx;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::{self, File};
use std::future::poll_fn;
use std::io::{Read, Write};
use std::pin::pin;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Runs a task to its end.
fn run<F>(body: impl FnOnce(Cx) -> F + Send + 'static)
where
    F: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    let builder = Scheduler::builder().workers(2);
    let scheduler = builder.driver(Net::new().unwrap()).build().unwrap();
    scheduler.start().unwrap();
    let task = scheduler.spawn(body).unwrap();
    match task.wait_timeout(Duration::from_secs(60)) {
        Ok(ExitReason::Done(_)) => {}
        other => panic!("{other:?}"),
    }
}

// pins: I6, I7
#[test]
fn descriptors_come_back_and_a_server_without_any_waits() {
    let before = descriptors();
    run(connections_of_all_ends);
    come_back(before);
    run(a_server_without_descriptors);
    come_back(before);
    run(children_and_signals);
    come_back(before);
}

/// Waits until the descriptors are closed: the last thread of a scheduler closes the poller, after
/// the drop of the scheduler's handle.
fn come_back(before: usize) {
    let end = Instant::now() + Duration::from_secs(60);
    while descriptors() != before {
        assert!(Instant::now() < end, "{} for {before}", descriptors());
        std::thread::yield_now();
    }
}

async fn connections_of_all_ends(cx: Cx) -> Result<(), BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    for round in 0..200 {
        let client = TcpStream::connect(address).await?;
        let (server, _) = listener.accept().await?;
        let mut byte = [0];
        match round % 4 {
            0 => client.close(),
            1 => {
                // Dropped while it waits.
                let read = cx.timeout(Duration::from_micros(10), client.read(&mut byte));
                assert!(read.await.is_err());
            }
            2 => {
                let (reads, writes) = server.split();
                drop(writes);
                assert_eq!(client.read(&mut byte).await?, 0);
                drop(reads);
            }
            _ => client.write_all(b"unread").await?,
        }
        let refused = TcpStream::connect("127.0.0.1:1").await;
        assert!(refused.is_err());
    }
    Ok(())
}

async fn children_and_signals(cx: Cx) -> Result<(), BoxError> {
    for round in 0..60 {
        let mut command = Command::new("cat");
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = Child::spawn(piped)?.kill_on_drop(round % 3 == 0);
        match round % 3 {
            // Killed, or left to the end of its input.
            0 | 1 => drop(child),
            _ => drop(child.output().await?),
        }
        let signal = Signal::new(SignalKind::USER_1)?;
        assert!(
            cx.timeout(Duration::from_micros(10), signal.recv())
                .await
                .is_err()
        );
    }
    Ok(())
}

async fn a_server_without_descriptors(cx: Cx) -> Result<(), BoxError> {
    let limits = getrlimit(Resource::Nofile);
    let lower = Rlimit {
        current: Some(200),
        maximum: limits.maximum,
    };
    setrlimit(Resource::Nofile, lower)?;
    let incoming = TcpListener::bind("127.0.0.1:0")?;
    let mut client = std::net::TcpStream::connect(incoming.local_addr()?)?;
    let mut taken = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        taken.push(file);
    }
    // A server without `Incoming` sees the error.
    assert!(incoming.accept().await.is_err());
    let incoming = incoming.incoming(10);
    let mut polls = 0;
    let accepted = {
        let mut accepts = pin!(incoming.accept());
        let accepts = poll_fn(|context| {
            polls += 1;
            accepts.as_mut().poll(context)
        });
        let frees = async {
            cx.sleep(Duration::from_millis(30)).await?;
            taken.clear();
            Ok::<_, BoxError>(())
        };
        let (accepted, freed) = cx.join((accepts, frees)).await;
        freed?;
        accepted
    };
    let (server, _) = accepted?;
    // The server has not spun: each pause is twice as long as the pause before.
    assert!(polls < 100, "{polls}");
    client.write_all(b"a")?;
    let mut byte = [0];
    server.read_exact(&mut byte).await?;
    server.write_all(&byte).await?;
    client.set_read_timeout(Some(Duration::from_secs(60)))?;
    client.read_exact(&mut byte)?;
    setrlimit(Resource::Nofile, limits)?;
    Ok(())
}
