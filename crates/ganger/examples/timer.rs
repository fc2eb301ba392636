//! A timer: a command `sleep`, which is completed after a number of milliseconds, and a process
//! that uses it to act periodically. `cargo run -p ganger --example timer`
//!
//! One thread serves all sleepers. It waits on a condition variable until the first one is due. It
//! is woken earlier only when another sleeper becomes the first; without sleepers it does nothing.

use ganger::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Takes a number of milliseconds.
pub(crate) const SLEEP: CommandId = CommandId::new(256);

fn main() -> Result<(), BoxError> {
    let timer = Timer::start();
    let scheduler = Scheduler::builder().build()?;
    scheduler.register(SLEEP, "sleep", timer.handler())?;
    scheduler.start()?;

    let (often, seldom) = (
        Periodic::new("often", 20, 6),
        Periodic::new("seldom", 50, 3),
    );
    let often = scheduler.spawn(often)?;
    let seldom = scheduler.spawn(seldom)?;
    println!("often: {}, seldom: {}", often.wait(), seldom.wait());
    Ok(())
}

/// Completes each sleep when it is due. Its drop ends the thread; open sleeps then fail.
pub(crate) struct Timer {
    asleep: Arc<Asleep>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Asleep {
    queue: Mutex<Queue>,
    /// Signals that another sleep has become the first, or that the timer ends.
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    /// By when they are due, and by a number, because several may be at the same time.
    due: BTreeMap<(Instant, u64), Completer>,
    next: u64,
    is_over: bool,
}

impl Timer {
    pub(crate) fn start() -> Self {
        let asleep = Arc::<Asleep>::default();
        let own = Arc::clone(&asleep);
        let thread = Some(thread::spawn(move || own.serve()));
        Self { asleep, thread }
    }

    pub(crate) fn handler(&self) -> impl Handler + use<> {
        let asleep = Arc::clone(&self.asleep);
        move |command: Command, completer: Completer| {
            let millis = command.payloads.into_first().as_u64();
            let millis = Duration::from_millis(millis.ok_or("not a number of milliseconds")?);
            let due = Instant::now().checked_add(millis).ok_or("too long")?;
            asleep.add(due, completer)
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        let mut queue = self.asleep.lock();
        queue.is_over = true;
        let left = std::mem::take(&mut queue.due);
        drop(queue);
        self.asleep.changed.notify_one();
        // Dropping a completer answers.
        drop(left);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Asleep {
    fn add(&self, due: Instant, completer: Completer) -> Result<(), BoxError> {
        let mut queue = self.lock();
        if queue.is_over {
            return Err("the timer has ended".into());
        }
        let key = (due, queue.next);
        queue.next += 1;
        queue.due.insert(key, completer);
        if queue
            .due
            .first_key_value()
            .is_some_and(|(first, _)| *first == key)
        {
            self.changed.notify_one();
        }
        Ok(())
    }

    fn serve(&self) {
        let mut queue = self.lock();
        while !queue.is_over {
            let now = Instant::now();
            queue = match queue.due.first_entry() {
                None => self
                    .changed
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(first) if first.key().0 > now => {
                    let left = first.key().0 - now;
                    let woken = self.changed.wait_timeout(queue, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                Some(first) => {
                    let completer = first.remove();
                    // The lock is free while a process is woken.
                    drop(queue);
                    completer.complete(());
                    self.lock()
                }
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Prints something `left` times, every `millis` milliseconds.
pub(crate) struct Periodic {
    name: &'static str,
    millis: u64,
    left: u32,
    is_asleep: bool,
}

impl Periodic {
    pub(crate) fn new(name: &'static str, millis: u64, left: u32) -> Self {
        Self {
            name,
            millis,
            left,
            is_asleep: false,
        }
    }
}

impl Process for Periodic {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            if let Event::Completion(completion) = event {
                completion.result?;
                self.is_asleep = false;
                self.left -= 1;
                println!("{}: {} more", self.name, self.left);
            }
        }
        if self.left == 0 {
            out.done(());
        } else if !self.is_asleep {
            self.is_asleep = true;
            out.yield_command(Command::new(SLEEP, self.millis), 0);
        }
        Ok(())
    }
}
