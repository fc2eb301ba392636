//! A server that sends all bytes back, and its clients, in processes.

#[cfg(feature = "portable")]
use crate::support::start_with;
use crate::support::{connect, ok, pair, result, start, sum, until};
use ganger_net::{Net, TcpListener, TcpStream};
use ganger_proc_api::{BoxError, process_fn};
use ganger_sched::{ContextExt, Handle, ProcessHandle, Scheduler};
use ganger_task::Cx;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

pub(crate) async fn echo(stream: TcpStream) -> Result<u64, BoxError> {
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

/// Accepts until its cancellation, with a process for each connection.
fn server(scheduler: &Handle) -> (ProcessHandle, SocketAddr) {
    let (send, address) = std::sync::mpsc::channel();
    let server = scheduler.spawn(async move |cx: Cx| {
        let listener = TcpListener::bind("127.0.0.1:0")?;
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

/// Sends messages, and waits for each to come back. Returns the number of received bytes.
fn client(scheduler: &Handle, address: SocketAddr, rounds: u8) -> ProcessHandle {
    let client = scheduler.spawn(async move |_: Cx| {
        let stream = TcpStream::connect(address).await?;
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

// pins: I6
#[test]
fn many_connections_get_back_what_they_send() {
    for workers in 1..4 {
        are_served(start(workers));
    }
}

/// Echoes with the poller of other systems.
// pins: I6
#[cfg(feature = "portable")]
#[test]
fn many_connections_get_back_what_they_send_elsewhere() {
    for workers in 1..4 {
        are_served(start_with(workers, Net::portable().unwrap()));
    }
}

fn are_served((scheduler, net): (Scheduler, Net)) {
    let (server, address) = server(&scheduler);
    let clients: Vec<_> = (0..200).map(|_| client(&scheduler, address, 20)).collect();
    assert_eq!(sum(clients), 200 * 20 * 64);
    scheduler.cancel(server.pid(), "enough").unwrap();
    assert_eq!(result(server).as_u64(), Some(200));
    until("connections end", || scheduler.stats().live == 0);
    assert_eq!(net.sockets(), 0);
}

/// Lets the monitor visit the poller while a worker does not leave its step.
// pins: I2
#[test]
fn a_stuck_worker_keeps_no_socket_from_the_others() {
    let (scheduler, _) = start(2);
    let (_server, address) = server(&scheduler);
    let release = Arc::new(AtomicBool::new(false));
    let stuck = {
        let release = Arc::clone(&release);
        scheduler.spawn(process_fn(move |_, _, out| {
            // Ordering: Relaxed: a flag alone.
            while !release.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            out.done(());
            Ok(())
        }))
    };
    assert_eq!(sum([client(&scheduler, address, 50)]), 50 * 64);
    // Ordering: Relaxed: a flag alone.
    release.store(true, Ordering::Relaxed);
    result(stuck.unwrap());
}

/// Workers that are always busy visit the poller at rotations.
// pins: I2
#[test]
fn busy_workers_keep_no_socket_waiting() {
    let (scheduler, _) = start(2);
    let (_server, address) = server(&scheduler);
    let over = Arc::new(AtomicBool::new(false));
    let spinning: Vec<_> = (0..8)
        .map(|_| {
            let over = Arc::clone(&over);
            let spins = process_fn(move |_, _, out| {
                // Ordering: Relaxed: a flag alone.
                if over.load(Ordering::Relaxed) {
                    out.done(());
                } else {
                    out.step_again();
                }
                Ok(())
            });
            scheduler.spawn(spins).unwrap()
        })
        .collect();
    assert_eq!(sum([client(&scheduler, address, 50)]), 50 * 64);
    // Ordering: Relaxed: a flag alone.
    over.store(true, Ordering::Relaxed);
    for spin in spinning {
        result(spin);
    }
}

/// Leaves other processes their turns beside a process whose socket is always ready.
// pins: I6
#[test]
fn a_socket_that_is_always_ready_keeps_no_worker() {
    let (scheduler, _) = start(1);
    let turns = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&turns);
    let task = scheduler.spawn(async move |cx: Cx| {
        let (client, server) = pair().await?;
        client.write_all(&[7; 4096]).await?;
        cx.spawn(async move |_: Cx| {
            // Ordering: Relaxed: a count alone.
            seen.fetch_add(1, Ordering::Relaxed);
            ok(())
        })?;
        let mut byte = [0];
        for _ in 0..1000 {
            server.read_exact(&mut byte).await?;
        }
        // Ordering: Relaxed: a count alone.
        Ok(turns.load(Ordering::Relaxed) as u64)
    });
    assert_eq!(result(task.unwrap()).as_u64(), Some(1));
}

/// Wakes a sleeping scheduler from a foreign thread.
// pins: I1
#[test]
fn an_idle_scheduler_serves_threads() {
    use std::io::{Read, Write};
    let (scheduler, _) = start(2);
    let (_server, address) = server(&scheduler);
    let mut stream = connect(address);
    for round in 0..20 {
        if round % 5 == 0 {
            until("the workers sleep", || scheduler.stats().sleeping == 2);
        }
        stream.write_all(&[round; 16]).unwrap();
        let mut answer = [0; 16];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer, [round; 16]);
    }
}
