//! A future stays where it was polled first.

use crate::support::{number, start, until};
use ganger_proc_api::{Context, Events, ExitReason, Process, StepOutput, StepResult};
use ganger_sched::{ContextExt, ProcessState};
use ganger_task::{Cx, process};
use std::marker::PhantomPinned;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{self, Poll};

/// Is ready after enough polls, all at the same address.
struct Still {
    address: usize,
    polls: u64,
    shared: Arc<AtomicUsize>,
    _pinned: PhantomPinned,
}

impl Future for Still {
    type Output = u64;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<u64> {
        // SAFETY: nothing is moved.
        let this = unsafe { self.get_unchecked_mut() };
        let address = (&raw const *this).addr();
        if this.polls > 0 {
            assert_eq!(this.address, address, "the future has moved");
        }
        this.address = address;
        this.polls += 1;
        // Ordering: SeqCst, here and below: the test waits for it.
        this.shared.fetch_add(1, Ordering::SeqCst);
        let _ = context;
        match this.polls {
            10 => Poll::Ready(this.polls),
            _ => Poll::Pending,
        }
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        assert_eq!(
            self.address,
            (&raw const *self).addr(),
            "the future has moved"
        );
    }
}

fn still(shared: &Arc<AtomicUsize>) -> Still {
    Still {
        address: 0,
        polls: 0,
        shared: Arc::clone(shared),
        _pinned: PhantomPinned,
    }
}

/// Checks that the process is not moved: without a word to stay, a process moves at its second
/// wait.
// pins: A9
#[test]
fn a_future_has_one_address_over_many_waits() {
    let scheduler = start(1);
    let polls = Arc::new(AtomicUsize::new(0));
    let its_polls = Arc::clone(&polls);
    let task = scheduler.spawn(async move |_: Cx<u64>| Ok(still(&its_polls).await));
    let task = task.unwrap();
    let waker = task.address().untyped().waker();
    for poll in 1..=10 {
        until("it is polled", || polls.load(Ordering::SeqCst) == poll);
        if poll < 10 {
            let state = || scheduler.process(task.pid()).map(|it| it.state);
            until("it waits", || state() == Some(ProcessState::Idle));
            waker.wake_by_ref();
        }
    }
    assert_eq!(number(task), 10);
}

/// Starts tasks in each way of a process.
struct Starter(Arc<AtomicUsize>);

impl Process for Starter {
    fn step(&mut self, ctx: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        let polls = Arc::clone(&self.0);
        let address = ctx.spawn(async move |_: Cx<u64>| Ok(still(&polls).await))?;
        let polls = Arc::clone(&self.0);
        let boxed = process(async move |_: Cx<u64>| Ok(still(&polls).await));
        let pid = ctx.submit(boxed, "main", ())?;
        drop((address, pid));
        out.done(());
        Ok(())
    }
}

// pins: A9
#[test]
fn a_future_has_one_address_however_it_was_started() {
    let scheduler = start(1);
    let polls = Arc::new(AtomicUsize::new(0));
    let starter = scheduler.spawn(Starter(Arc::clone(&polls))).unwrap();
    assert!(matches!(starter.wait(), ExitReason::Done(_)));
    for poll in 1..=10 {
        until("both are polled", || {
            polls.load(Ordering::SeqCst) == 2 * poll
        });
        for process in scheduler.processes() {
            until("it waits", || {
                let state = scheduler.process(process.pid).map(|it| it.state);
                matches!(state, None | Some(ProcessState::Idle))
            });
            if let Some(address) = scheduler.address(process.pid) {
                address.waker().wake();
            }
        }
    }
    until("both have ended", || scheduler.stats().live == 0);
    assert!(scheduler.stats().total.panics == 0);
}
