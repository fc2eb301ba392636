//! Accepting up to a limit, slow clients, and clients that send faster than the server reads.

use crate::support::{PATIENCE, connect, connected, ms, ok, result, start, until};
use ganger_net::{TcpListener, TcpStream, commands};
use ganger_proc_api::{Actor, BoxError, Completion, Context, StepOutput, StepResult};
use ganger_sched::{Address, ContextExt};
use ganger_task::Cx;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

// pins: I7
#[test]
fn no_more_connections_than_the_limit_are_open_and_a_drain_waits_for_them() {
    const MOST: usize = 5;
    let (scheduler, net) = start(2);
    let incoming = net.enter(|| TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = incoming.local_addr().unwrap();
    let incoming = incoming.incoming(MOST);
    let drained = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&drained);
    let server = scheduler.spawn(async move |cx: Cx| {
        let mut most = 0;
        while let Ok(accepted) = cx.until_cancelled(incoming.accept()).await {
            let (stream, _) = accepted?;
            most = most.max(incoming.open());
            let ended = Arc::clone(&seen);
            cx.spawn(async move |_: Cx| {
                stream.write_all(b"a").await?;
                // Until the client is gone.
                let mut byte = [0];
                let _ = stream.read(&mut byte).await?;
                // Ordering: Relaxed: a count alone.
                ended.fetch_add(1, Ordering::Relaxed);
                ok(())
            })?;
        }
        incoming.drain().await;
        // Ordering: Relaxed: a count alone.
        assert_eq!(seen.load(Ordering::Relaxed), 20 + MOST);
        ok(most as u64)
    });
    let server = server.unwrap();
    let mut clients: Vec<_> = (0..20 + MOST).map(|_| connect(address)).collect();
    let mut byte = [0];
    for mut client in clients.drain(..20) {
        // Each client is served after an earlier client has gone.
        client.read_exact(&mut byte).unwrap();
    }
    for client in &mut clients {
        client.read_exact(&mut byte).unwrap();
    }
    scheduler.cancel(server.pid(), "enough").unwrap();
    let refused = || {
        let late = std::net::TcpStream::connect(address);
        late.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    };
    until("the listener is closed", refused);
    drop(clients);
    assert_eq!(result(server).as_u64(), Some(MOST as u64));
    assert_eq!(net.sockets(), 0);
}

/// Stops the server, which drains: all processes are asked to finish. The deadline terminates the
/// rest.
// pins: I7
#[test]
fn a_drain_lasts_no_longer_than_the_schedulers_deadline() {
    for ends in [true, false] {
        let (scheduler, net) = start(2);
        let listener = net.enter(|| TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let server = scheduler.spawn(async move |cx: Cx| {
            let incoming = listener.incoming(10);
            while let Ok(accepted) = cx.until_cancelled(incoming.accept()).await {
                let (stream, _) = accepted?;
                cx.spawn(async move |cx: Cx| {
                    stream.write_all(b"a").await?;
                    let mut byte = [0];
                    if ends {
                        // The process answers, and goes.
                        let _ = cx.until_cancelled(stream.read(&mut byte)).await;
                        stream.write_all(b"b").await?;
                    } else {
                        stream.read_exact(&mut byte).await?;
                    }
                    ok(())
                })?;
            }
            incoming.drain().await;
            ok(())
        });
        let mut client = connect(address);
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        let report = scheduler
            .stop(if ends { PATIENCE } else { ms(50) })
            .unwrap();
        let ended = (report.completed, report.forced);
        assert_eq!(ended, if ends { (2, 0) } else { (0, 2) });
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, if ends { &b"b"[..] } else { b"" });
        drop(server);
        until("no socket is left", || net.sockets() == 0);
    }
}

