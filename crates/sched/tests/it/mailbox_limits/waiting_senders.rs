//! Sends that wait for room in a mailbox with a limit.

use crate::support::*;
use ganger_proc_api::{
    BoxError, Event, Events, ExitReason, Lifecycle, Message, Payload, Pid, Process, SendError,
    SendErrorKind, StepOutput, Symbol,
};
use ganger_sched::{Address, Builder, Handle, Scheduler, SendAsync};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

/// Longer than any test.
const NEVER: Duration = Duration::from_secs(3_600);

pub(crate) fn limited(limit: usize) -> Builder {
    Scheduler::builder().workers(1).mailbox_limit(limit)
}

pub(crate) fn started(builder: Builder) -> Scheduler {
    let scheduler = builder.build().unwrap();
    scheduler.start().unwrap();
    scheduler
}

pub(crate) fn numbered(n: u64) -> Message {
    Message::new("n", n)
}

pub(crate) fn number(message: &Message) -> u64 {
    let number = message.payloads.first().and_then(Payload::as_u64);
    number.expect("a numbered message")
}

#[track_caller]
pub(crate) fn assert_refused(sent: Result<(), SendError>, kind: SendErrorKind, n: u64) {
    let error = sent.unwrap_err();
    assert_eq!(rough(error.kind), kind, "{error}");
    assert_eq!(number(&error.into_envelope().message), n);
}

/// Creates a process that takes a message a step, and ends after `count` with their numbers as
/// text.
pub(crate) fn collector(count: u64) -> impl Process {
    let mut seen = Vec::new();
    process(move |_, events, out| {
        if let Some(Event::Message(message)) = events.next() {
            seen.push(number(&message).to_string());
            out.step_again();
        }
        if seen.len() as u64 == count {
            out.done(seen.join(" "));
        }
        Ok(())
    })
}

#[track_caller]
pub(crate) fn collected(handle: ganger_sched::ProcessHandle) -> String {
    match exit(handle) {
        ExitReason::Done(payload) => payload.into_string().expect("a text"),
        other => panic!("{other}"),
    }
}

/// Creates a process that waits for ever, and leaves its messages in their places.
pub(crate) fn leaver() -> impl Process {
    process(|_, _, out| {
        out.defer_cancel();
        Ok(())
    })
}

/// Sends on a thread of its own.
pub(crate) fn elsewhere(
    address: &Address,
    send: fn(&Address) -> Result<(), SendError>,
) -> thread::JoinHandle<Result<(), SendError>> {
    let address = address.clone();
    thread::spawn(move || send(&address))
}

fn poll(future: &mut SendAsync, waker: &Waker) -> Poll<Result<(), SendError>> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

