//! The memory of idle processes, and the rest after their end: shown, and checked.
//!
//! ```sh
//! cargo run --release -p ganger-sched --example idle_crowd -- 10000000
//! ```
//!
//! Starts this many processes, waits until all are idle, sends each a message by its PID, upon
//! which it ends, twice, and stops. At each stage it prints the memory requested from its allocator
//! and not returned (heap), and the part in memory (resident; Linux alone). Resident memory outside
//! of the heap is kept by the allocator; the list of PIDs is this program's own.
//!
//! The program fails, with an error that names the excess, when an idle process takes more than is
//! promised, when a step or a message is missing or comes twice, or when memory does not come back.
#![allow(missing_docs)]

use ganger_proc_api::{
    BoxError, Context, Event, Events, Message, Payload, Pid, Process, StepOutput, StepResult,
};
use ganger_sched::Scheduler;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

struct Counting;

static HEAP: AtomicUsize = AtomicUsize::new(0);

/// The most bytes of an idle process beyond its own state, which is nothing here. A build for
/// simulations keeps another number for each.
const IDLE: u64 = 256 + if cfg!(feature = "sim") { 8 } else { 0 };

/// The most bytes that the system's allocator may keep for each process of the crowd before.
const KEPT: u64 = 16;

/// The most bytes left of an ended process, once kept memory has been released: the table of PIDs
/// keeps its size, and the system's allocator keeps a part.
const RELEASED: u64 = 48;

/// The most resident bytes left of it when the scheduler is gone as well: the system's allocator's.
const GONE: u64 = 8;

/// The most bytes on top, whatever the number of processes: on the heap, and of resident memory,
/// which includes the program's code.
const HEAP_SLACK: u64 = 1 << 20;
const RESIDENT_SLACK: u64 = 8 << 20;

/// Longer than anything but a hang.
const LONG: Duration = Duration::from_secs(600);

/// The number of handled messages, and the sum of their numbers.
static HANDLED: AtomicU64 = AtomicU64::new(0);
static SUM: AtomicU64 = AtomicU64::new(0);

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
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            if let Event::Message(message) = event {
                // Ordering: Relaxed, here and below: counts, read when all have ended.
                HANDLED.fetch_add(1, Ordering::Relaxed);
                let number = message.payloads.get(0).and_then(Payload::as_u64);
                SUM.fetch_add(number.ok_or("no number")?, Ordering::Relaxed);
                out.done(());
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Returns the resident bytes of this program, where the system tells.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// The memory of the program, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    pub(crate) heap: u64,
    /// None where the system does not say.
    pub(crate) resident: Option<u64>,
}

impl Used {
    fn now() -> Self {
        Self {
            // Ordering: Relaxed: a sum, as in the allocator.
            heap: HEAP.load(Ordering::Relaxed) as u64,
            resident: resident(),
        }
    }

