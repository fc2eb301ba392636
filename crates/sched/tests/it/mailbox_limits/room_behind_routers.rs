//! Senders wait for room behind the router.

use crate::support::{PATIENCE, exit, process};
use ganger_proc_api::{
    Envelope, EnvelopeReceiver, Message, Payload, Pid, SendError, SendErrorKind, receiver_fn,
};
use ganger_relay::{Node, Router};
use ganger_sched::{Scheduler, SendAsync};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

#[derive(Default)]
struct Queue {
    envelopes: VecDeque<Envelope>,
    waiting: VecDeque<Waker>,
    is_lost: bool,
    /// How many wakers have been left.
    left: usize,
}

/// A link to another node, with a queue for two.
#[derive(Default)]
struct Link {
    queue: Mutex<Queue>,
    waits: Condvar,
}

impl EnvelopeReceiver for Link {
    fn send(&self, envelope: Envelope) -> Result<(), SendError> {
        let mut queue = self.queue.lock().unwrap();
        if queue.is_lost {
            return Err(SendError::new(SendErrorKind::NoConnection, envelope));
        }
        if queue.envelopes.len() == 2 {
            return Err(SendError::new(SendErrorKind::Full, envelope));
        }
        queue.envelopes.push_back(envelope);
        Ok(())
    }

    fn room(&self, _: Pid, waker: Waker) -> bool {
        let mut queue = self.queue.lock().unwrap();
        queue.left += 1;
        self.waits.notify_all();
        if queue.is_lost || queue.envelopes.len() < 2 {
            drop(queue);
            waker.wake();
        } else {
            queue.waiting.push_back(waker);
        }
        true
    }
}

impl Link {
    /// Takes an envelope, and wakes a sender.
    fn take(&self) -> u64 {
        let mut queue = self.queue.lock().unwrap();
        let envelope = queue.envelopes.pop_front().unwrap();
        let waker = queue.waiting.pop_front();
        drop(queue);
        waker.into_iter().for_each(Waker::wake);
        number(envelope)
    }

    fn lose(&self) {
        let mut queue = self.queue.lock().unwrap();
        queue.is_lost = true;
        let waiting = std::mem::take(&mut queue.waiting);
        drop(queue);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Waits until `count` wakers have been left.
    fn wait_for_wakers(&self, count: usize) {
        let queue = self.queue.lock().unwrap();
        let is_short = |queue: &mut Queue| queue.left < count;
        let waited = self.waits.wait_timeout_while(queue, PATIENCE, is_short);
        assert!(!waited.unwrap().1.timed_out(), "no sender waits");
    }
}

/// Counts the calls.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn number(envelope: Envelope) -> u64 {
    let payload = envelope.message.payloads.first().and_then(Payload::as_u64);
    payload.unwrap()
}

fn far(n: u64) -> Envelope {
    Message::new("n", n).to("{beta@main|1}".parse().unwrap())
}

/// Starts a scheduler with a link behind its router, which has two envelopes.
fn full() -> (Scheduler, Arc<Link>) {
    let link = Arc::new(Link::default());
    let node = Arc::new(Node::new("alpha".parse().unwrap()));
    let router = Router::new(node);
    router.set_fallback(link.clone());
    let builder = Scheduler::builder().workers(1).node("alpha");
    let scheduler = builder.router(Arc::new(router)).start().unwrap();
    for n in [1, 2] {
        scheduler.send_blocking(far(n)).unwrap();
    }
    assert_eq!(
        scheduler.send(far(3)).unwrap_err().kind,
        SendErrorKind::Full
    );
    (scheduler, link)
}

fn poll(future: &mut SendAsync, count: &Arc<Count>) -> Poll<Result<(), SendError>> {
    let waker = Waker::from(Arc::clone(count));
    Pin::new(future).poll(&mut Context::from_waker(&waker))
}

