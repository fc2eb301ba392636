//! The ends of operations: deadlines, closes, owners that end, and the halt.

use crate::support::{PATIENCE, connected, ms, ok, pair, result, start, until};
use ganger_net::{Net, TcpListener, TcpStream, UdpSocket};
use ganger_proc_api::BoxError;
use ganger_sched::{ContextExt, Driver};
use ganger_task::Cx;
use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

fn kind<T>(result: io::Result<T>) -> ErrorKind {
    match result {
        Ok(_) => panic!("it succeeds"),
        Err(error) => error.kind(),
    }
}

// pins: I6
#[test]
fn reads_end_at_their_deadline_and_not_before() {
    let (scheduler, _) = start(2);
    let task = scheduler.spawn(async |_: Cx| {
        let (client, server) = pair().await?;
        let mut byte = [0];
        for time in [1, 5, 0, 3] {
            let begin = Instant::now();
            client.set_read_deadline(Some(ms(time)));
            assert_eq!(kind(client.read(&mut byte).await), ErrorKind::TimedOut);
            assert!(begin.elapsed() >= ms(time));
            // Later reads fail as well.
            assert_eq!(kind(client.read(&mut byte).await), ErrorKind::TimedOut);
        }
        // The peer is not concerned, and a new deadline makes reads work again.
        client.write_all(b"a").await?;
        server.write_all(b"b").await?;
        client.set_read_deadline(Some(PATIENCE));
        client.read_exact(&mut byte).await?;
        ok(byte == *b"b")
    });
    assert_eq!(result(task.unwrap()).as_bool(), Some(true));
}

// pins: I7
#[test]
fn an_abort_is_a_reset_where_a_close_is_an_end() {
    let (scheduler, _) = start(2);
    let task = scheduler.spawn(async |_: Cx| {
        for aborts in [false, true] {
            let (client, server) = pair().await?;
            server.write_all(b"half").await?;
            let mut four = [0; 4];
            client.read_exact(&mut four).await?;
            match aborts {
                true => server.closer().abort(),
                false => server.closer().close(),
            }
            assert_eq!(kind(server.read(&mut four).await), ErrorKind::NotConnected);
            match client.read(&mut four).await {
                Ok(bytes) => assert_eq!((bytes, aborts), (0, false)),
                Err(error) => {
                    assert_eq!((error.kind(), aborts), (ErrorKind::ConnectionReset, true));
                }
            }
        }
        ok(())
    });
    result(task.unwrap());
}

// pins: I6
#[test]
fn a_deadline_that_moves_later_is_heeded() {
    let (scheduler, _) = start(2);
    let task = scheduler.spawn(async |cx: Cx| {
        let (client, _server) = pair().await?;
        let begin = Instant::now();
        client.set_read_deadline(Some(ms(1)));
        let mut byte = [0];
        let read = client.read(&mut byte);
        let moves = async { client.set_read_deadline(Some(ms(20))) };
        let (read, ()) = cx.join((read, moves)).await;
        assert_eq!(kind(read), ErrorKind::TimedOut);
        ok(begin.elapsed() >= ms(20))
    });
    assert_eq!(result(task.unwrap()).as_bool(), Some(true));
}

/// Sets a deadline to zero by another process, and by a thread.
// pins: I6
#[test]
fn a_deadline_of_zero_ends_what_waits() {
    let (scheduler, _) = start(2);
    let task = scheduler.spawn(async |cx: Cx| {
        let (client, _server) = pair().await?;
        let (reads, writes) = client.split();
        let reader = cx.spawn(async move |cx: Cx<bool>| {
            let begun = cx.recv();
            let mut byte = [0];
            let read = async { kind(reads.read(&mut byte).await) };
            let zero = async {
                begun.await;
                reads.set_deadline(Some(Duration::ZERO));
            };
            let (kind, ()) = cx.join((read, zero)).await;
            assert_eq!(kind, ErrorKind::TimedOut);
            ok(())
        })?;
        let monitor = cx.monitor(reader.pid());
        reader.send(true)?;
        let end = monitor.await?;
        drop(writes);
        ok(format!("{end:?}"))
    });
    assert_eq!(result(task.unwrap()).as_str(), Some("Done"));
}

// pins: I6
#[test]
fn a_close_ends_each_operation_once_with_an_error() {
    let (scheduler, net) = start(2);
    for _ in 0..50 {
        let task = scheduler.spawn(async |cx: Cx| {
            let (client, _server) = pair().await?;
            let closer = client.closer();
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let listens = listener.closer();
            let (mut one, mut other) = ([0], [0]);
            let ends = cx.join((
                client.read(&mut one),
                client.read(&mut other),
                listener.accept(),
                async { std::thread::spawn(move || (closer.close(), listens.close())) },
            ));
            let (one, other, accepted, thread) = ends.await;
            thread.join().unwrap();
            assert_eq!(kind(one), ErrorKind::NotConnected);
            assert_eq!(kind(other), ErrorKind::NotConnected);
            assert_eq!(kind(accepted), ErrorKind::NotConnected);
            assert_eq!(kind(client.write(b"a").await), ErrorKind::NotConnected);
            assert!(client.closer().is_closed());
            ok(())
        });
        result(task.unwrap());
    }
    assert_eq!(net.sockets(), 0);
}

/// Closes the system's socket at once, so the peer sees its end.
// pins: I6
#[test]
fn a_close_is_seen_by_the_other_side_while_an_owner_is_left() {
    let (scheduler, _) = start(2);
    let task = scheduler.spawn(async |_: Cx| {
        let (client, server) = pair().await?;
        client.close();
        let mut byte = [0];
        assert_eq!(server.read(&mut byte).await?, 0);
        drop(client);
        ok(())
    });
    result(task.unwrap());
}

