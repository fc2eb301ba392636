//! Waits of yields for futures, without a scheduler.

use ganger_proc_api::internal::{Delivery, StepsCall};
use ganger_proc_api::{
    CommandError, Completer, CompletionSink, EndCall, Payload, Pid, Tag, TypedCommand,
};
use ganger_wait::Until;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Poll, Waker};

type Results = Vec<Result<Payload, CommandError>>;

/// A process, for the test to end.
#[derive(Default)]
struct Asker {
    results: Mutex<Results>,
    calls: Mutex<Vec<Weak<EndCall>>>,
    /// Calls between two steps. An ended process refuses them.
    between: Mutex<Vec<Box<StepsCall>>>,
    has_ended: AtomicBool,
}

impl CompletionSink for Asker {
    fn complete(self: Arc<Self>, _: Tag, _: u64, result: Result<Payload, CommandError>) {
        self.results.lock().unwrap().push(result);
    }

    fn pid(&self) -> Option<Pid> {
        "{test|1}".parse().ok()
    }

    fn is_cancelled(&self, _: u64) -> bool {
        // Ordering: SeqCst, because speed does not matter in a test.
        self.has_ended.load(Ordering::SeqCst)
    }

    fn between_steps(self: Arc<Self>, call: Box<StepsCall>) -> Result<(), Box<StepsCall>> {
        if self.is_cancelled(1) {
            return Err(call);
        }
        self.between.lock().unwrap().push(call);
        Ok(())
    }

    fn on_end(self: Arc<Self>, _: u64, call: Weak<EndCall>) -> bool {
        self.calls.lock().unwrap().push(call);
        true
    }
}

impl Asker {
    /// Carries the command out as a scheduler does.
    fn ask<T: Send + 'static>(self: &Arc<Self>, until: Until<T>) {
        let delivery = until.into_command().payloads.take::<Delivery>().unwrap();
        let completer = Completer::new(Arc::<Self>::clone(self), 1, 1);
        delivery.deliver(completer).unwrap();
    }

    /// Takes the calls to be made between the next two steps.
    fn between(&self) -> Vec<Box<StepsCall>> {
        std::mem::take(&mut *self.between.lock().unwrap())
    }

    /// Ends as a process does: it closes the mailbox first.
    fn end(&self) {
        // Ordering: SeqCst, because speed does not matter in a test.
        self.has_ended.store(true, Ordering::SeqCst);
        drop(self.between());
        let calls = std::mem::take(&mut *self.calls.lock().unwrap());
        calls
            .iter()
            .filter_map(Weak::upgrade)
            .for_each(|it| it.call());
    }

    fn results(&self) -> Results {
        std::mem::take(&mut *self.results.lock().unwrap())
    }
}

/// A future, ready when the test opens the gate.
#[derive(Clone, Default)]
struct Gate(Arc<Mutex<(bool, Option<Waker>)>>);