    /// Checks that the use is no more than at the start, but for so much a process, on the heap and
    /// resident.
    ///
    /// # Errors
    /// The excess, in words.
    pub(crate) fn check(
        self,
        start: Self,
        stage: &str,
        processes: u64,
        most: (u64, u64),
    ) -> Result<(), String> {
        let heap = Some((self.heap, start.heap));
        let resident = self.resident.zip(start.resident);
        for (what, sizes, each, slack) in [
            ("on the heap", heap, most.0, HEAP_SLACK),
            ("resident", resident, most.1, RESIDENT_SLACK),
        ] {
            let Some((now, before)) = sizes else {
                continue;
            };
            let more = now.saturating_sub(before);
            if more > each * processes + slack {
                return Err(format!(
                    "{stage}: {more} bytes more are {what} than at the start, {} for each \
                    of {processes} \
                     processes; it may be {each} each and {slack} in all",
                    more / processes.max(1)
                ));
            }
        }
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn show(stage: &str, processes: u64, time: Duration) -> Used {
    let used = Used::now();
    let part = |bytes: u64| {
        let each = bytes as f64 / processes as f64;
        format!("{:>8.1} MB {each:>7.1} a process", bytes as f64 / 1e6)
    };
    let resident = used.resident.map_or_else(|| "?".to_owned(), part);
    let seconds = time.as_secs_f64();
    println!(
        "{stage:<28} {seconds:>7.2} s  heap {}  resident {resident}",
        part(used.heap)
    );
    used
}

/// Checks a count.
///
/// # Errors
/// The difference.
pub(crate) fn check_count(what: &str, counted: u64, expected: u64) -> Result<(), String> {
    if counted == expected {
        return Ok(());
    }
    Err(format!("{what}: {counted}, where it must be {expected}"))
}

/// Waits until `condition` holds.
///
/// # Errors
/// The missing event.
fn wait(what: &str, mut condition: impl FnMut() -> bool) -> Result<(), String> {
    let begun = Instant::now();
    while !condition() {
        if begun.elapsed() > LONG {
            return Err(format!("{what}: not after {LONG:?}"));
        }
        thread::yield_now();
    }
    Ok(())
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
    crowd(processes)
}

/// Runs the program.
///
/// # Errors
/// The failed check.
pub(crate) fn crowd(processes: u64) -> Result<(), BoxError> {
    let scheduler = Scheduler::start_default()?;
    // Of this program's own, and there before anything is measured.
    let mut pids = vec![Pid::new(scheduler.host_name(), 0); usize::try_from(processes)?];
    let start = show("started", processes, Duration::ZERO);
    let mut sent = 0_u64;
    for round in 1..=2 {
        let begun = Instant::now();
        let ended = scheduler.stats().ended();
        for pid in &mut pids {
            *pid = scheduler.spawn(Idle)?.pid();
        }
        let steps = processes * (2 * round - 1);
        wait("all are idle", || {
            let stats = scheduler.stats();
            stats.total.steps >= steps && stats.sleeping == stats.workers
        })?;
        let stage = format!("{round}: all are idle");
        let used = show(&stage, processes, begun.elapsed());
        let most = (IDLE, IDLE + (round - 1) * KEPT);
        used.check(start, &stage, processes, most)?;
        check_count(
            "steps before the messages",
            scheduler.stats().total.steps,
            steps,
        )?;
        let begun = Instant::now();
        for &pid in &pids {
            scheduler.send(Message::new("end", pid.id()).to(pid))?;
            sent = sent.wrapping_add(pid.id());
        }
        wait("all have ended", || {
            let stats = scheduler.stats();
            stats.total.ended() == ended + processes && stats.live == 0
        })?;
        show(
            &format!("{round}: all have ended"),
            processes,
            begun.elapsed(),
        );
        let stats = scheduler.stats().total;
        check_count("steps", stats.steps, 2 * round * processes)?;
        // Ordering: Relaxed: the counting processes have ended, and the scheduler's counts say so.
        let (handled, sum) = (HANDLED.load(Ordering::Relaxed), SUM.load(Ordering::Relaxed));
        check_count("messages handled", handled, round * processes)?;
        check_count("the sum of what was in them", sum, sent)?;
        let begun = Instant::now();
        scheduler.release_memory();
        let stage = format!("{round}: memory released");
        let used = show(&stage, processes, begun.elapsed());
        used.check(start, &stage, processes, (RELEASED, RELEASED))?;
    }
    let begun = Instant::now();
    let weak = scheduler.downgrade();
    drop(scheduler);
    wait("nothing holds the scheduler", || weak.upgrade().is_none())?;
    show("the scheduler is gone", processes, begun.elapsed());
    let begun = Instant::now();
    let stage = "all memory released";
    // The last thread frees the scheduler after nothing holds it any more, perhaps a moment later.
    // Another scheduler has the allocator return its memory.
    let is_free = || {
        let another = Scheduler::builder().workers(1).build();
        another.is_ok_and(|another| {
            another.release_memory();
            drop(another);
            let used = Used::now();
            used.check(start, stage, processes, (0, GONE)).is_ok()
        })
    };
    let waited = wait(stage, is_free);
    let used = show(stage, processes, begun.elapsed());
    used.check(start, stage, processes, (0, GONE))?;
    waited?;
    Ok(())
}