/// Sends silent clients away at their deadline, and serves another client meanwhile.
// pins: I6
#[test]
fn silent_clients_are_sent_away_and_keep_no_other_waiting() {
    let (scheduler, net) = start(2);
    let listener = net.enter(|| TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let server = scheduler.spawn(async move |cx: Cx| {
        while let Ok(accepted) = cx.until_cancelled(listener.accept()).await {
            let (stream, _) = accepted?;
            cx.spawn(async move |_: Cx| {
                let mut byte = [0];
                loop {
                    stream.set_read_deadline(Some(ms(100)));
                    stream.read_exact(&mut byte).await?;
                    stream.write_all(&byte).await?;
                }
                #[allow(unreachable_code, reason = "the type of the result")]
                ok(())
            })?;
        }
        ok(())
    });
    let silent: Vec<_> = (0..200).map(|_| connect(address)).collect();
    let mut byte = [0];
    let talking = connect(address);
    for round in 0..20 {
        (&talking).write_all(&[round]).unwrap();
        (&talking).read_exact(&mut byte).unwrap();
        assert_eq!(byte, [round]);
    }
    for mut client in silent {
        // A signal of another test interrupts the read.
        assert_eq!(client.read_to_end(&mut Vec::new()).unwrap(), 0);
    }
    drop(talking);
    scheduler
        .cancel(server.as_ref().unwrap().pid(), "enough")
        .unwrap();
    result(server.unwrap());
    until("no socket is left", || net.sockets() == 0);
}

/// Checks whether a client can only fill the buffers of the system, while the process does not
/// read.
// pins: I6
#[test]
fn what_no_operation_asks_for_is_not_read() {
    let (scheduler, net) = start(2);
    let (client, server) = connected();
    let server = net.enter(|| TcpStream::from_std(server)).unwrap();
    client.set_nonblocking(true).unwrap();
    let (mut sent, mut refused) = (0, 0);
    while refused < 1000 {
        match (&client).write(&[7; 1 << 16]) {
            Ok(length) => sent += length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => refused += 1,
            Err(error) => panic!("{error}"),
        }
        assert!(sent < 1 << 27, "the client sends without end");
    }
    client.shutdown(Shutdown::Write).unwrap();
    let reader = scheduler.spawn(async move |_: Cx| {
        let (mut sum, mut buffer) = (0, [0; 10_000]);
        loop {
            match server.read(&mut buffer).await? {
                0 => return ok(sum as u64),
                length => sum += length,
            }
        }
    });
    assert_eq!(result(reader.unwrap()).as_u64(), Some(sent as u64));
}

/// A state machine: accepts, and gets three packets at a time.
struct Packets {
    listener: Arc<TcpListener>,
    stream: Option<Arc<TcpStream>>,
    me: Option<Address<Said>>,
    seen: Vec<u8>,
    rounds: u64,
}

enum Said {
    Begin(Address<Said>),
    Packet(Vec<u8>),
}

const ACCEPT: u64 = 1;
const ACTIVE: u64 = 2;
const WRITE: u64 = 3;

impl Packets {
    fn of(listener: TcpListener) -> Self {
        Self {
            listener: Arc::new(listener),
            stream: None,
            me: None,
            seen: Vec::new(),
            rounds: 0,
        }
    }

    fn go_on(&self, out: &mut StepOutput) {
        if let (Some(stream), Some(me)) = (&self.stream, &self.me) {
            let me = me.clone();
            let deliver = move |bytes| {
                // Fails if the process has ended.
                let _ = me.send(Said::Packet(bytes));
            };
            out.ask(commands::active(stream, 3, 4, deliver), ACTIVE);
        }
    }
}

impl Actor for Packets {
    type Message = Said;

    fn receive(&mut self, _: &Context, said: Said, out: &mut StepOutput) -> StepResult {
        match said {
            Said::Begin(me) => {
                self.me = Some(me);
                out.ask(commands::accept(&self.listener), ACCEPT);
            }
            Said::Packet(bytes) => self.seen.extend(bytes),
        }
        Ok(())
    }

    fn completed(&mut self, _: &Context, it: Completion, out: &mut StepOutput) -> StepResult {
        match it.tag {
            ACCEPT => {
                let accepted: io::Result<(TcpStream, std::net::SocketAddr)> = it.take()?;
                self.stream = Some(Arc::new(accepted?.0));
                self.go_on(out);
            }
            ACTIVE => {
                self.rounds += 1;
                let is_end: io::Result<bool> = it.take()?;
                match &self.stream {
                    Some(stream) if is_end? => {
                        out.ask(commands::write(stream, self.seen.clone()), WRITE);
                    }
                    _ => self.go_on(out),
                }
            }
            _ => {
                it.take::<io::Result<()>>()??;
                out.done(self.rounds);
            }
        }
        Ok(())
    }
}

// pins: I6
#[test]
fn a_state_machine_gets_what_it_asks_for_and_no_more() -> Result<(), BoxError> {
    let (scheduler, net) = start(2);
    let listener = net.enter(|| TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?;
    let packets = scheduler.spawn(Packets::of(listener))?;
    packets.send(Said::Begin(packets.address().clone()))?;
    let mut client = connect(address);
    client.write_all(b"abcdefghijklmnopqrstuvwxyz")?;
    client.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    client.read_to_end(&mut answer)?;
    assert_eq!(answer, b"abcdefghijklmnopqrstuvwxyz");
    // 26 bytes; a round takes at most 12.
    assert!(result(packets).as_u64() >= Some(3));
    assert_eq!(net.sockets(), 0);
    Ok(())
}

/// Ends a command under way with its process.
// pins: I4
#[test]
fn a_command_ends_with_its_process() -> Result<(), BoxError> {
    let (scheduler, net) = start(2);
    let listener = net.enter(|| TcpListener::bind("127.0.0.1:0"))?;
    let packets = scheduler.spawn(Packets::of(listener))?;
    packets.send(Said::Begin(packets.address().clone()))?;
    assert_eq!(net.sockets(), 1);
    scheduler.terminate(packets.pid())?;
    until("the listener is gone", || net.sockets() == 0);
    Ok(())
}

/// Datagrams, sockets with paths, and joined halves.
// pins: I6
#[test]
fn udp_unix_and_halves_work() {
    let (scheduler, net) = start(2);
    let (send, receive) = mpsc::channel();
    let task = scheduler.spawn(async move |cx: Cx| {
        let one = ganger_net::UdpSocket::bind("127.0.0.1:0")?;
        let two = ganger_net::UdpSocket::bind("127.0.0.1:0")?;
        one.connect(two.local_addr()?)?;
        let mut buffer = [0; 16];
        let received = cx
            .join((two.recv_from(&mut buffer), one.send(b"udp")))
            .await;
        let (length, from) = received.0?;
        assert_eq!((&buffer[..length], from), (&b"udp"[..], one.local_addr()?));
        #[cfg(unix)]
        {
            let folder = tempfile::tempdir()?;
            let path = folder.path().join("socket");
            let listener = ganger_net::UnixListener::bind(&path)?;
            let client = ganger_net::UnixStream::connect(&path).await?;
            let (server, _) = listener.accept().await?;
            let (reads, writes) = server.split();
            client.write_all(b"unix").await?;
            reads.read_exact(&mut buffer[..4]).await?;
            let server = reads.reunite(writes).map_err(|_| "two streams")?;
            let (reads, writes) = server.split();
            drop(writes);
            // The peer sees an end, and can still write.
            assert_eq!(client.read(&mut buffer).await?, 0);
            client.write_all(b"more").await?;
            reads.read_exact(&mut buffer[..4]).await?;
            assert_eq!(&buffer[..4], b"more");
        }
        send.send(())?;
        ok(())
    });
    result(task.unwrap());
    receive.recv_timeout(PATIENCE).unwrap();
    assert_eq!(net.sockets(), 0);
}