#[track_caller]
pub(crate) fn waiting(mut future: SendAsync) -> SendAsync {
    assert!(poll(&mut future, Waker::noop()).is_pending());
    future
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

pub(crate) fn block_on(mut future: SendAsync) -> Result<(), SendError> {
    let flag = Arc::new(Flag::default());
    let waker = Waker::from(Arc::clone(&flag));
    loop {
        if let Poll::Ready(sent) = poll(&mut future, &waker) {
            return sent;
        }
        until("it is woken", || flag.0.swap(false, Ordering::SeqCst));
    }
}

// pins: P13
#[test]
fn those_who_wait_are_served_in_their_order_whether_they_are_polled_or_not() {
    let scheduler = limited(2).build().unwrap();
    let handle = scheduler.submit(collector(7), "main", ()).unwrap();
    let address = handle.address();
    address.send(numbered(0)).unwrap();
    address.send_blocking(numbered(1)).unwrap();
    let mut futures: Vec<_> = (2..6)
        .map(|n| waiting(address.send_async(numbered(n))))
        .collect();
    assert_refused(address.send(numbered(9)), SendErrorKind::Full, 9);
    let last = elsewhere(address, |it| it.send_timeout(numbered(6), PATIENCE));
    scheduler.start().unwrap();
    joined(last).unwrap();
    // The blocking sender began last, and came after the earlier waiters.
    assert_eq!(collected(handle), "0 1 2 3 4 5 6");
    for future in &mut futures {
        assert!(matches!(poll(future, Waker::noop()), Poll::Ready(Ok(()))));
    }
}

// pins: P13
#[test]
fn as_many_are_served_as_there_is_room_for() {
    let scheduler = limited(3).build().unwrap();
    let mut batches = Vec::new();
    let process = process(move |_, events, out| {
        batches.push(events.count().to_string());
        if batches.len() == 3 {
            out.done(batches.join(" "));
        }
        Ok(())
    });
    let handle = scheduler.submit(process, "main", ()).unwrap();
    for n in 0..3 {
        handle.send(numbered(n)).unwrap();
    }
    let send = |n| waiting(handle.address().send_async(numbered(n)));
    let waits: Vec<_> = (3..8).map(send).collect();
    scheduler.start().unwrap();
    assert_eq!(collected(handle), "3 3 2");
    drop(waits);
}

// pins: P13
#[test]
fn who_has_waited_long_enough_gets_the_message_back() {
    let scheduler = limited(1).build().unwrap();
    let handle = scheduler.submit(collector(2), "main", ()).unwrap();
    let address = handle.address();
    address.send_timeout(numbered(0), Duration::ZERO).unwrap();
    for timeout in [Duration::ZERO, Duration::from_millis(1)] {
        let sent = address.send_timeout(numbered(1), timeout);
        let error = sent.as_ref().unwrap_err().to_string();
        assert!(
            error.ends_with("timed out: the mailbox stayed full"),
            "{error}"
        );
        assert_refused(sent, SendErrorKind::Timeout, 1);
    }
    let patient = elsewhere(address, |address| address.send_timeout(numbered(2), NEVER));
    scheduler.start().unwrap();
    joined(patient).unwrap();
    assert_eq!(collected(handle), "0 2", "what timed out was not sent");
}

// pins: P13
#[test]
fn the_end_of_the_process_gives_all_who_wait_their_messages_back() {
    let scheduler = started(limited(1));
    let handle = scheduler.submit(leaver(), "main", ()).unwrap();
    let address = handle.address().clone();
    address.send(numbered(0)).unwrap();
    let flags = [0; 3].map(|_| Arc::new(Flag::default()));
    let wakers = flags.each_ref().map(|flag| Waker::from(Arc::clone(flag)));
    let mut futures = [1, 2, 3].map(|n| address.send_async(numbered(n)));
    for (future, waker) in futures.iter_mut().zip(&wakers) {
        assert!(poll(future, waker).is_pending());
    }
    let blocked = elsewhere(&address, |address| address.send_blocking(numbered(4)));
    let timed = elsewhere(&address, |address| address.send_timeout(numbered(5), NEVER));
    scheduler.terminate(handle.pid()).unwrap();
    assert_refused(joined(blocked), ENDED, 4);
    assert_refused(joined(timed), ENDED, 5);
    exit(handle);
    assert!(flags.iter().all(|flag| flag.0.load(Ordering::SeqCst)));
    for (n, future) in (1..).zip(&mut futures) {
        let Poll::Ready(sent) = poll(future, Waker::noop()) else {
            panic!("the process has ended");
        };
        assert_refused(sent, ENDED, n);
    }
    assert_refused(address.send_blocking(numbered(6)), ENDED, 6);
}

/// A hook fills the mailbox of each starting process, has another message wait, and refuses the
/// start.
struct Refuses {
    handle: OnceLock<ganger_sched::WeakHandle>,
    waits: Mutex<Option<SendAsync>>,
}

impl Lifecycle for &'static Refuses {
    fn on_start(&self, pid: Pid, _: Symbol) -> Result<(), BoxError> {
        let handle = self
            .handle
            .get()
            .and_then(ganger_sched::WeakHandle::upgrade);
        let address = handle.and_then(|handle| handle.address(pid)).unwrap();
        address.send(numbered(0))?;
        *self.waits.lock().unwrap() = Some(waiting(address.send_async(numbered(1))));
        Err("on purpose".into())
    }
}

// pins: P1, P13
#[test]
fn a_start_that_is_rolled_back_gives_the_message_back() {
    static HOOK: Refuses = Refuses {
        handle: OnceLock::new(),
        waits: Mutex::new(None),
    };
    let scheduler = started(limited(1).lifecycle(&HOOK));
    HOOK.handle.set(scheduler.downgrade()).unwrap();
    drop(scheduler.submit(leaver(), "main", ()).unwrap_err());
    let waits = HOOK.waits.lock().unwrap().take().unwrap();
    assert_refused(block_on(waits), ENDED, 1);
}

