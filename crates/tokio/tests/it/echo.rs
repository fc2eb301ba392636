//! An echo server and its clients, in processes.

use crate::support::{ms, result, start, sum, until};
use ganger_proc_api::{BoxError, process_fn};
use ganger_sched::{ContextExt, Handle, ProcessHandle};
use ganger_task::Cx;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn echo(mut stream: TcpStream) -> Result<u64, BoxError> {
    let mut buffer = [0; 256];
    let mut sum = 0;
    loop {
        match stream.read(&mut buffer).await? {
            0 => return Ok(sum),
            length => {
                sum += length as u64;
                stream.write_all(&buffer[..length]).await?;
            }
        }
    }
}

/// Accepts until it is cancelled, with a process for each connection.
fn server(scheduler: &Handle) -> (ProcessHandle, SocketAddr) {
    let (send, address) = std::sync::mpsc::channel();
    let server = scheduler.spawn(async move |cx: Cx| {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        send.send(listener.local_addr()?)?;
        let mut accepted = 0_u64;
        while let Ok(stream) = cx.until_cancelled(listener.accept()).await {
            let (stream, _) = stream?;
            cx.spawn(async move |_: Cx| echo(stream).await)?;
            accepted += 1;
        }
        Ok(accepted)
    });
    let address = address.recv_timeout(crate::support::PATIENCE).unwrap();
    (server.unwrap(), address)
}

/// Sends `rounds` messages, and waits for the echo of each. Returns how many bytes came.
fn client(scheduler: &Handle, address: SocketAddr, rounds: u8) -> ProcessHandle {
    let client = scheduler.spawn(async move |_: Cx| {
        let mut stream = TcpStream::connect(address).await?;
        let mut sum = 0;
        for round in 0..rounds {
            stream.write_all(&[round; 64]).await?;
            let mut answer = [0; 64];
            stream.read_exact(&mut answer).await?;
            assert_eq!(answer, [round; 64]);
            sum += 64;
        }
        Ok(sum)
    });
    client.unwrap()
}

// pins: I1
#[test]
fn many_connections_get_back_what_they_send() {
    for workers in 1..4 {
        let (scheduler, _) = start(workers);
        let (server, address) = server(&scheduler);
        let clients: Vec<_> = (0..200).map(|_| client(&scheduler, address, 20)).collect();
        assert_eq!(sum(clients), 200 * 20 * 64);
        scheduler.cancel(server.pid(), "enough").unwrap();
        assert_eq!(result(server).as_u64(), Some(200));
        until("connections end", || scheduler.stats().live == 0);
    }
}

/// Serves connections while each worker has processes that are always ready.
// pins: I2
#[test]
fn connections_are_served_beside_processes_that_are_always_ready() {
    let (scheduler, _) = start(2);
    let is_over = Arc::new(AtomicBool::new(false));
    let busy: Vec<_> = (0..8)
        .map(|_| {
            let is_over = Arc::clone(&is_over);
            let busy = process_fn(move |_, _, out| {
                if is_over.load(Ordering::SeqCst) {
                    out.done(());
                } else {
                    out.step_again();
                }
                Ok(())
            });
            scheduler.submit(busy, "main", ()).unwrap()
        })
        .collect();
    let (_server, address) = server(&scheduler);
    let clients: Vec<_> = (0..20).map(|_| client(&scheduler, address, 20)).collect();
    assert_eq!(sum(clients), 20 * 20 * 64);
    is_over.store(true, Ordering::SeqCst);
    busy.into_iter().for_each(|it| drop(result(it)));
}

/// Serves connections while all workers are in long steps, which last until the end of the service.
// pins: I2
#[test]
fn connections_are_served_while_all_workers_are_in_long_steps() {
    let (scheduler, _) = start(2);
    let (_server, address) = server(&scheduler);
    let is_over = Arc::new(AtomicBool::new(false));
    let begun = Arc::new(AtomicUsize::new(0));
    let long: Vec<_> = (0..2)
        .map(|_| {
            let (is_over, begun) = (Arc::clone(&is_over), Arc::clone(&begun));
            let long = process_fn(move |_, _, out| {
                begun.fetch_add(1, Ordering::SeqCst);
                while !is_over.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
                out.done(());
                Ok(())
            });
            scheduler.submit(long, "main", ()).unwrap()
        })
        .collect();
    until("both are in steps", || begun.load(Ordering::SeqCst) == 2);
    let clients: Vec<_> = (0..5).map(|_| client(&scheduler, address, 3)).collect();
    assert_eq!(sum(clients), 5 * 3 * 64);
    assert!(long.iter().all(|it| !it.is_finished()));
    is_over.store(true, Ordering::SeqCst);
    long.into_iter().for_each(|it| drop(result(it)));
}

/// Checks that idle connections and a far timer of tokio wake no thread.
// pins: I3
#[test]
fn idle_connections_wake_no_thread() {
    let (scheduler, tokio) = start(2);
    let (_server, address) = server(&scheduler);
    let idle = (0..50).map(|_| {
        let idle = async move |cx: Cx| {
            let mut stream = TcpStream::connect(address).await?;
            let mut byte = [0];
            let rest = async {
                let read = stream.read(&mut byte);
                let read = tokio::time::timeout(ms(3_600_000), read).await;
                panic!("nothing comes: {read:?}");
            };
            let is_cancelled = cx.until_cancelled(rest).await.is_err();
            Ok(u64::from(is_cancelled))
        };
        scheduler.spawn(idle).unwrap()
    });
    let idle: Vec<ProcessHandle> = idle.collect();
    let turns = || scheduler.stats().total.turns;
    let parks = || (tokio.metrics().worker_park_count(0), turns());
    let mut before = parks();
    until("nothing happens for a while", || {
        std::thread::sleep(ms(100));
        let now = parks();
        std::mem::replace(&mut before, now) == now
    });
    std::thread::sleep(ms(300));
    assert_eq!(parks(), before);
    for process in &idle {
        scheduler.cancel(process.pid(), "enough").unwrap();
    }
    assert_eq!(sum(idle), 50);
}

// pins: I4
#[test]
fn a_stop_ends_within_its_deadline_and_closes_what_is_open() {
    let (scheduler, tokio) = start(2);
    let (_server, address) = server(&scheduler);
    let open = tokio.clone();
    let open = std::thread::spawn(move || {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        std::io::Write::write_all(&mut stream, b"hello").unwrap();
        let mut all = Vec::new();
        // Until the server's end is closed, in any way.
        let _ = std::io::Read::read_to_end(&mut stream, &mut all);
        drop(open);
        all
    });
    until("it is accepted", || scheduler.stats().live == 2);
    let spawned = tokio.spawn(std::future::pending::<()>());
    let report = scheduler.stop(ms(200)).unwrap();
    assert!(report.stuck.is_empty(), "{report:?}");
    drop(scheduler);
    assert_eq!(open.join().unwrap(), b"hello");
    until("what was spawned is dropped", || spawned.is_finished());
}
