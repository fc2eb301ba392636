//! The memory of processes that stay while messages and other processes come and go.
#![cfg(not(ganger_loom))]

#[path = "memory/bursts.rs"]
mod bursts;
#[path = "it/support/mod.rs"]
mod support;
#[path = "memory/typed.rs"]
mod typed;

use ganger_mpsc::node_cache;
use ganger_proc_api::{Context, Event, Events, Message, Process, StepOutput, StepResult};
use ganger_sched::{ProcessHandle, Scheduler};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use support::*;

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

/// How often the allocator has been asked.
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: as the system's allocator, with a count.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Ordering: Relaxed: counts.
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // Ordering: Relaxed: counts.
        ALLOCATED.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the contract of this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Ordering: Relaxed: counts.
        LIVE.fetch_add(size, Ordering::Relaxed);
        // Ordering: Relaxed: counts.
        ALLOCATED.fetch_add(1, Ordering::Relaxed);
        // Ordering: Relaxed: counts.
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the contract of this function.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // Ordering: Relaxed: counts.
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the contract of this function.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Held by the running test, because the count is the whole program's.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many bytes more than alone a process may take. A slab has 4,096.
const SLACK: usize = 1_000;

/// As large as the node of a message, 64 bytes; ends at its first message.
struct Idler([u64; 8]);

impl Process for Idler {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if events.next().is_some() {
            out.done(self.0[0]);
        }
        Ok(())
    }
}

/// Returns the bytes of a process that stays, when `messages` messages are sent between the starts
/// of any two.
fn bytes_each(messages: u64) -> usize {
    const STAY: usize = 2_000;
    let scheduler = start(1);
    let sink = scheduler.submit(waiter(), "main", ()).unwrap();
    let mut stay = Vec::with_capacity(STAY);
    node_cache::clear();
    // Ordering: Relaxed: a count, of acts that this thread has seen.
    let before = LIVE.load(Ordering::Relaxed);
    for _ in 0..STAY {
        stay.push(scheduler.submit(Idler([0; 8]), "main", ()).unwrap());
        for n in 0..messages {
            sink.send(Message::new("n", n)).unwrap();
        }
    }
    for pid in stay.iter().map(|handle| handle.pid()).chain([sink.pid()]) {
        until_state(&scheduler, pid, ganger_sched::ProcessState::Idle);
    }
    // Unused memory kept for later messages does not count.
    node_cache::clear();
    // Ordering: Relaxed: a count, of acts that this thread has seen.
    let after = LIVE.load(Ordering::Relaxed);
    stay.push(sink);
    end(scheduler, stay);
    after.saturating_sub(before) / STAY
}

/// Ends all processes, so the next test counts its own alone.
fn end(scheduler: Scheduler, stay: Vec<ProcessHandle>) {
    let weak = scheduler.downgrade();
    drop(scheduler);
    drop(stay);
    until("nothing holds the scheduler", || weak.upgrade().is_none());
}

// pins: P13
#[test]
fn processes_that_stay_do_not_keep_the_memory_of_messages_that_have_gone() {
    let _alone = alone();
    let alone = bytes_each(0);
    let among = bytes_each(200);
    assert!(
        among <= alone + SLACK,
        "{among} bytes a process among messages, {alone} without"
    );
}

// pins: P12
#[test]
fn processes_that_are_monitored_do_not_keep_the_cells_of_watchers_that_have_ended() {
    const BRIEF: usize = 2_000;
    /// Less than half of the cells of the brief processes. Some cells wait to be used again.
    const SLACK: usize = 64 * BRIEF;
    let _alone = alone();
    let scheduler = start(1);
    let target = scheduler.submit(waiter(), "main", ()).unwrap();
    let pid = target.pid();
    let watch_briefly = |count: usize| {
        for _ in 0..count {
            let brief = process(move |ctx, _, out| {
                ctx.monitor(pid, 1)?;
                out.done(());
                Ok(())
            });
            drop(exit(scheduler.submit(brief, "main", ()).unwrap()));
        }
        until_state(&scheduler, pid, ganger_sched::ProcessState::Idle);
        node_cache::clear();
        // Ordering: Relaxed: a count, of acts that this thread has seen.
        LIVE.load(Ordering::Relaxed)
    };
    let before = watch_briefly(200);
    let after = watch_briefly(BRIEF);
    assert!(
        after <= before + SLACK,
        "{before} bytes, then {after} after {BRIEF} more have come and gone"
    );
    end(scheduler, vec![target]);
}

/// Waits twice before it may stay, or ends at once.
struct Passing {
    stays: bool,
    wakes: u8,
    _size: [u64; 6],
}

impl Process for Passing {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if !self.stays {
            out.done(());
            return Ok(());
        }
        match events.next() {
            Some(Event::Cancel(_)) => out.done(()),
            event => self.wakes += u8::from(event.is_some()),
        }
        Ok(())
    }
}

// pins: P13
#[test]
fn processes_that_stay_do_not_keep_the_memory_of_those_that_have_gone() {
    const STAY: usize = 200;
    let _alone = alone();
    let bytes_each = |passing: usize| {
        let scheduler = start(1);
        let mut stay = Vec::with_capacity(STAY);
        node_cache::clear();
        // Ordering: Relaxed: a count, of acts that this thread has seen.
        let before = LIVE.load(Ordering::Relaxed);
        let submit = |stays| {
            let _size = [0; 6];
            let passing = Passing {
                stays,
                wakes: 0,
                _size,
            };
            scheduler.submit(passing, "main", ()).unwrap()
        };
        for _ in 0..STAY {
            let handle = submit(true);
            for _ in 0..2 {
                until_state(&scheduler, handle.pid(), ganger_sched::ProcessState::Idle);
                handle.send(Message::new("wake", ())).unwrap();
            }
            stay.push(handle);
            for _ in 0..passing {
                drop(submit(false));
            }
        }
        until("others have gone", || scheduler.stats().live == STAY);
        scheduler.release_memory();
        // Ordering: Relaxed: a count, of acts that this thread has seen.
        let after = LIVE.load(Ordering::Relaxed);
        end(scheduler, stay);
        after.saturating_sub(before) / STAY
    };
    let (alone, among) = (bytes_each(0), bytes_each(100));
    assert!(
        among <= alone + SLACK,
        "{among} bytes a process among others, {alone} without"
    );
}
