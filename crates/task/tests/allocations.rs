//! A task is a single allocation. A message, a command or a wake allocates nothing.

use ganger_proc_api::TypedCommand;
use ganger_sched::{ProcessState, Scheduler};
use ganger_task::Cx;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does the work. The count allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Ordering: Relaxed: counts.
        ALLOCATED.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of this function, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of this function, which is the same.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocated() -> usize {
    // Ordering: SeqCst: the test has waited until the counting threads were idle.
    ALLOCATED.load(Ordering::SeqCst)
}

struct Double(u64);

impl TypedCommand for Double {
    type Answer = u64;
}

/// How many of each are looked at.
const MANY: usize = 2_000;

/// The most allocations for all of them: buffers grow.
const FEW: usize = 50;

fn until(holds: impl Fn() -> bool) {
    while !holds() {
        std::thread::yield_now();
    }
}

/// Runs a single test in the program: further tests would allocate meanwhile.
// pins: A9
#[test]
fn a_task_is_one_allocation_and_what_it_waits_for_is_none() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let double =
        |Double(number), completer: ganger_proc_api::Reply<<Double as TypedCommand>::Answer>| {
            completer.complete(2 * number);
            Ok(())
        };
    scheduler.register_for(double).unwrap();
    scheduler.start().unwrap();
    let taken = Arc::new(AtomicUsize::new(0));
    let its_taken = Arc::clone(&taken);
    let task = scheduler.spawn(async move |cx: Cx<u64>| {
        while let Some(number) = cx.recv().await {
            cx.command(Double(number)).await?;
            // Ordering: SeqCst: the test waits for it.
            its_taken.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    });
    let task = task.unwrap();
    let send = |count: usize| {
        for turn in 1..=count {
            task.send(7).unwrap();
            // Ordering: SeqCst: the test waits for it.
            until(|| taken.load(Ordering::SeqCst) == turn);
        }
        taken.store(0, Ordering::SeqCst);
    };
    send(MANY);
    let before = allocated();
    send(MANY);
    let messages = allocated() - before;
    assert!(
        messages < FEW,
        "{messages} allocations for {MANY} messages and commands"
    );

    let waker = task.address().untyped().waker();
    let before = allocated();
    (0..MANY).for_each(|_| waker.wake_by_ref());
    let is_idle = || {
        scheduler
            .process(task.pid())
            .is_some_and(|it| it.state == ProcessState::Idle)
    };
    until(is_idle);
    let wakes = allocated() - before;
    assert!(wakes < FEW, "{wakes} allocations for {MANY} wakes");

    // A state machine of a task's size takes the memory again.
    let machine = || {
        let machine = ganger_proc_api::process_fn(|_, _, out| {
            out.done(());
            Ok(())
        });
        drop(scheduler.spawn(machine).unwrap().wait());
    };
    let task = || {
        drop(scheduler.spawn(async |_: Cx<u64>| Ok(())).unwrap().wait());
    };
    let [machines, tasks] = [&machine as &dyn Fn(), &task].map(|spawn| {
        (0..MANY).for_each(|_| spawn());
        let before = allocated();
        (0..MANY).for_each(|_| spawn());
        allocated() - before
    });
    // How often a wait takes memory, because its process is still there, differs by dozens.
    assert!(
        tasks < machines + MANY + MANY / 2,
        "{tasks} allocations for {MANY} tasks, and {machines} for as many state machines"
    );
}
