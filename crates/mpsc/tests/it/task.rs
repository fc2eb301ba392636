//! Receiving in a task: wakers, wake-ups, and ends. `GANGER_STRESS=10` makes the long tests ten
//! times as long.
#![cfg(all(feature = "async", not(ganger_loom)))]

use crate::polling::Task;
use crate::support::{LOST, Order, scaled};
use futures_core::{FusedStream, Stream};
use ganger_mpsc::{AsyncReceiver, Receiver, RecvError, Sender, TryRecvError, bounded, channel};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker};
use std::thread;

/// Runs a future on this thread. Returns its output, and how often it had to sleep.
fn block_on<F: Future>(task: &Arc<Task>, future: F) -> (F::Output, usize) {
    let mut future = pin!(future);
    let waker = task.waker();
    let mut sleeps = 0;
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return (output, sleeps),
            Poll::Pending => {
                sleeps += 1;
                task.sleep();
            }
        }
    }
}

/// Returns an asynchronous channel whose receiver waits.
fn parked(task: &Arc<Task>) -> (Sender<u32>, AsyncReceiver<u32>) {
    let (sender, receiver) = channel();
    let mut receiver = receiver.into_async();
    assert!(task.poll(&mut receiver).is_pending());
    (sender, receiver)
}

#[test]
fn items_come_in_order_and_then_the_end() {
    let (sender, receiver) = channel();
    let mut receiver = receiver.into_async();
    sender.send_all(1..=5).unwrap();
    let receive = async move {
        assert_eq!(receiver.recv().await, Ok(1));
        assert_eq!(receiver.try_recv(), Ok(2));
        assert_eq!((receiver.len(), receiver.is_empty()), (3, false));
        assert!(receiver.drain().into_iter().eq(3..=5));
        assert_eq!((receiver.len(), receiver.is_empty()), (0, true));
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        sender.send(6).unwrap();
        assert!(!receiver.is_closed());
        drop(sender);
        assert!(receiver.is_closed());
        assert_eq!(receiver.recv().await, Ok(6));
        for _ in 0..2 {
            assert_eq!(receiver.recv().await, Err(RecvError));
        }
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    };
    let task = Task::new();
    let ((), sleeps) = block_on(&task, receive);
    assert_eq!((sleeps, task.wakes()), (0, 0));
}

#[test]
fn a_stream_ends() {
    let (sender, receiver) = channel();
    let mut stream = receiver.into_async();
    let waker = Task::new().waker();
    let mut next = || {
        let polled = Pin::new(&mut stream).poll_next(&mut Context::from_waker(&waker));
        (polled, stream.is_terminated())
    };
    assert_eq!(next(), (Poll::Pending, false));
    sender.send_all(1..=2).unwrap();
    assert_eq!(next(), (Poll::Ready(Some(1)), false));
    drop(sender);
    assert_eq!(next(), (Poll::Ready(Some(2)), false));
    assert_eq!(next(), (Poll::Ready(None), true));
    assert_eq!(next(), (Poll::Ready(None), true));
}

#[test]
fn what_is_closed_is_over() {
    let task = Task::new();
    let (sender, mut receiver) = parked(&task);
    sender.send_all(1..=2).unwrap();
    assert!(receiver.close().into_iter().eq(1..=2));
    assert_eq!(task.poll(&mut receiver), Poll::Ready(Err(RecvError)));
    assert!(receiver.is_terminated());
    assert_eq!(sender.send(3).unwrap_err().into_inner(), 3);
}

/// Counts a single wake-up for a park and an arrival, and none for a further poll or item.
#[test]
fn each_arrival_wakes_once() {
    let task = Task::new();
    let (sender, mut receiver) = parked(&task);
    for round in 0..100_u32 {
        let wakes = round as usize;
        assert_eq!(task.wakes(), wakes);
        for _ in 0..round % 4 {
            assert!(task.poll(&mut receiver).is_pending(), "a spurious poll");
        }
        let items = 1 + round % 3;
        for item in 0..items {
            sender.send(item).unwrap();
        }
        assert_eq!(task.wakes(), wakes + 1);
        for item in 0..items {
            assert_eq!(task.poll(&mut receiver), Poll::Ready(Ok(item)));
        }
        // The task runs: an item that comes need not wake it.
        sender.send(items).unwrap();
        assert_eq!(task.poll(&mut receiver), Poll::Ready(Ok(items)));
        assert_eq!(task.wakes(), wakes + 1);
        assert!(task.poll(&mut receiver).is_pending());
    }
}

#[test]
fn the_end_wakes_once() {
    let task = Task::new();
    let (sender, mut receiver) = parked(&task);
    let other = sender.clone();
    drop(sender);
    assert_eq!(task.wakes(), 0);
    drop(other);
    assert_eq!(task.wakes(), 1);
    assert_eq!(task.poll(&mut receiver), Poll::Ready(Err(RecvError)));
    drop(receiver);
    assert_eq!(task.wakes(), 1);
}