// pins: B16
#[test]
fn a_thread_waits_for_room_behind_the_router() {
    let (scheduler, link) = full();
    thread::scope(|scope| {
        let sends = scope.spawn(|| {
            scheduler.send_blocking(far(3))?;
            scheduler.send_timeout(far(4), PATIENCE)
        });
        for n in [1, 2] {
            link.wait_for_wakers(usize::try_from(n).unwrap());
            assert_eq!(link.take(), n);
        }
        sends.join().unwrap().unwrap();
    });
    assert_eq!([link.take(), link.take()], [3, 4]);
}

// pins: B16
#[test]
fn a_time_that_is_over_and_a_lost_connection_give_the_envelope_back() {
    let (scheduler, link) = full();
    for timeout in [Duration::ZERO, Duration::from_millis(1)] {
        let refused = scheduler.send_timeout(far(7), timeout).unwrap_err();
        assert_eq!(refused.kind, SendErrorKind::Timeout);
        assert_eq!(number(refused.into_envelope()), 7);
    }
    let left = link.queue.lock().unwrap().left;
    thread::scope(|scope| {
        let sends = scope.spawn(|| scheduler.send_blocking(far(8)));
        link.wait_for_wakers(left + 1);
        link.lose();
        let refused = sends.join().unwrap().unwrap_err();
        assert_eq!(refused.kind, SendErrorKind::NoConnection);
        assert_eq!(number(refused.into_envelope()), 8);
    });
}

// pins: B16
#[test]
fn a_future_waits_for_room_behind_the_router() {
    let (scheduler, link) = full();
    let (mut waits, mut leaves) = (scheduler.send_async(far(3)), scheduler.send_async(far(9)));
    let counts = [(); 2].map(|()| Arc::new(Count::default()));
    assert!(poll(&mut waits, &counts[0]).is_pending());
    assert!(poll(&mut leaves, &counts[1]).is_pending());
    assert_eq!(link.take(), 1);
    let woken = counts.each_ref().map(|it| it.0.load(Ordering::SeqCst));
    assert_eq!(woken, [1, 0]);
    assert!(matches!(poll(&mut waits, &counts[0]), Poll::Ready(Ok(()))));
    assert_eq!(number(leaves.into_envelope().unwrap()), 9);
    assert_eq!([link.take(), link.take()], [2, 3]);
}

// pins: B16
#[test]
fn a_step_that_waits_behind_the_router_ends_its_wait_when_it_is_cancelled() {
    let (scheduler, link) = full();
    for is_stopped in [false, true] {
        let left = link.queue.lock().unwrap().left;
        let (told, tell) = channel();
        let handle = scheduler.handle();
        let waits = process(move |_, _, out| {
            let refused = handle.send_blocking(far(5)).unwrap_err();
            told.send((refused.kind, number(refused.into_envelope())))?;
            out.done(());
            Ok(())
        });
        let waits = scheduler.spawn(waits).unwrap();
        link.wait_for_wakers(left + 1);
        let kind = if is_stopped {
            scheduler.begin_stop(PATIENCE);
            SendErrorKind::Stopping
        } else {
            scheduler.cancel(waits.pid(), "enough").unwrap();
            SendErrorKind::Cancelled
        };
        assert_eq!(tell.recv_timeout(PATIENCE).unwrap(), (kind, 5));
        exit(waits);
    }
}

// pins: B16
#[test]
fn a_receiver_that_takes_no_waker_refuses_at_once() {
    let always = receiver_fn(|it| Err(SendError::new(SendErrorKind::Full, it)));
    let scheduler = Scheduler::builder().router(Arc::new(always));
    let scheduler = scheduler.workers(1).start().unwrap();
    let refused = scheduler.send_blocking(far(6)).unwrap_err();
    assert_eq!(refused.kind, SendErrorKind::Full);
    assert_eq!(number(refused.into_envelope()), 6);
    let count = Arc::new(Count::default());
    let Poll::Ready(Err(refused)) = poll(&mut scheduler.send_async(far(6)), &count) else {
        panic!("it waits for what never comes");
    };
    assert_eq!(refused.kind, SendErrorKind::Full);
}
