//! More messages than a process can handle: all sent messages are accounted for, memory stays flat,
//! and the terminator of the process gets through.

use crate::support::*;
use ganger_proc_api::{Event, ExitReason, Message, Payload, Process, SendError, SendErrorKind};
use ganger_sched::{Address, ProcessHandle, Scheduler, SendAsync};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

/// The existing messages, and the most at any time.
#[derive(Default)]
struct Living {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// The content of each message: it counts itself.
struct Alive {
    producer: usize,
    number: u64,
    living: Arc<Living>,
}

impl Alive {
    fn message(producer: usize, number: u64, living: &Arc<Living>) -> Message {
        let now = living.now.fetch_add(1, Ordering::SeqCst) + 1;
        living.most.fetch_max(now, Ordering::SeqCst);
        let living = Arc::clone(living);
        let alive = Self {
            producer,
            number,
            living,
        };
        Message::new("alive", Payload::any(alive))
    }

    fn of(message: Message) -> Self {
        let payload = message.payloads.into_first();
        payload.downcast().expect("one of these messages")
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.living.now.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on(mut future: SendAsync) -> Result<(), SendError> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match Pin::new(&mut future).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(sent) => return sent,
            Poll::Pending => thread::park(),
        }
    }
}

type Way = fn(&Address, Message) -> Result<(), SendError>;

/// Ways to send. A producer tries again after a send without a long wait.
const WAYS: [Way; 5] = [
    Address::send_blocking,
    |address, message| block_on(address.send_async(message)),
    <Address>::send,
    |address, message| address.send_timeout(message, Duration::from_micros(20)),
    |address, message| address.send_timeout(message, Duration::ZERO),
];

/// The work of the producers.
#[derive(Default)]
struct Tally {
    offered: AtomicU64,
    accepted: AtomicU64,
    returned: AtomicU64,
}

/// Offers numbers in their order, each until it has been accepted, until the process has ended or
/// `enough` have been accepted.
fn produce(producer: usize, address: &Address, living: &Arc<Living>, tally: &Tally, enough: u64) {
    let send = WAYS[producer % WAYS.len()];
    let mut number = 0;
    let mut message = Alive::message(producer, number, living);
    while number < enough {
        tally.offered.fetch_add(1, Ordering::SeqCst);
        match send(address, message) {
            Ok(()) => {
                tally.accepted.fetch_add(1, Ordering::SeqCst);
                number += 1;
                message = Alive::message(producer, number, living);
            }
            Err(error) => {
                tally.returned.fetch_add(1, Ordering::SeqCst);
                let kind = error.kind;
                message = error.into_envelope().message;
                match kind {
                    SendErrorKind::Ended(_) => return,
                    SendErrorKind::Full | SendErrorKind::Timeout => thread::yield_now(),
                    other => panic!("{other}"),
                }
            }
        }
    }
}

fn start_producer(
    producer: usize,
    address: &Address,
    living: &Arc<Living>,
    tally: &Arc<Tally>,
    enough: u64,
) -> thread::JoinHandle<()> {
    let (address, living, tally) = (address.clone(), Arc::clone(living), Arc::clone(tally));
    thread::spawn(move || produce(producer, &address, &living, &tally, enough))
}

/// The work of the consumer.
#[derive(Default)]
struct Handled {
    steps: AtomicU64,
    messages: AtomicU64,
    cancelled_at: AtomicU64,
    is_cancelled: AtomicBool,
    controls: AtomicU64,
    controlled_at: AtomicU64,
}

/// Creates a process that handles a message a step, while `may_handle`; it looks for control
/// messages and a cancellation first.
fn consumer(
    handled: &Arc<Handled>,
    mut may_handle: impl FnMut(u64) -> bool + Send + 'static,
    mut seen: impl FnMut(Alive) + Send + 'static,
) -> impl Process {
    let handled = Arc::clone(handled);
    process(move |_, events, out| {
        let step = handled.steps.fetch_add(1, Ordering::SeqCst) + 1;
        while let Some(_control) = events.take_where(|event| matches!(event, Event::Control(_))) {
            handled.controlled_at.store(step, Ordering::SeqCst);
            handled.controls.fetch_add(1, Ordering::SeqCst);
        }
        if let Some(_cancel) = events.take_where(|event| matches!(event, Event::Cancel(_))) {
            handled.cancelled_at.store(step, Ordering::SeqCst);
            handled.is_cancelled.store(true, Ordering::SeqCst);
            out.done(handled.messages.load(Ordering::SeqCst));
            return Ok(());
        }
        if events.is_empty() {
            return Ok(());
        }
        out.step_again();
        if may_handle(handled.messages.load(Ordering::SeqCst))
            && let Some(Event::Message(message)) = events.next()
        {
            handled.messages.fetch_add(1, Ordering::SeqCst);
            seen(Alive::of(message));
        }
        Ok(())
    })
}