impl Gate {
    async fn wait(self) {
        poll_fn(|context| {
            let mut gate = self.0.lock().unwrap();
            if gate.0 {
                return Poll::Ready(());
            }
            gate.1 = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn open(&self) {
        let mut gate = self.0.lock().unwrap();
        gate.0 = true;
        let waker = gate.1.take();
        drop(gate);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

// pins: K1
#[test]
fn a_future_that_is_ready_at_once_is_not_watched() {
    let asker = Arc::new(Asker::default());
    asker.ask(Until::new(async { 42_u64 }));
    let [result] = <[_; 1]>::try_from(asker.results()).unwrap();
    assert_eq!(result.unwrap().take::<u64>().unwrap(), 42);
    assert!(asker.calls.lock().unwrap().is_empty());
}

// pins: K1
#[test]
fn a_future_that_panics_or_fails_is_an_error_of_its_yield() {
    let (asker, gate) = (Arc::new(Asker::default()), Gate::default());
    let own = gate.clone();
    asker.ask(Until::<u64>::new(async move {
        own.wait().await;
        panic!("on purpose")
    }));
    assert!(asker.results().is_empty());
    gate.open();
    asker.ask(Until::<u64>::new(async { panic!("at once") }));
    asker.ask(Until::<u64>::fallible(async { Err(CommandError::Timeout) }));
    let said: Vec<_> = asker
        .results()
        .into_iter()
        .map(|it| format!("{it:?}"))
        .collect();
    assert!(
        said[0].contains("on purpose") && said[1].contains("at once"),
        "{said:?}"
    );
    assert!(said[2].contains("Timeout"), "{said:?}");
}

// pins: K4
#[test]
fn the_future_goes_with_its_process() {
    let (asker, gate) = (Arc::new(Asker::default()), Gate::default());
    let kept = Arc::new(());
    let (own, wait) = (Arc::clone(&kept), gate.clone());
    asker.ask(Until::<()>::new(async move {
        wait.wait().await;
        drop(own);
    }));
    assert_eq!(Arc::strong_count(&kept), 2);
    asker.end();
    assert_eq!(Arc::strong_count(&kept), 1);
    gate.open();
    let results = asker.results();
    assert!(
        matches!(results[..], [Err(CommandError::Dropped)]),
        "{results:?}"
    );
}

// pins: K1
#[test]
fn a_wake_up_inside_of_a_poll_is_answered() {
    let asker = Arc::new(Asker::default());
    let mut polls = 0;
    asker.ask(Until::new(poll_fn(move |context| {
        polls += 1;
        context.waker().wake_by_ref();
        if polls == 4 {
            Poll::Ready(polls)
        } else {
            Poll::Pending
        }
    })));
    let [result] = <[_; 1]>::try_from(asker.results()).unwrap();
    assert_eq!(result.unwrap().take::<i32>().unwrap(), 4);
}

// pins: K1
#[test]
fn futures_that_wake_one_another_take_no_more_of_the_stack() {
    const MANY: usize = 100_000;
    let (asker, first) = (Arc::new(Asker::default()), Gate::default());
    let opened = Arc::new(AtomicUsize::new(0));
    let mut last = first.clone();
    for _ in 0..MANY {
        let (next, opened) = (Gate::default(), Arc::clone(&opened));
        let (own, then) = (std::mem::replace(&mut last, next.clone()), next);
        asker.ask(Until::new(async move {
            own.wait().await;
            // Ordering: Relaxed, because only this thread counts.
            opened.fetch_add(1, Ordering::Relaxed);
            then.open();
        }));
    }
    first.open();
    // Ordering: Relaxed, because only this thread counts.
    assert_eq!(opened.load(Ordering::Relaxed), MANY);
    assert_eq!(asker.results().len(), MANY);
}

/// Wakes itself in each poll, and counts the polls.
async fn restless(polls: Arc<AtomicUsize>, kept: Arc<()>) {
    poll_fn::<(), _>(|context| {
        // Ordering: SeqCst, because speed does not matter in a test.
        polls.fetch_add(1, Ordering::SeqCst);
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    drop(kept);
}

/// The most polls of a future that a thread makes in a row.
const IN_A_ROW: usize = 66;

// pins: K1, K4
#[test]
fn a_future_that_wakes_itself_leaves_its_thread_to_others() {
    for is_taken in [true, false] {
        let asker = Arc::new(Asker::default());
        let (polls, kept) = (Arc::new(AtomicUsize::new(0)), Arc::new(()));
        let future = restless(Arc::clone(&polls), Arc::clone(&kept));
        asker.ask(Until::new(future));
        let mut before = 0;
        for _ in 0..10 {
            // Ordering: SeqCst, because speed does not matter in a test.
            let now = polls.load(Ordering::SeqCst);
            assert!(now > before && now <= before + IN_A_ROW, "{before} {now}");
            before = now;
            let calls = asker.between();
            assert_eq!(calls.len(), 1, "after {now} polls");
            let [call] = <[_; 1]>::try_from(calls).ok().unwrap();
            call();
        }
        let rest = is_taken.then(|| asker.between());
        // If a worker has taken the call out, the process may end before the call.
        asker.end();
        rest.into_iter().flatten().for_each(|call| call());
        assert_eq!(Arc::strong_count(&kept), 1);
    }
}

// pins: K1, K4
#[test]
fn futures_that_wake_each_other_leave_their_thread_to_others() {
    let asker = Arc::new(Asker::default());
    let (polls, kept) = (Arc::new(AtomicUsize::new(0)), Arc::new(()));
    let wakers: Arc<Mutex<[Option<Waker>; 2]>> = Arc::default();
    for own in 0..2 {
        let (polls, kept, wakers) = (polls.clone(), kept.clone(), wakers.clone());
        asker.ask(Until::new(async move {
            poll_fn::<(), _>(|context| {
                // Ordering: SeqCst, because speed does not matter in a test.
                polls.fetch_add(1, Ordering::SeqCst);
                let mut wakers = wakers.lock().unwrap();
                wakers[own] = Some(context.waker().clone());
                let other = wakers[1 - own].clone();
                drop(wakers);
                if let Some(other) = other {
                    other.wake();
                }
                Poll::Pending
            })
            .await;
            drop(kept);
        }));
    }
    for _ in 0..10 {
        // Ordering: SeqCst, because speed does not matter in a test.
        let before = polls.load(Ordering::SeqCst);
        let calls = asker.between();
        assert!(!calls.is_empty());
        calls.into_iter().for_each(|call| call());
        // Ordering: SeqCst, because speed does not matter in a test.
        let now = polls.load(Ordering::SeqCst);
        assert!(now > before && now <= before + 1_000, "{before} {now}");
    }
    *wakers.lock().unwrap() = [None, None];
    asker.end();
    assert_eq!(Arc::strong_count(&kept), 1);
}

/// Polls at once: a step may wait for the effect of such a poll, so the poll can't wait for the
/// step.
// pins: K1
#[test]
fn a_future_that_others_wake_is_polled_at_once_however_often() {
    let (asker, polls) = (Arc::new(Asker::default()), Arc::new(AtomicUsize::new(0)));
    let place: Arc<Mutex<Option<Waker>>> = Arc::default();
    let (own, its_polls) = (Arc::clone(&place), Arc::clone(&polls));
    asker.ask(Until::new(poll_fn::<(), _>(move |context| {
        // Ordering: SeqCst, because speed does not matter in a test.
        its_polls.fetch_add(1, Ordering::SeqCst);
        *own.lock().unwrap() = Some(context.waker().clone());
        Poll::Pending
    })));
    for count in 1..1_000 {
        // Ordering: SeqCst, because speed does not matter in a test.
        assert_eq!(polls.load(Ordering::SeqCst), count);
        let waker = place.lock().unwrap().take().unwrap();
        waker.wake();
        assert!(asker.between().is_empty());
    }
}