// pins: P13
#[test]
fn a_future_that_is_dropped_takes_back_what_was_not_accepted_and_nothing_else() {
    let scheduler = limited(1).build().unwrap();
    let handle = scheduler.submit(collector(3), "main", ()).unwrap();
    let address = handle.address();
    drop(address.send_async(numbered(8)));
    address.send(numbered(0)).unwrap();
    let value = Arc::new(());
    let given_up = Message::new("value", Payload::any(Arc::clone(&value)));
    let given_up = waiting(address.send_async(given_up));
    let accepted = waiting(address.send_async(numbered(1)));
    let last = waiting(address.send_async(numbered(2)));
    drop(given_up);
    assert_eq!(Arc::strong_count(&value), 1, "its message is gone");
    scheduler.start().unwrap();
    block_on(last).unwrap();
    drop(accepted);
    assert_eq!(collected(handle), "0 1 2");
}

// pins: P13
#[test]
fn a_future_gives_its_envelope_back_unless_it_has_been_accepted() {
    let scheduler = limited(1).build().unwrap();
    let handle = scheduler.submit(collector(2), "main", ()).unwrap();
    let address = handle.address();
    let number = |future: ganger_sched::SendAsync| {
        let envelope = future.into_envelope()?;
        assert_eq!(envelope.target, handle.pid());
        envelope.message.payloads.into_first().as_u64()
    };
    assert_eq!(number(address.send_async(numbered(7))), Some(7));
    let by_pid = numbered(8).to(handle.pid());
    assert_eq!(number(scheduler.send_async(by_pid)), Some(8));
    address.send(numbered(0)).unwrap();
    assert_eq!(number(waiting(address.send_async(numbered(9)))), Some(9));
    let accepted = waiting(address.send_async(numbered(1)));
    scheduler.start().unwrap();
    assert_eq!(collected(handle), "0 1");
    assert!(accepted.into_envelope().is_none());
}

// pins: P13
#[test]
fn when_the_last_who_waits_has_given_up_sends_have_the_room_again() {
    let scheduler = limited(1).build().unwrap();
    let handle = scheduler.submit(collector(2), "main", ()).unwrap();
    handle.send(numbered(0)).unwrap();
    drop(waiting(handle.address().send_async(numbered(9))));
    scheduler.start().unwrap();
    until("there is room", || handle.send(numbered(1)).is_ok());
    assert_eq!(collected(handle), "0 1");
}

// pins: P13
#[test]
fn by_pid_it_waits_for_processes_of_the_scheduler_alone() {
    let scheduler = limited(1).build().unwrap();
    let handle = scheduler.submit(collector(4), "main", ()).unwrap();
    let envelope = |n| numbered(n).to(handle.pid());
    scheduler.send_blocking(envelope(0)).unwrap();
    let waits = waiting(scheduler.send_async(envelope(1)));
    let timed = scheduler.send_timeout(envelope(2), Duration::from_millis(1));
    assert_refused(timed, SendErrorKind::Timeout, 2);
    assert!(format!("{waits:?}").contains("is_waiting: true"));
    for (text, kind) in [
        ("{main|123}", SendErrorKind::NotFound),
        ("{other|1}", SendErrorKind::HostNotFound),
        ("{far@main|1}", SendErrorKind::NodeNotFound),
    ] {
        let envelope = || numbered(7).to(text.parse().unwrap());
        assert_refused(scheduler.send_blocking(envelope()), kind, 7);
        assert_refused(scheduler.send_timeout(envelope(), NEVER), kind, 7);
        assert_refused(block_on(scheduler.send_async(envelope())), kind, 7);
    }
    scheduler.start().unwrap();
    block_on(waits).unwrap();
    let (other, last) = (scheduler.handle(), envelope(3));
    joined(thread::spawn(move || other.send_blocking(last))).unwrap();
    block_on(scheduler.send_async(envelope(4))).unwrap();
    assert_eq!(collected(handle), "0 1 3 4");
}

// pins: P13
#[test]
fn without_a_limit_nothing_waits() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let handle = scheduler.submit(leaver(), "main", ()).unwrap();
    let address = handle.address();
    for n in 0..1_000 {
        address.send_blocking(numbered(n)).unwrap();
        address.send_timeout(numbered(n), Duration::ZERO).unwrap();
        let mut future = address.send_async(numbered(n));
        assert!(matches!(
            poll(&mut future, Waker::noop()),
            Poll::Ready(Ok(()))
        ));
    }
}

