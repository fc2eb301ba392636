//! A timer of a process takes no memory of its own, whether it fires or is taken back.

use ganger_proc_api::{Event, process_fn};
use ganger_sched::Scheduler;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the calls go to the system's allocator unchanged; the counts change nothing else.
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
    // Ordering: SeqCst: the test has waited for the counting threads.
    ALLOCATED.load(Ordering::SeqCst)
}

/// How many timers are looked at.
const MANY: usize = 2_000;

/// The most allocations for all timers: growing buffers.
const FEW: usize = 100;

/// Counts the allocations while a process arms the timers, each of which fires or is taken back.
fn of_timers(scheduler: &Scheduler, fire: bool) -> usize {
    let time = Duration::from_nanos(if fire { 20_000 } else { 3_600_000_000_000 });
    let (mut left, mut before) = (2 * MANY, 0);
    let process = scheduler.spawn(process_fn(move |_, events, out| {
        if left == MANY {
            before = allocated();
        }
        if left == 0 {
            out.done((allocated() - before) as u64);
            return Ok(());
        }
        left -= 1;
        if let Some(Event::Completion(it)) = events.next() {
            it.result?;
        } else {
            out.cancel(1);
        }
        out.sleep(time, 1);
        if !fire {
            out.step_again();
        }
        Ok(())
    }));
    let count = process.unwrap().wait().into_result().unwrap();
    usize::try_from(count.as_u64().unwrap()).unwrap()
}

/// Counts allocations, so this program has one test: other tests would allocate meanwhile.
// pins: T3
#[test]
fn a_timer_takes_no_memory_of_its_own() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    scheduler.start().unwrap();
    for fire in [false, true] {
        let count = of_timers(&scheduler, fire);
        assert!(count < FEW, "{count} allocations, fire: {fire}");
    }
    assert_eq!(scheduler.timers().clone().stats().pending, 0);
}
