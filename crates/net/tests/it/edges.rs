//! Rare events on a connection: urgent data, writes of many slices, wakers with destructors, and
//! ends by the waiting side.

use crate::support::{PATIENCE, connected, ok, pair, result, shutdowns_end_waits, start};
use futures_util::AsyncWriteExt;
use futures_util::io::AsyncRead;
use ganger_net::{Closer, Net, TcpStream, commands};
use ganger_proc_api::{Actor, Completion, Context as ProcessContext, StepOutput, StepResult};
use ganger_sched::ContextExt;
use ganger_task::Cx;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

/// Returns after the network has dispatched all earlier events.
async fn all_is_heard(cx: &Cx) -> io::Result<()> {
    let (client, server) = pair().await?;
    let mut byte = [0];
    let (read, written) = cx
        .join((server.read(&mut byte), client.write_all(b"a")))
        .await;
    written.and(read.map(drop))
}

/// Reads on after urgent data, which cuts a read short.
// pins: I6
#[cfg(unix)]
#[test]
fn what_is_behind_urgent_data_is_read() {
    let (scheduler, _) = start(2);
    let (client, server) = connected();
    let task = scheduler.spawn(async move |cx: Cx| {
        let server = TcpStream::from_std(server)?;
        server.set_read_deadline(Some(PATIENCE));
        (&client).write_all(b"abc")?;
        socket2::SockRef::from(&client).send_out_of_band(b"!")?;
        (&client).write_all(b"def")?;
        all_is_heard(&cx).await?;
        let mut buffer = [0; 64];
        let mut seen = Vec::new();
        while !seen.ends_with(b"f") {
            let length = server.read(&mut buffer).await?;
            seen.extend_from_slice(&buffer[..length]);
        }
        ok(String::from_utf8(seen)?)
    });
    assert_eq!(result(task.unwrap()).as_str(), Some("abcdef"));
}

/// Writes more slices than the system takes at a time, although the system has room for more.
// pins: I6
#[test]
fn a_write_of_many_slices_goes_on() {
    const MANY: usize = 5_000;
    let (scheduler, _) = start(2);
    let (mut client, server) = connected();
    let task = scheduler.spawn(async move |cx: Cx| {
        let mut server = TcpStream::from_std(server)?;
        server.set_write_deadline(Some(PATIENCE));
        all_is_heard(&cx).await?;
        let (all, mut written) = (vec![7; MANY], 0);
        while written < MANY {
            let slices: Vec<_> = all[written..].chunks(1).map(IoSlice::new).collect();
            written += server.write_vectored(&slices).await?;
        }
        ok(())
    });
    let mut all = Vec::new();
    result(task.unwrap());
    client.read_to_end(&mut all).unwrap();
    assert_eq!(all, [7; MANY]);
}

/// Closes a socket in its drop.
struct Closes(Closer);

impl Wake for Closes {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Closes {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Closes the socket in the destructor of a waker, which is foreign code.
// pins: I6
#[test]
fn a_waker_that_closes_the_socket_when_it_is_replaced_does_so() {
    let net = Net::new().unwrap();
    let (_client, server) = connected();
    let mut stream = net.enter(|| TcpStream::from_std(server)).unwrap();
    let (send, ends) = mpsc::channel();
    thread::spawn(move || {
        let closes = Waker::from(Arc::new(Closes(stream.closer())));
        let mut poll = |waker: Waker| {
            let context = &mut Context::from_waker(&waker);
            Pin::new(&mut stream).poll_read(context, &mut [0])
        };
        assert!(poll(closes).is_pending());
        assert!(poll(Waker::noop().clone()).is_pending());
        let end = poll(Waker::noop().clone());
        send.send(matches!(end, Poll::Ready(Err(_)))).unwrap();
    });
    assert_eq!(ends.recv_timeout(PATIENCE), Ok(true));
}

/// Ends a wait from the waiting side itself, as another process may do.
// pins: I6
#[test]
fn a_shutdown_ends_what_waits_on_the_same_side() {
    let (scheduler, _) = start(2);
    let task = scheduler.spawn(async move |cx: Cx| {
        let (client, _server) = pair().await?;
        shutdowns_end_waits(&cx, &client, &vec![0; 1 << 25]).await
    });
    result(task.unwrap());
}

/// Closes a descriptor whose read still waits, and reuses its number for a new descriptor.
// pins: I6
#[test]
fn a_read_of_a_closed_socket_takes_nothing_of_the_next_one() {
    let (scheduler, net) = start(2);
    let task = scheduler.spawn(async move |cx: Cx| {
        for round in 0..300_u32 {
            let (victim, other) = pair().await?;
            let closer = victim.closer();
            let closes = thread::spawn(move || closer.close());
            let mut none = [0; 4];
            let takes = async { victim.read(&mut none).await };
            let next = async {
                let (one, two) = pair().await?;
                one.write_all(&round.to_le_bytes()).await?;
                let mut bytes = [0; 4];
                two.read_exact(&mut bytes).await?;
                io::Result::Ok(u32::from_le_bytes(bytes))
            };
            let (taken, next) = cx.join((takes, next)).await;
            assert_eq!(taken.unwrap_err().kind(), ErrorKind::NotConnected);
            assert_eq!(next?, round);
            closes.join().unwrap();
            drop(other);
        }
        ok(())
    });
    result(task.unwrap());
    assert_eq!(net.sockets(), 0);
}

/// Reads all bytes, each by itself. Notes how often another process has run meanwhile.
struct Delivered {
    stream: Arc<TcpStream>,
    ran: Arc<AtomicUsize>,
    ran_before_the_last: Arc<AtomicUsize>,
}

impl Actor for Delivered {
    type Message = ();

    fn receive(&mut self, ctx: &ProcessContext, (): (), out: &mut StepOutput) -> StepResult {
        let ran = Arc::clone(&self.ran);
        ctx.spawn(async move |_: Cx| {
            // Ordering: Relaxed: a count alone.
            ran.fetch_add(1, Ordering::Relaxed);
            ok(())
        })?;
        let (ran, seen) = (Arc::clone(&self.ran), Arc::clone(&self.ran_before_the_last));
        // Ordering: Relaxed: numbers alone.
        let deliver = move |_| seen.store(ran.load(Ordering::Relaxed), Ordering::Relaxed);
        out.ask(commands::active(&self.stream, 1_000, 1, deliver), 0);
        Ok(())
    }

    fn completed(&mut self, _: &ProcessContext, _: Completion, out: &mut StepOutput) -> StepResult {
        out.done(());
        Ok(())
    }
}

/// Polls a yield on the thread that wakes it.
// pins: I6
#[test]
fn a_command_on_a_socket_that_is_always_ready_keeps_no_worker() {
    let (scheduler, net) = start(1);
    let (mut client, server) = connected();
    client.write_all(&[7; 1_000]).unwrap();
    let seen = Arc::new(AtomicUsize::new(0));
    let delivered = Delivered {
        stream: Arc::new(net.enter(|| TcpStream::from_std(server)).unwrap()),
        ran: Arc::default(),
        ran_before_the_last: Arc::clone(&seen),
    };
    let delivered = scheduler.spawn(delivered).unwrap();
    delivered.send(()).unwrap();
    result(delivered);
    // Ordering: Relaxed: a number alone.
    assert_eq!(seen.load(Ordering::Relaxed), 1);
}