#[test]
fn only_the_last_waker_is_woken() {
    let tasks = [Task::new(), Task::new(), Task::new()];
    let (sender, mut receiver) = parked(&tasks[0]);
    assert!(tasks[1].poll(&mut receiver).is_pending());
    assert!(tasks[2].poll(&mut receiver).is_pending());
    sender.send(1).unwrap();
    assert_eq!(tasks.each_ref().map(|task| task.wakes()), [0, 0, 1]);
    assert_eq!(tasks[0].poll(&mut receiver), Poll::Ready(Ok(1)));
    assert!(tasks[1].poll(&mut receiver).is_pending());
    drop(sender);
    assert_eq!(tasks.map(|task| task.wakes()), [0, 1, 1]);
}

/// Checks that the receiver keeps neither a replaced waker nor a woken waker.
#[test]
fn wakers_are_let_go() {
    let tasks = [Task::new(), Task::new()];
    let (sender, mut receiver) = parked(&tasks[0]);
    assert!(tasks[1].poll(&mut receiver).is_pending());
    assert_eq!(tasks.each_ref().map(Arc::strong_count), [1, 2]);
    sender.send(1).unwrap();
    assert_eq!(tasks.each_ref().map(Arc::strong_count), [1, 1]);

    // The waker of a receiver that is gone, or serves a thread again, is not kept either.
    type End = fn(AsyncReceiver<u32>) -> Option<Receiver<u32>>;
    let ends: [End; 2] = [
        |receiver| {
            drop(receiver);
            None
        },
        |receiver| Some(receiver.into_blocking()),
    ];
    for end in ends {
        let (_sender, receiver) = parked(&tasks[0]);
        assert_eq!(Arc::strong_count(&tasks[0]), 2);
        let _rest = end(receiver);
        assert_eq!(Arc::strong_count(&tasks[0]), 1);
    }
}

/// Closes the channel of a task that may wait for the next item and for a reason to close the
/// channel at the same time.
#[test]
fn a_close_wakes_a_task_that_waits() {
    let task = Task::new();
    let (sender, mut receiver) = parked(&task);
    assert_eq!(receiver.close().len(), 0);
    assert_eq!(task.wakes(), 1);
    assert_eq!(task.poll(&mut receiver), Poll::Ready(Err(RecvError)));
    assert_eq!(receiver.close().len(), 0);
    assert_eq!(task.wakes(), 1);
    assert!(sender.is_closed());
}

#[test]
fn a_future_that_is_dropped_loses_nothing() {
    let (sender, receiver) = channel();
    let mut receiver = receiver.into_async();
    let task = Task::new();
    for round in 0..10 {
        {
            let future = pin!(receiver.recv());
            let waker = task.waker();
            assert!(future.poll(&mut Context::from_waker(&waker)).is_pending());
            // An item comes while the future exists, or after it is gone.
            if round % 2 == 0 {
                sender.send(round).unwrap();
            }
        }
        if round % 2 != 0 {
            sender.send(round).unwrap();
        }
        assert_eq!(task.wakes(), round + 1);
        assert_eq!(block_on(&task, receiver.recv()), (Ok(round), 0));
    }
}

#[test]
fn many_items_from_four_threads() {
    const SENDERS: usize = 4;
    let count = scaled(25_000);
    let (sender, receiver) = channel();
    let mut receiver = receiver.into_async();
    let task = Task::new();
    let mut order = Order::new(SENDERS);
    let sleeps = thread::scope(|scope| {
        for producer in 0..SENDERS {
            let sender = sender.clone();
            scope.spawn(move || {
                for number in 0..count {
                    sender.send((producer, number)).unwrap();
                    if number % 64 == 0 {
                        thread::yield_now();
                    }
                }
            });
        }
        drop(sender);
        let receive = async {
            while let Ok(item) = receiver.recv().await {
                order.check(item);
            }
        };
        block_on(&task, receive).1
    });
    assert!(order.is_complete(count), "the end came too early");
    assert_eq!(task.wakes(), sleeps);
}

#[test]
fn many_items_through_little_room() {
    const SENDERS: usize = 4;
    let count = scaled(5_000);
    let (sender, receiver) = bounded(3);
    let mut receiver = receiver.into_async();
    let task = Task::new();
    let mut order = Order::new(SENDERS);
    thread::scope(|scope| {
        for producer in 0..SENDERS {
            let sender = sender.clone();
            scope.spawn(move || {
                (0..count).for_each(|number| sender.send((producer, number)).unwrap());
            });
        }
        drop(sender);
        while let (Ok(item), _) = block_on(&task, receiver.recv()) {
            order.check(item);
        }
    });
    assert!(order.is_complete(count), "the end came too early");
}