// pins: P8, P13
#[test]
fn a_waker_that_panics_harms_nobody() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("on purpose: a waker");
        }
    }
    quiet_panics();
    let scheduler = limited(1).build().unwrap();
    let handle = scheduler.submit(collector(3), "main", ()).unwrap();
    let address = handle.address();
    address.send(numbered(0)).unwrap();
    let mut first = address.send_async(numbered(1));
    assert!(poll(&mut first, &Waker::from(Arc::new(Panics))).is_pending());
    let second = waiting(address.send_async(numbered(2)));
    scheduler.start().unwrap();
    assert_eq!(collected(handle), "0 1 2");
    block_on(first).unwrap();
    block_on(second).unwrap();
    assert_eq!(scheduler.stats().total.panics, 1);
}

/// Creates a process that sends `count` numbers in a step, by `send`.
fn producer(
    to: Address,
    count: u64,
    send: fn(&Address, Message) -> Result<(), SendError>,
) -> impl Process {
    process(move |_, _, out| {
        for n in 0..count {
            send(&to, numbered(n))?;
        }
        out.done(count);
        Ok(())
    })
}

// pins: P13, G6
#[test]
fn a_step_that_waits_costs_no_worker() {
    const COUNT: u64 = 200;
    // The monitor would not notice the block of the step by itself.
    let scheduler = started(limited(2).step_limits(NEVER, NEVER));
    let consumer = scheduler.submit(collector(COUNT), "main", ()).unwrap();
    let address = consumer.address().clone();
    let producer = producer(address, COUNT, Address::send_blocking);
    let producer = scheduler.submit(producer, "main", ()).unwrap();
    assert_eq!(exit_number(producer), COUNT);
    let numbers: Vec<_> = (0..COUNT).map(|n| n.to_string()).collect();
    assert_eq!(collected(consumer), numbers.join(" "));
    let spares = scheduler.stats().spares;
    assert!(spares <= 1, "{spares} spares for one step that waits");
}

// pins: P13, G6
#[test]
fn steps_that_no_thread_is_left_for_do_not_wait() {
    const PRODUCERS: u64 = 12;
    const COUNT: u64 = 50;
    let scheduler = started(limited(2).max_spares(3));
    let consumer = collector(PRODUCERS * COUNT);
    let consumer = scheduler.submit(consumer, "main", ()).unwrap();
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|_| {
            let to = consumer.address().clone();
            let mut sent = 0;
            let producer = process(move |_: &_, _: &mut Events<'_>, out: &mut StepOutput| {
                match to.send_blocking(numbered(sent)) {
                    Ok(()) => sent += 1,
                    Err(error) if error.kind == SendErrorKind::Full => {}
                    Err(error) => return Err(error.into()),
                }
                if sent == COUNT {
                    out.done(sent);
                } else {
                    out.step_again();
                }
                Ok(())
            });
            scheduler.submit(producer, "main", ()).unwrap()
        })
        .collect();
    for producer in producers {
        assert_eq!(exit_number(producer), COUNT);
    }
    let all = collected(consumer);
    assert_eq!(all.split(' ').count() as u64, PRODUCERS * COUNT);
}

// pins: P13
#[test]
fn a_step_does_not_wait_for_its_own_process() {
    let scheduler = started(limited(1));
    let own = Arc::new(OnceLock::<Handle>::new());
    let mine = Arc::clone(&own);
    let process = process(move |ctx, events, out| {
        if events.peek().is_some() {
            let handle = mine.get().unwrap();
            let sent = handle.send_blocking(numbered(1).to(ctx.pid()));
            assert_refused(sent, SendErrorKind::Full, 1);
            let sent = handle.send_timeout(numbered(2).to(ctx.pid()), NEVER);
            assert_refused(sent, SendErrorKind::Full, 2);
            out.done(7);
        }
        Ok(())
    });
    own.set(scheduler.handle()).unwrap();
    let handle = scheduler.submit(process, "main", ()).unwrap();
    handle.send(numbered(0)).unwrap();
    assert_eq!(exit_number(handle), 7);
}