// pins: I4
#[test]
fn a_process_that_ends_closes_its_sockets() {
    let (scheduler, net) = start(2);
    let (client, server) = connected();
    let server = net.enter(|| TcpStream::from_std(server)).unwrap();
    let owner = scheduler.spawn(async move |_: Cx| {
        let mut byte = [0];
        server.read_exact(&mut byte).await?;
        server.read_exact(&mut byte).await?;
        ok(())
    });
    let owner = owner.unwrap();
    io::Write::write_all(&mut &client, b"a").unwrap();
    scheduler.terminate(owner.pid()).unwrap();
    let mut byte = [0];
    // If the socket had an unread byte, the connection is reset.
    match io::Read::read(&mut &client, &mut byte) {
        Ok(length) => assert_eq!(length, 0),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    until("the socket is gone", || net.sockets() == 0);
}

/// Bytes that no operation has asked for move with the stream.
// pins: I6
#[test]
fn a_socket_goes_to_another_process_and_nothing_is_lost() {
    let (scheduler, net) = start(2);
    let task = scheduler.spawn(async |cx: Cx| {
        let (client, mut server) = pair().await?;
        let mut sum = 0_u64;
        for round in 0..20_u8 {
            client.write_all(&[round; 3]).await?;
            let mut byte = [0];
            server.read_exact(&mut byte).await?;
            let next = cx.spawn(async |cx: Cx<(TcpStream, ganger_proc_api::Reply<_>)>| {
                let (server, reply) = cx.recv().await.ok_or("no socket")?;
                let mut rest = [0; 2];
                server.read_exact(&mut rest).await?;
                reply.complete((server, rest));
                ok(())
            })?;
            let (back, rest) = cx.ask(next.call(|reply| (server, reply))).await?;
            server = back;
            assert_eq!(rest, [round; 2]);
            sum += 3;
        }
        ok(sum)
    });
    assert_eq!(result(task.unwrap()).as_u64(), Some(60));
    assert_eq!(net.sockets(), 0);
}

// pins: I6
#[test]
fn a_wait_that_is_dropped_has_taken_nothing() {
    let (scheduler, _) = start(2);
    let task = scheduler.spawn(async |cx: Cx| {
        let (client, server) = pair().await?;
        let mut seen = Vec::new();
        for round in 0..50_u8 {
            let mut buffer = [0; 4];
            let writes = async {
                cx.yield_now().await;
                client.write_all(&[round]).await
            };
            // If the sleep wins, the byte is ready for the next round.
            let read = cx.timeout(ms(u64::from(round % 3)), server.read(&mut buffer));
            let (read, written) = cx.join((read, writes)).await;
            written?;
            if let Ok(read) = read {
                seen.extend_from_slice(&buffer[..read?]);
            }
        }
        client.shutdown(Shutdown::Write)?;
        let mut buffer = [0; 64];
        loop {
            match server.read(&mut buffer).await? {
                0 => break,
                length => seen.extend_from_slice(&buffer[..length]),
            }
        }
        assert!(seen.iter().copied().eq(0..50));
        ok(())
    });
    result(task.unwrap());
}

// pins: I4
#[test]
fn the_halt_ends_what_waits() {
    let (scheduler, net) = start(2);
    let listener = net.enter(|| TcpListener::bind("127.0.0.1:0")).unwrap();
    let task = scheduler.spawn(async move |_: Cx| {
        listener.accept().await?;
        ok(())
    });
    let _report = scheduler.stop(Duration::ZERO);
    drop(task);
    until("the listener is gone", || net.sockets() == 0);
    // The halt comes after the last process has ended.
    let late = || net.enter(|| UdpSocket::bind("127.0.0.1:0"));
    until("the network is over", || late().is_err());
    assert_eq!(kind(late()), ErrorKind::NotConnected);
}

// pins: K9
#[test]
fn a_network_is_awaited_while_an_operation_waits() {
    let net = Net::new().unwrap();
    let listener = net.enter(|| TcpListener::bind("127.0.0.1:0")).unwrap();
    assert!(!net.is_awaited());
    let mut accept = pin!(listener.accept());
    let polled = accept
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending() && net.is_awaited());
}

// pins: I6
#[test]
fn a_thread_without_a_network_has_no_sockets() {
    assert_eq!(kind(TcpListener::bind("127.0.0.1:0")), ErrorKind::Other);
    let (_scheduler, net) = start(1);
    let named = net.enter(|| TcpListener::bind("localhost:0"));
    assert_eq!(kind(named), ErrorKind::InvalidInput);
    let two = net.enter(|| TcpListener::bind(([127, 0, 0, 1], 0)));
    assert!(two.unwrap().local_addr().unwrap().port() > 0);
}

/// Binds without a network, which leaves no file behind, so the next bind finds the address free.
// pins: I6
#[cfg(unix)]
#[test]
fn a_thread_without_a_network_leaves_no_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let refused = ganger_net::UnixListener::bind(&path);
    assert_eq!(kind(refused), ErrorKind::Other);
    let (_scheduler, net) = start(1);
    net.enter(|| ganger_net::UnixListener::bind(&path)).unwrap();
}

// pins: I6
#[test]
fn a_refused_connection_is_an_error() -> Result<(), BoxError> {
    let (scheduler, net) = start(1);
    let free = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let task = scheduler.spawn(async move |_: Cx| {
        ok(kind(TcpStream::connect(free).await) == ErrorKind::ConnectionRefused)
    });
    assert_eq!(result(task?).as_bool(), Some(true));
    assert_eq!(net.sockets(), 0);
    Ok(())
}
