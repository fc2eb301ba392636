//! Where a case runs, and how a case waits there: its thread waits, or a simulation moves.

use super::PATIENCE;
use ganger_proc_api::{CommandError, Envelope, ExitReason, Pid, SendError, SendErrorKind};
use ganger_sched::{Answer, Call, Handle, ProcessHandle};
use std::ops::{Deref, Range};
use std::sync::Barrier;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The ground of a harness. Each method of a simulation moves the machines, by
/// [`wait`](Self::wait); [`Threads`] has them wait on the case's thread.
pub trait Ground: Copy {
    /// Whether processes move while the case does something else. A case that needs a thread of its
    /// own is over at once elsewhere.
    const HAS_THREADS: bool = false;

    /// Waits until the condition holds, for this time at most. Returns whether it holds.
    fn wait(self, time: Duration, has_come: &mut dyn FnMut() -> bool) -> bool;

    /// Lets other threads or machines move for a moment.
    fn breathe(self);

    /// Stops a scheduler.
    fn stop(self, scheduler: &Handle, deadline: Duration);

    /// Returns the count for a case: less in the gate than in a night, whose environment has
    /// `GANGER_CASES=full`.
    fn count(self, gate: u64, full: u64) -> u64;

    /// Calls the first of both before the second, after it, or beside it.
    fn at_once<T: Send>(self, acts: [&(dyn Fn() -> T + Sync); 2]) -> [T; 2];

    /// Begins to send numbers in order, while other senders go on. The sender waits for room.
    fn begin_sends(self, from: &Handle, to: Pid, numbers: Range<u64>) -> Sends {
        Sends::Left(from.clone(), to, numbers)
    }

    /// Waits until all numbers are sent.
    fn finish(self, sends: Vec<Sends>) {
        for mut it in sends {
            while it.send_next(self) {}
        }
    }

    /// Sends, and waits for room.
    ///
    /// # Errors
    /// The errors of [`Handle::send_blocking`].
    fn send(self, from: &Handle, envelope: Envelope) -> Result<(), SendError> {
        let mut refused = from.send(envelope).err();
        let mut send_again = || {
            if let Some(error) = refused.take_if(|it| it.kind == SendErrorKind::Full) {
                refused = from.send(error.into_envelope()).err();
            }
            !matches!(&refused, Some(error) if error.kind == SendErrorKind::Full)
        };
        self.wait(PATIENCE, &mut send_again);
        refused.map_or(Ok(()), Err)
    }

    /// Returns the next message, unless none comes within this time.
    fn next<T>(self, told: &Receiver<T>, time: Duration) -> Option<T> {
        let mut next = Err(TryRecvError::Empty);
        self.wait(time, &mut || {
            next = told.try_recv();
            !matches!(next, Err(TryRecvError::Empty))
        });
        next.ok()
    }

    /// Returns the answer, or [`CommandError::Timeout`].
    ///
    /// # Errors
    /// The errors of [`Answer::wait_timeout`].
    fn answer<T: Send + 'static>(self, open: Answer<T>, time: Duration) -> Result<T, CommandError> {
        match self.wait(time, &mut || open.is_ready()) {
            true => open.wait(),
            false => Err(CommandError::Timeout),
        }
    }

    /// Waits for the end of a process.
    ///
    /// # Panics
    /// The process does not end.
    fn end<M>(self, process: ProcessHandle<M>) -> ExitReason {
        assert!(
            self.wait(PATIENCE, &mut || process.is_finished()),
            "the process ends"
        );
        process.wait()
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// The errors of [`Call::wait_timeout`].
    fn ask<T: Send + 'static>(self, call: Call<T>) -> Result<T, CommandError> {
        self.ask_for(call, PATIENCE)
    }

    /// Asks, and waits for the answer for this time.
    ///
    /// # Errors
    /// The errors of [`Call::wait_timeout`].
    fn ask_for<T: Send + 'static>(self, call: Call<T>, time: Duration) -> Result<T, CommandError> {
        self.answer(call.begin(), time)
    }

    /// Waits while nothing happens for certain.
    fn rest(self, time: Duration) {
        self.wait(time, &mut || false);
    }

    /// Waits for a condition that comes for certain, but without a notice.
    ///
    /// # Panics
    /// The condition does not come.
    fn eventually(self, what: &str, mut is_so: impl FnMut() -> bool) {
        assert!(self.wait(PATIENCE, &mut is_so), "{what}");
    }

    /// Sends, and waits for room where there is none.
    ///
    /// # Panics
    /// A message is refused.
    fn send_all(self, from: &Handle, to: Pid, numbers: impl IntoIterator<Item = u64>) {
        for number in numbers {
            let envelope = Envelope::new(None, to, "number", number);
            self.send(from, envelope).expect("it is sent");
        }
    }
}

