//! UDP, sockets with paths, and signals in a simulation.

use crate::simulated::simulate;
use crate::support::{ms, ok};
use ganger_net::UdpSocket;
use ganger_net::sim::Faults;
use ganger_task::Cx;
use std::cell::Cell;
use std::io::ErrorKind;
use std::net::SocketAddr;

const HERE: &str = "10.0.0.1:53";
const THERE: &str = "10.0.0.2:53";

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Sends packets in order. Returns the packets of the next second.
async fn packets(count: u8) -> Result<Vec<u8>, ganger_proc_api::BoxError> {
    let (here, there) = (UdpSocket::bind(HERE)?, UdpSocket::bind(THERE)?);
    for number in 0..count {
        assert_eq!(here.send_to(&[number, 7], THERE).await?, 2);
    }
    there.set_read_deadline(Some(ms(1000)));
    let (mut seen, mut buffer) = (Vec::new(), [0; 10]);
    loop {
        match there.recv_from(&mut buffer).await {
            Ok(packet) => {
                assert_eq!(packet, (2, address(HERE)));
                assert_eq!(buffer[1], 7);
                seen.push(buffer[0]);
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::TimedOut);
                return Ok(seen);
            }
        }
    }
}

// pins: I8
#[test]
fn packets_come_in_any_order_and_each_once_without_faults() {
    let disordered = Cell::new(0);
    simulate(30, &Faults::some(), |rt, _| {
        let task = rt.spawn(async |_: Cx| packets(20).await.map(ganger_proc_api::Payload::any));
        let mut seen = rt.wait(task.unwrap()).take::<Vec<u8>>().unwrap();
        if !seen.is_sorted() {
            disordered.set(disordered.get() + 1);
        }
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..20));
    });
    assert!(disordered.get() > 20, "{}", disordered.get());
}

// pins: I8
#[test]
fn packets_are_lost_and_doubled_as_often_as_is_said() {
    let (lost, doubled) = (Cell::new(0), Cell::new(0));
    let faults = Faults::some().losses(200_000).duplicates(200_000);
    simulate(50, &faults, |rt, _| {
        let task = rt.spawn(async |_: Cx| packets(20).await.map(ganger_proc_api::Payload::any));
        let seen = rt.wait(task.unwrap()).take::<Vec<u8>>().unwrap();
        for number in 0..20 {
            match seen.iter().filter(|&&it| it == number).count() {
                0 => lost.set(lost.get() + 1),
                1 => {}
                2 => doubled.set(doubled.get() + 1),
                more => panic!("{more} times"),
            }
        }
    });
    // Of 1000 packets 200 are lost, and 160 of the rest come twice.
    assert!((100..300).contains(&lost.get()), "{}", lost.get());
    assert!((80..240).contains(&doubled.get()), "{}", doubled.get());
}

// pins: I8
#[test]
fn packets_do_not_pass_a_partition() {
    simulate(20, &Faults::some(), |rt, net| {
        for site in [HERE, THERE] {
            net.partition(address(site), true);
            let task = rt.spawn(async |_: Cx| ok(packets(5).await?.len()));
            let seen = rt.wait(task.unwrap()).into_result().unwrap();
            assert_eq!(seen.as_u64(), Some(0));
            net.partition(address(site), false);
        }
    });
}

// pins: I8
#[test]
fn addresses_and_peers_are_those_of_udp() {
    simulate(20, &Faults::some(), |rt, _| {
        let task = rt.spawn(async |cx: Cx| {
            let here = UdpSocket::bind(HERE)?;
            assert_eq!(here.local_addr()?, address(HERE));
            let again = UdpSocket::bind(HERE).unwrap_err();
            assert_eq!(again.kind(), ErrorKind::AddrInUse);
            let alone = here.send(b"a").await.unwrap_err();
            assert_eq!(alone.kind(), ErrorKind::NotConnected);
            let (one, other) = (
                UdpSocket::bind("10.0.0.3:0")?,
                UdpSocket::bind("10.0.0.3:0")?,
            );
            assert_ne!(one.local_addr()?, other.local_addr()?);
            // The socket ignores packets from strangers.
            other.send_to(b"before", HERE).await?;
            cx.sleep(ms(50)).await?;
            here.connect(one.local_addr()?)?;
            other.send_to(b"after", HERE).await?;
            one.send_to(b"long packet", HERE).await?;
            let mut buffer = [0; 4];
            assert_eq!(here.recv(&mut buffer).await?, 4);
            assert_eq!(&buffer, b"long");
            here.send(b"back").await?;
            let (length, from) = one.recv_from(&mut buffer).await?;
            assert_eq!((&buffer[..length], from), (&b"back"[..], address(HERE)));
            here.set_read_deadline(Some(ms(100)));
            let none = here.recv(&mut buffer).await.unwrap_err();
            assert_eq!(none.kind(), ErrorKind::TimedOut);
            let long = one.send_to(&[0; 70_000], HERE).await.unwrap_err();
            assert_eq!(long.kind(), ErrorKind::InvalidInput);
            // The address has no socket.
            one.send_to(b"a", "10.0.0.9:1").await?;
            ok(())
        });
        rt.wait(task.unwrap()).into_result().unwrap();
    });
}

#[cfg(unix)]
mod unix {
    use super::*;
    use ganger_net::{
        Child, Signal, SignalKind, UnixListener, UnixStream, commands, shutdown_signal,
    };
    use ganger_proc_api::{BoxError, Event, process_fn};
    use std::net::Shutdown;
    use std::path::Path;
    use std::sync::Arc;

    const PATH: &str = "/run/server";