// pins: P4, P13, R4
#[test]
fn every_message_is_handled_once_or_comes_back() {
    const PRODUCERS: usize = 2 * WAYS.len();
    const EACH: u64 = 400;
    const LIMIT: usize = 4;
    let scheduler = Scheduler::builder().workers(2).mailbox_limit(LIMIT);
    let scheduler = scheduler.build().unwrap();
    scheduler.start().unwrap();
    let (living, tally) = (Arc::new(Living::default()), Arc::new(Tally::default()));
    let handled = Arc::new(Handled::default());
    let mut next = [0; PRODUCERS];
    let in_order = move |alive: Alive| {
        assert_eq!(alive.number, next[alive.producer], "of {}", alive.producer);
        next[alive.producer] += 1;
    };
    let consumer = consumer(&handled, |_| true, in_order);
    let handle = scheduler.submit(consumer, "main", ()).unwrap();
    let start = |producer| start_producer(producer, handle.address(), &living, &tally, EACH);
    let producers: Vec<_> = (0..PRODUCERS).map(start).collect();
    producers.into_iter().for_each(joined);
    let all = PRODUCERS as u64 * EACH;
    assert_eq!(tally.accepted.load(Ordering::SeqCst), all);
    until("all have been handled", || {
        handled.messages.load(Ordering::SeqCst) == all
    });
    scheduler.cancel(handle.pid(), "that is all").unwrap();
    assert_eq!(exit_number(handle), all);
    let offered = tally.offered.load(Ordering::SeqCst);
    assert_eq!(all + tally.returned.load(Ordering::SeqCst), offered);
    assert_eq!(scheduler.stats().total.undelivered, 0);
    assert_eq!(living.now.load(Ordering::SeqCst), 0, "a message is left");
}

/// Offers ten times the handled messages, until `end` ends the process.
fn overload(end: impl FnOnce(&Scheduler, &ProcessHandle, &Handled)) -> ExitReason {
    const PRODUCERS: usize = 2 * WAYS.len();
    const LIMIT: usize = 16;
    const HANDLED: u64 = 500;
    let scheduler = Scheduler::builder().workers(1).mailbox_limit(LIMIT);
    let scheduler = scheduler.build().unwrap();
    scheduler.start().unwrap();
    let (living, tally) = (Arc::new(Living::default()), Arc::new(Tally::default()));
    let handled = Arc::new(Handled::default());
    let offers = Arc::clone(&tally);
    let a_tenth = move |handled| 10 * (handled + 1) <= offers.offered.load(Ordering::SeqCst);
    let consumer = consumer(&handled, a_tenth, drop);
    let handle = scheduler.submit(consumer, "main", ()).unwrap();
    let address = handle.address().clone();
    let start = |producer| start_producer(producer, &address, &living, &tally, u64::MAX);
    let producers: Vec<_> = (0..PRODUCERS).map(start).collect();
    until("enough have been handled", || {
        handled.messages.load(Ordering::SeqCst) >= HANDLED
    });
    end(&scheduler, &handle, &handled);
    let reason = exit(handle);
    producers.into_iter().for_each(joined);
    let load = |count: &AtomicU64| count.load(Ordering::SeqCst);
    assert!(load(&tally.offered) >= 10 * load(&handled.messages));
    let (most, flat) = (living.most.load(Ordering::SeqCst), LIMIT + PRODUCERS);
    assert!(most <= flat, "{most} messages at a time, {flat} may be");
    assert!(most > LIMIT, "nobody had to wait");
    let undelivered = scheduler.stats().total.undelivered;
    assert_eq!(load(&tally.accepted), load(&handled.messages) + undelivered);
    let answered = load(&tally.accepted) + load(&tally.returned);
    assert_eq!(answered, load(&tally.offered));
    assert_eq!(living.now.load(Ordering::SeqCst), 0, "a message is left");
    reason
}

// pins: P10, P13
#[test]
fn under_ten_times_the_load_memory_is_flat_and_a_cancellation_gets_through() {
    let reason = overload(|scheduler, handle, handled| {
        scheduler.cancel(handle.pid(), "enough").unwrap();
        let steps = handled.steps.load(Ordering::SeqCst);
        until("it is cancelled", || {
            handled.is_cancelled.load(Ordering::SeqCst)
        });
        let took = handled
            .cancelled_at
            .load(Ordering::SeqCst)
            .saturating_sub(steps);
        assert!(took <= 2, "{took} steps from the cancellation to its event");
    });
    assert!(matches!(reason, ExitReason::Done(_)), "{reason}");
}

// pins: P13
#[test]
fn under_ten_times_the_load_memory_is_flat_and_control_messages_get_through() {
    const CONTROLS: u64 = 200;
    let reason = overload(|scheduler, handle, handled| {
        let load = |count: &AtomicU64| count.load(Ordering::SeqCst);
        for number in 1..=CONTROLS {
            // No control message is refused, however full of messages the mailbox is.
            handle
                .send_control(Message::new("control", number))
                .unwrap();
            let steps = load(&handled.steps);
            until("it is told", || load(&handled.controls) == number);
            let took = load(&handled.controlled_at).saturating_sub(steps);
            assert!(took <= 2, "{took} steps from the {number}th to its event");
        }
        scheduler.cancel(handle.pid(), "enough").unwrap();
    });
    assert!(matches!(reason, ExitReason::Done(_)), "{reason}");
}

// pins: P9, P13
#[test]
fn under_ten_times_the_load_a_termination_gets_through() {
    let mut steps = 0;
    let mut counts = None;
    let reason = overload(|scheduler, handle, handled| {
        scheduler.terminate(handle.pid()).unwrap();
        steps = handled.steps.load(Ordering::SeqCst);
        until("it has ended", || handle.is_finished());
        counts = Some(handled.steps.load(Ordering::SeqCst));
    });
    assert!(matches!(reason, ExitReason::Terminated), "{reason}");
    let took = counts.expect("it has ended") - steps;
    assert!(took <= 1, "{took} steps after the termination");
}