#[test]
fn a_thread_takes_over_and_gives_back() {
    let task = Task::new();
    let (sender, receiver) = parked(&task);
    let receiver = receiver.into_blocking();
    let (ready, is_ready) = mpsc::channel();
    let thread = thread::spawn(move || {
        for item in 0..100 {
            is_ready.recv_timeout(LOST).unwrap();
            sender.send(item).unwrap();
        }
        is_ready.recv_timeout(LOST).unwrap();
        sender
    });
    for item in 0..100 {
        ready.send(()).unwrap();
        assert_eq!(receiver.recv_timeout(LOST), Ok(item));
    }
    assert!(task.wakes() <= 1, "it waited once");
    let mut receiver = receiver.into_async();
    let task = Task::new();
    assert!(task.poll(&mut receiver).is_pending());
    ready.send(()).unwrap();
    drop(thread.join().unwrap());
    assert_eq!(block_on(&task, receiver.recv()), (Err(RecvError), 0));
    assert_eq!(task.wakes(), 1);
}

/// Sends an item to the channel when woken, cloned or dropped.
struct Busy {
    sender: Sender<u32>,
    when: When,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Woken,
    Cloned,
    Dropped,
}

impl Busy {
    fn send_when(&self, when: When) {
        if self.when == when {
            self.sender.send(7).unwrap();
        }
    }

    fn waker(self: Arc<Self>) -> Waker {
        let this = Arc::into_raw(self);
        // SAFETY: the waker owns this `Arc`, and the functions of the table treat it as an `Arc`.
        unsafe { Waker::from_raw(RawWaker::new(this.cast(), &BUSY)) }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.send_when(When::Dropped);
    }
}

impl Wake for Busy {
    fn wake(self: Arc<Self>) {
        self.send_when(When::Woken);
    }
}

/// The functions of a [`Wake`] waker, except for `clone`.
static BUSY: RawWakerVTable = RawWakerVTable::new(
    |this| {
        let this: *const Busy = this.cast();
        // SAFETY: the waker is borrowed, and owns the `Arc`.
        unsafe {
            (*this).send_when(When::Cloned);
            Arc::increment_strong_count(this);
        }
        RawWaker::new(this.cast(), &BUSY)
    },
    // SAFETY: the waker gives its `Arc` up.
    |this| unsafe { Arc::from_raw(this.cast::<Busy>()).wake() },
    |_| unreachable!("no waker is woken by reference"),
    // SAFETY: the waker gives its `Arc` up.
    |this| unsafe { drop(Arc::from_raw(this.cast::<Busy>())) },
);

/// Checks that no waker runs under a lock: wakers are foreign code.
#[test]
fn a_waker_may_use_the_channel_whenever_it_runs() {
    for when in [When::Woken, When::Cloned, When::Dropped] {
        let (done, is_done) = mpsc::channel();
        thread::spawn(move || {
            let task = Task::new();
            let (sender, mut receiver) = parked(&task);
            let mut items = Vec::new();
            let busy = Arc::new(Busy {
                sender: sender.clone(),
                when,
            });
            let waker = busy.waker();
            let polled = receiver.poll_recv(&mut Context::from_waker(&waker));
            drop(waker);
            if let Poll::Ready(item) = polled {
                items.push(item);
            } else {
                // The channel has the busy waker: the next poll replaces and drops it, unless a
                // send has woken it.
                if when == When::Woken {
                    sender.send(1).unwrap();
                }
                items.push(task.receive(&mut receiver, &mut 0));
            }
            items.extend(receiver.drain().into_iter().map(Ok));
            done.send(items).unwrap();
        });
        let items = is_done.recv_timeout(LOST);
        let expected: &[_] = match when {
            When::Woken => &[Ok(1), Ok(7)],
            When::Cloned | When::Dropped => &[Ok(7)],
        };
        assert_eq!(items.as_deref(), Ok(expected), "{when:?}");
    }
}

/// Checks that the receiver does not keep a waker that may own the receiver.
#[test]
fn a_waker_for_which_an_item_came_in_time_is_not_kept() {
    let (sender, receiver) = channel();
    let when = When::Cloned;
    let busy = Arc::new(Busy { sender, when });
    let waker = Arc::clone(&busy).waker();
    let mut receiver = receiver.into_async();
    let polled = receiver.poll_recv(&mut Context::from_waker(&waker));
    assert_eq!(polled, Poll::Ready(Ok(7)));
    drop(waker);
    assert_eq!(Arc::strong_count(&busy), 1);
}

/// An executor may run a task while it wakes it.
struct AtOnce(Mutex<(AsyncReceiver<u32>, Vec<u32>)>);

impl Wake for AtOnce {
    fn wake(self: Arc<Self>) {
        let waker = Arc::clone(&self).into();
        let (receiver, items) = &mut *self.0.lock().unwrap();
        let mut context = Context::from_waker(&waker);
        while let Poll::Ready(Ok(item)) = receiver.poll_recv(&mut context) {
            items.push(item);
        }
    }
}

#[test]
fn a_waker_may_poll_at_once() {
    let (sender, receiver) = channel();
    let task = Arc::new(AtOnce(Mutex::new((receiver.into_async(), Vec::new()))));
    Arc::clone(&task).wake();
    for item in 0..10 {
        sender.send(item).unwrap();
        assert!(task.0.lock().unwrap().1.iter().copied().eq(0..=item));
    }
    drop(sender);
    assert_eq!(Arc::strong_count(&task), 1);
}