    // pins: I8
    #[test]
    fn sockets_with_paths_carry_what_is_sent() {
        simulate(30, &Faults::some(), |rt, _| {
            let task = rt.spawn(async |cx: Cx| {
                let refused = UnixStream::connect(PATH).await.unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
                let listener = UnixListener::bind(PATH)?;
                let again = UnixListener::bind(PATH).unwrap_err();
                assert_eq!(again.kind(), ErrorKind::AddrInUse);
                let client = UnixStream::connect(PATH).await?;
                let (server, address) = listener.accept().await?;
                assert!(address.is_unnamed());
                let (one, other) = UnixStream::pair()?;
                for (from, to) in [(&client, &server), (&server, &client), (&one, &other)] {
                    let text: Vec<u8> = (0..=250).cycle().take(3000).collect();
                    let mut read = vec![0; text.len()];
                    let both = cx.join((from.write_all(&text), to.read_exact(&mut read)));
                    let (written, filled) = both.await;
                    written?;
                    filled?;
                    assert!(read == text);
                }
                one.shutdown(Shutdown::Write)?;
                assert_eq!(other.read(&mut [0]).await?, 0);
                drop(listener);
                // The socket has left no file.
                UnixListener::bind(PATH)?;
                ok(())
            });
            rt.wait(task.unwrap()).into_result().unwrap();
        });
    }

    // pins: I8
    #[test]
    fn sockets_with_paths_are_cut_and_broken() {
        simulate(20, &Faults::some(), |rt, net| {
            let (send, sockets) = std::sync::mpsc::channel();
            let task = rt.spawn(async move |_: Cx| {
                let listener = UnixListener::bind(PATH)?;
                let client = UnixStream::connect(PATH).await?;
                let (server, _) = listener.accept().await?;
                send.send((client, server, listener))?;
                ok(())
            });
            rt.wait(task.unwrap()).into_result().unwrap();
            let (client, server, listener) = sockets.recv().unwrap();
            net.partition(Path::new(PATH), true);
            let task = rt.spawn(async move |_: Cx| {
                client.write_all(b"a").await?;
                server.set_read_deadline(Some(ms(500)));
                let cut = server.read(&mut [0]).await.unwrap_err();
                assert_eq!(cut.kind(), ErrorKind::TimedOut);
                server.set_read_deadline(None);
                ok(ganger_proc_api::Payload::any((client, server)))
            });
            type Both = (UnixStream, UnixStream);
            let (client, server) = rt.wait(task.unwrap()).take::<Both>().unwrap();
            net.partition(Path::new(PATH), false);
            let task = rt.spawn(async move |_: Cx| {
                assert_eq!(server.read(&mut [0]).await?, 1);
                let broken = server.read(&mut [0]).await.unwrap_err();
                assert_eq!(broken.kind(), ErrorKind::ConnectionReset);
                let broken = client.read(&mut [0]).await.unwrap_err();
                assert_eq!(broken.kind(), ErrorKind::ConnectionReset);
                ok(())
            });
            rt.settle();
            net.reset(Path::new(PATH));
            rt.wait(task.unwrap()).into_result().unwrap();
            drop(listener);
        });
    }

    // pins: I9
    #[test]
    fn signals_come_when_the_test_raises_them() {
        simulate(20, &Faults::default(), |rt, net| {
            let task = rt.spawn(async |cx: Cx<()>| {
                let hangup = Signal::new(SignalKind::HANGUP)?;
                let terminate = Signal::new(SignalKind::TERMINATE)?;
                hangup.recv().await?;
                cx.recv().await;
                hangup.set_deadline(Some(ms(10)));
                // Two signals before the next `recv` count once.
                hangup.recv().await?;
                let none = hangup.recv().await.unwrap_err();
                assert_eq!(none.kind(), ErrorKind::TimedOut);
                terminate.set_deadline(Some(ms(10)));
                let none = terminate.recv().await.unwrap_err();
                assert_eq!(none.kind(), ErrorKind::TimedOut);
                let child = Child::spawn(&mut std::process::Command::new("true"));
                assert_eq!(child.unwrap_err().kind(), ErrorKind::Unsupported);
                ok(())
            });
            rt.settle();
            net.raise(SignalKind::HANGUP);
            rt.settle();
            net.raise(SignalKind::HANGUP);
            net.raise(SignalKind::HANGUP);
            rt.settle();
            let task = task.unwrap();
            task.send(()).unwrap();
            rt.wait(task).into_result().unwrap();
        });
    }

    // pins: I9
    #[test]
    fn a_program_is_asked_to_end_by_either_signal() {
        for signal in [SignalKind::INTERRUPT, SignalKind::TERMINATE] {
            simulate(5, &Faults::default(), |rt, net| {
                let task = rt.spawn(async |_: Cx| {
                    shutdown_signal().await?;
                    ok(())
                });
                let task = task.unwrap();
                rt.settle();
                net.raise(SignalKind::HANGUP);
                rt.settle();
                assert!(!task.is_finished());
                net.raise(signal);
                rt.wait(task).into_result().unwrap();
            });
        }
    }

    // pins: I9
    #[test]
    fn a_state_machine_is_told_of_a_simulated_signal() {
        simulate(5, &Faults::default(), |rt, net| {
            let signal = Arc::new(Signal::new(SignalKind::INTERRUPT).unwrap());
            let waits = process_fn(move |_, events, out| {
                match events.next() {
                    Some(Event::Completion(answer)) => {
                        answer.take::<std::io::Result<()>>()??;
                        out.done("told");
                    }
                    _ => {
                        let _asked = out.ask(commands::signal(&signal), 1);
                    }
                }
                Ok::<(), BoxError>(())
            });
            let waits = rt.spawn(waits).unwrap();
            rt.settle();
            net.raise(SignalKind::INTERRUPT);
            let told = rt.wait(waits).into_result().unwrap();
            assert_eq!(told.as_str(), Some("told"));
        });
    }
}