/// A sender of numbers.
#[derive(Debug)]
pub enum Sends {
    /// From a thread.
    Thread(JoinHandle<()>),
    /// The numbers left to send.
    Left(Handle, Pid, Range<u64>),
}

impl Sends {
    /// Sends the next number. Returns whether a number was left.
    pub fn send_next(&mut self, ground: impl Ground) -> bool {
        match self {
            Self::Left(from, to, numbers) => {
                let next = numbers.next();
                ground.send_all(from, *to, next);
                next.is_some()
            }
            Self::Thread(_) => false,
        }
    }
}

/// Schedulers with threads: a case waits on its own.
#[derive(Debug, Clone, Copy)]
pub struct Threads;

impl Ground for Threads {
    const HAS_THREADS: bool = true;

    fn wait(self, time: Duration, has_come: &mut dyn FnMut() -> bool) -> bool {
        let (_tell, told) = channel::<()>();
        let mut left = time;
        while !has_come() {
            if left.is_zero() {
                return false;
            }
            let pause = left.min(Duration::from_millis(2));
            left -= pause;
            let _nothing_is_told = told.recv_timeout(pause);
        }
        true
    }

    fn breathe(self) {
        thread::yield_now();
    }

    fn stop(self, scheduler: &Handle, deadline: Duration) {
        scheduler.stop(deadline).expect("the scheduler stops");
    }

    fn count(self, gate: u64, full: u64) -> u64 {
        match is_full() {
            true => full,
            false => gate,
        }
    }

    fn at_once<T: Send>(self, [one, other]: [&(dyn Fn() -> T + Sync); 2]) -> [T; 2] {
        let both = Barrier::new(2);
        let begin = |act: &(dyn Fn() -> T + Sync)| {
            both.wait();
            act()
        };
        thread::scope(|scope| {
            let other = scope.spawn(|| begin(other));
            [begin(one), other.join().expect("it returns")]
        })
    }

    fn begin_sends(self, from: &Handle, to: Pid, numbers: Range<u64>) -> Sends {
        let from = from.clone();
        Sends::Thread(thread::spawn(move || self.send_all(&from, to, numbers)))
    }

    fn finish(self, sends: Vec<Sends>) {
        for it in sends {
            if let Sends::Thread(thread) = it {
                thread.join().expect("all are sent");
            }
        }
    }

    fn send(self, from: &Handle, envelope: Envelope) -> Result<(), SendError> {
        from.send_blocking(envelope)
    }

    fn next<T>(self, told: &Receiver<T>, time: Duration) -> Option<T> {
        told.recv_timeout(time).ok()
    }

    fn answer<T: Send + 'static>(self, open: Answer<T>, time: Duration) -> Result<T, CommandError> {
        open.wait_timeout(time)
    }

    fn end<M>(self, process: ProcessHandle<M>) -> ExitReason {
        let ended = process.wait_timeout(PATIENCE);
        ended.unwrap_or_else(|process| panic!("{process:?} does not end"))
    }

    fn ask_for<T: Send + 'static>(self, call: Call<T>, time: Duration) -> Result<T, CommandError> {
        call.wait_timeout(time)
    }

    fn rest(self, time: Duration) {
        thread::sleep(time);
    }
}

/// Calls a case with [`Threads`].
pub fn on_threads(case: impl Fn(Threads)) {
    case(Threads);
}

/// Returns whether a case has the numbers and times of a night.
#[must_use]
pub fn is_full() -> bool {
    std::env::var_os("GANGER_CASES").is_some_and(|it| it == "full")
}

/// A scheduler of a harness, and its ground.
#[derive(Debug, Clone)]
pub struct Side<G> {
    /// The scheduler.
    pub handle: Handle,
    /// Where the scheduler runs.
    pub ground: G,
}

impl<G: Ground> Side<G> {
    /// Stops the scheduler.
    pub fn stop(&self, deadline: Duration) {
        self.ground.stop(&self.handle, deadline);
    }
}

impl<G> Deref for Side<G> {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
    }
}
