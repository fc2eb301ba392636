//! The same code in a simulation, with faults by the seed.

use crate::echo::echo;
use crate::support::{ms, ok, shutdowns_end_waits};
use ganger_net::sim::{Faults, SimNet};
use ganger_net::{TcpListener, TcpStream, UdpSocket};
use ganger_proc_api::{BoxError, ExitReason};
use ganger_sim::{Rt, Sim};
use ganger_task::Cx;
use std::io::ErrorKind;
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

const SERVER: &str = "10.0.0.1:80";

pub(crate) fn simulate(seeds: u64, faults: &Faults, test: impl Fn(&Rt<'_>, &SimNet)) {
    Sim::new(0)
        .builder(SimNet::add_to)
        .check_seeds(seeds, |rt| {
            let net = SimNet::of(rt).unwrap();
            net.set_faults(rt.choose(1 << 30) as u64, faults.clone());
            net.enter(|| test(rt, &net));
            assert_eq!(net.sockets(), 0);
        });
}

fn text(length: usize) -> Vec<u8> {
    (0..=250).cycle().take(length).collect()
}

/// Sends all bytes back, on a number of connections.
async fn server(cx: Cx, connections: usize) -> Result<u64, BoxError> {
    let listener = TcpListener::bind(SERVER)?;
    let sum = cx.scope(async |scope| {
        let mut sum = 0;
        for _ in 0..connections {
            let (stream, _) = listener.accept().await?;
            let _echo = scope.spawn(async move |_: Cx| echo(stream).await)?;
            sum += 1;
        }
        ok(sum)
    });
    sum.await
}

/// Sends bytes, and reads them again at the same time. Returns the bytes back.
async fn client(cx: Cx, length: usize) -> Result<Vec<u8>, BoxError> {
    let stream = TcpStream::connect(SERVER).await?;
    let writes = async {
        stream.write_all(&text(length)).await?;
        stream.shutdown(Shutdown::Write)
    };
    let reads = async {
        let (mut all, mut buffer) = (Vec::new(), [0; 1000]);
        loop {
            match stream.read(&mut buffer).await {
                Ok(0) => return Ok(all),
                Ok(length) => all.extend_from_slice(&buffer[..length]),
                Err(error) => return Err((error.kind(), all)),
            }
        }
    };
    let (written, read) = cx.join((writes, reads)).await;
    match read {
        Ok(all) => {
            written?;
            assert!(all == text(length));
            Ok(all)
        }
        Err((kind, all)) => {
            assert_eq!(kind, ErrorKind::ConnectionReset);
            assert!(text(length).starts_with(&all));
            Err(kind.to_string().into())
        }
    }
}

// pins: I8
#[test]
fn what_is_late_and_comes_in_parts_arrives_in_order() {
    simulate(60, &Faults::some(), |rt, _| {
        let server = rt.spawn(|cx: Cx| server(cx, 3)).unwrap();
        rt.settle();
        let clients = [1, 700, 3000].map(|length| {
            let client = async move |cx: Cx| ok(client(cx, length).await?.len() as u64);
            rt.spawn(client).unwrap()
        });
        for (client, length) in clients.into_iter().zip([1, 700, 3000]) {
            let result = rt.wait(client).into_result().unwrap();
            assert_eq!(result.as_u64(), Some(length));
        }
        assert_eq!(rt.wait(server).into_result().unwrap().as_u64(), Some(3));
    });
}

// pins: I8
#[test]
fn connections_that_break_end_on_both_sides() {
    let mut broken = std::cell::Cell::new(0);
    let faults = Faults::some().resets(100_000);
    simulate(60, &faults, |rt, _| {
        let listening = rt.spawn(async |_: Cx| {
            let listener = TcpListener::bind(SERVER)?;
            let (stream, _) = listener.accept().await?;
            ok(echo(stream).await.is_ok())
        });
        let listening = listening.unwrap();
        rt.settle();
        let client = async move |cx: Cx| ok(client(cx, 2000).await?.len() as u64);
        let client = rt.spawn(client).unwrap();
        if let ExitReason::Failed(_) = rt.wait(client) {
            broken.set(broken.get() + 1);
        }
        assert!(matches!(rt.wait(listening), ExitReason::Done(_)));
    });
    assert!(*broken.get_mut() > 0, "no connection breaks");
}

// pins: I8
#[test]
fn a_partition_holds_what_is_sent_and_deadlines_go_on() {
    simulate(30, &Faults::some(), |rt, net| {
        let address: SocketAddr = SERVER.parse().unwrap();
        let server = rt.spawn(|cx: Cx| server(cx, 1)).unwrap();
        rt.settle();
        net.partition(address, true);
        let begin = rt.now();
        let late = rt.spawn(async |_: Cx| {
            let connects = TcpStream::connect_within(SERVER, ms(500)).await;
            ok(connects.unwrap_err().kind() == ErrorKind::TimedOut)
        });
        let late = rt.wait(late.unwrap()).into_result().unwrap();
        assert_eq!(late.as_bool(), Some(true));
        let took = rt.now() - begin;
        assert!(took >= ms(500) && took < ms(520), "{took:?}");
        let client = rt.spawn(async |cx: Cx| {
            let opens = TcpStream::connect(SERVER);
            let stream = cx.timeout(Duration::from_secs(5), opens).await;
            ok(stream.is_err())
        });
        assert_eq!(
            rt.wait(client.unwrap()).into_result().unwrap().as_bool(),
            Some(true)
        );
        net.partition(address, false);
        rt.settle();
        // An abandoned connection is refused, or ends at once and counts for the server.
        let _ = rt.cancel(server.pid(), "enough");
        rt.wait(server);
    });
}

// pins: I8
#[test]
fn addresses_refusals_and_ends_are_those_of_tcp() {
    simulate(30, &Faults::some(), |rt, net| {
        let task = rt.spawn(async |cx: Cx| {
            let refused = TcpStream::connect("10.0.0.2:80").await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
            let listener = TcpListener::bind(SERVER)?;
            let again = TcpListener::bind(SERVER).unwrap_err();
            assert_eq!(again.kind(), ErrorKind::AddrInUse);
            let udp = std::net::UdpSocket::bind("127.0.0.1:0")?;
            let real = UdpSocket::from_std(udp).unwrap_err();
            assert_eq!(real.kind(), ErrorKind::Unsupported);
            let client = TcpStream::connect(SERVER).await?;
            let (server, address) = listener.accept().await?;
            assert_eq!(client.local_addr()?, address);
            assert_eq!(client.peer_addr()?, server.local_addr()?);
            // A closed half leaves the other half open.
            client.shutdown(Shutdown::Write)?;
            let mut byte = [0];
            assert_eq!(server.read(&mut byte).await?, 0);
            server.write_all(b"a").await?;
            assert_eq!(client.peek(&mut byte).await?, 1);
            // Unread bytes at the close of an end break the connection.
            drop(client);
            cx.sleep(ms(50)).await?;
            let end = server.read(&mut byte).await.unwrap_err();
            assert_eq!(end.kind(), ErrorKind::ConnectionReset);
            ok(())
        });
        rt.wait(task.unwrap()).into_result().unwrap();
        assert_eq!(net.sockets(), 0);
    });
}

/// Writes wait while the peer does not read.
// pins: I8
#[test]
fn a_simulated_connection_has_room_for_so_much() {
    simulate(5, &Faults::default(), |rt, _| {
        let task = rt.spawn(async |cx: Cx| {
            let listener = TcpListener::bind(SERVER)?;
            let client = TcpStream::connect(SERVER).await?;
            let (server, _) = listener.accept().await?;
            client.set_write_deadline(Some(ms(10)));
            let late = client.write_all(&text(100_000)).await.unwrap_err();
            assert_eq!(late.kind(), ErrorKind::TimedOut);
            client.set_write_deadline(None);
            let mut buffer = vec![0; 1 << 16];
            server.read_exact(&mut buffer).await?;
            assert!(buffer == text(1 << 16));
            let both = cx.join((client.write_all(b"a"), server.read_exact(&mut buffer[..1])));
            let (written, read) = both.await;
            written?;
            read?;
            ok(())
        });
        rt.wait(task.unwrap()).into_result().unwrap();
    });
}

// pins: I8
#[test]
fn names_of_hosts_are_those_of_the_simulation() {
    simulate(10, &Faults::some(), |rt, net| {
        let here = std::net::Ipv4Addr::new(10, 0, 0, 1).into();
        let nowhere = std::net::Ipv4Addr::new(10, 0, 0, 9).into();
        net.set_host("db", &[nowhere, here]);
        let task = rt.spawn(async |cx: Cx| {
            let listener = TcpListener::bind(SERVER)?;
            let (client, server) = cx
                .join((TcpStream::connect("db:80"), listener.accept()))
                .await;
            client?;
            server?;
            let none = TcpStream::connect("cache:80").await.unwrap_err();
            assert_eq!(none.kind(), ErrorKind::NotFound);
            ok(())
        });
        rt.wait(task.unwrap()).into_result().unwrap();
    });
}

/// Resets a simulated connection by an abort, as on connections of the system.
// pins: I8
#[test]
fn a_simulated_abort_is_a_reset() {
    simulate(5, &Faults::some(), |rt, _| {
        let task = rt.spawn(async |cx: Cx| {
            let listener = TcpListener::bind(SERVER)?;
            let (client, server) = cx
                .join((TcpStream::connect(SERVER), listener.accept()))
                .await;
            let (client, server) = (client?, server?.0);
            server.abort();
            let error = client.read(&mut [0]).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
            ok(())
        });
        rt.wait(task.unwrap()).into_result().unwrap();
    });
}

/// Ends the waits of the same side by a shutdown, as on a connection of the system.
// pins: I8
#[test]
fn a_simulated_shutdown_ends_what_waits_on_the_same_side() {
    simulate(5, &Faults::some(), |rt, _| {
        let task = rt.spawn(async |cx: Cx| {
            let listener = TcpListener::bind(SERVER)?;
            let client = Arc::new(TcpStream::connect(SERVER).await?);
            let (_server, _) = listener.accept().await?;
            let of_reader = Arc::clone(&client);
            // A reader in a task of its own is looked at only when the shutdown wakes it.
            let reads = cx.scope(async |scope| {
                let _reader = scope.spawn(async move |_: Cx| {
                    assert_eq!(of_reader.read(&mut [0]).await?, 0);
                    ok(())
                })?;
                cx.sleep(Duration::from_secs(1)).await?;
                client.shutdown(Shutdown::Read)?;
                ok(())
            });
            reads.await?;
            shutdowns_end_waits(&cx, &client, &text(100_000)).await
        });
        rt.wait(task.unwrap()).into_result().unwrap();
    });
}
