//! What idle processes take of memory, and what is left of it when they have ended.
//!
//! ```sh
//! cargo run --release -p ganger-sched --example idle_crowd -- 10000000
//! ```
//!
//! Starts that many processes, waits until all are idle, sends each a message by its PID, upon which it
//! ends, twice, and stops. At each stage it prints what the program has asked of its allocator and not given back
//! (heap), and what of it is in memory (resident; Linux alone). What is resident and not on the heap is
//! kept by the allocator; the list of PIDs is this program's own.
#![allow(missing_docs)]

use ganger_proc_api::{BoxError, Event, Events, Message, Pid, Process, StepOutput};
use ganger_sched::Scheduler;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

struct Counting;

static HEAP: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all is left to the system's allocator; the counter changes nothing about it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Ordering: Relaxed, here and below: a sum.
        HEAP.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: by the contract of this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HEAP.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: by the contract of this function.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Waits idle for a message, and ends with it.
struct Idle;

impl Process for Idle {
    fn step(&mut self, events: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
        out.idle();
        if events.any(|event| matches!(event, Event::Message(_))) {
            out.done(());
        }
        Ok(())
    }
}

/// The bytes of this program that are in memory, where the system tells.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn show(stage: &str, processes: u64, time: Duration) {
    // Ordering: Relaxed, as above.
    let heap = HEAP.load(Ordering::Relaxed) as u64;
    let part = |bytes: u64| {
        let each = bytes as f64 / processes as f64;
        format!("{:>8.1} MB {each:>7.1} a process", bytes as f64 / 1e6)
    };
    let resident = resident().map_or_else(|| "?".to_owned(), part);
    let seconds = time.as_secs_f64();
    println!(
        "{stage:<28} {seconds:>7.2} s  heap {}  resident {resident}",
        part(heap)
    );
}

fn wait(mut condition: impl FnMut() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}

fn main() -> Result<(), BoxError> {
    let processes: u64 = match std::env::args().nth(1).map(|number| number.parse()) {
        Some(Ok(number)) => number,
        None => 1_000_000,
        Some(Err(_)) => {
            eprintln!(
                "usage: idle_crowd [PROCESSES]\n\nhow many there are to be; 1000000 unless told"
            );
            std::process::exit(2);
        }
    };
    let scheduler = Scheduler::start_default()?;
    // Of this program's own, and there before anything is measured.
    let mut pids = vec![Pid::new(scheduler.host_name(), 0); usize::try_from(processes)?];
    show("started", processes, Duration::ZERO);
    for round in 1..=2 {
        let begun = Instant::now();
        let ended = scheduler.stats().ended();
        for pid in &mut pids {
            *pid = scheduler.submit(Idle, "main", ())?.pid();
        }
        let steps = processes * (2 * round - 1);
        wait(|| {
            let stats = scheduler.stats();
            stats.total.steps >= steps && stats.sleeping == stats.workers
        });
        show(
            &format!("{round}: all are idle"),
            processes,
            begun.elapsed(),
        );
        let begun = Instant::now();
        for &pid in &pids {
            scheduler.send(Message::new("end", ()).to(pid))?;
        }
        wait(|| scheduler.stats().ended() == ended + processes && scheduler.stats().live == 0);
        show(
            &format!("{round}: all have ended"),
            processes,
            begun.elapsed(),
        );
        let begun = Instant::now();
        scheduler.release_memory();
        show(
            &format!("{round}: memory released"),
            processes,
            begun.elapsed(),
        );
    }
    let begun = Instant::now();
    let weak = scheduler.downgrade();
    drop(scheduler);
    // Its last thread frees the rest, perhaps a moment later.
    wait(|| weak.upgrade().is_none());
    show("the scheduler is gone", processes, begun.elapsed());
    Ok(())
}
