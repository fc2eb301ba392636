//! A thread's copy of itself for an asker: its registers, and the innermost part of its stack.
//!
//! The asker and the signal handler take turns with one word:
//!
//! | word | the room belongs to | goes to |
//! |---|---|---|
//! | `IDLE` | no thread | `ASKED` by an asker; another that asks meanwhile gets nothing |
//! | `ASKED` | the handler, if it comes | `COPYING` by the handler; `IDLE` by an asker in vain |
//! | `COPYING` | the handler | `COPIED` by the handler |
//! | `COPIED` | the asker | `IDLE` by the asker |
//!
//! A late or foreign signal finds a word other than `ASKED`, and its handler copies nothing; or the
//! handler answers the next question, asked meanwhile.
//!
//! **Why not a signal for each question.** The system queues each real-time signal. A thread takes
//! none while it blocks signals or sleeps in a driver, and the user's programs share a limit for
//! all queues (`RLIMIT_SIGPENDING`). So the sample has at most a single signal underway:
//!
//! | `is_underway` | goes to |
//! |---|---|
//! | `false` | `true` by an asker, before it sends a signal; `false` if the system refuses |
//! | `true` | `false` by the handler, before it looks at the word; an asker sends none |
//!
//! An asker writes `ASKED` first, and then swaps `is_underway`. The handler swaps first, and then
//! looks for `ASKED`. If the asker's swap comes later, it finds `false`, and a signal of its own
//! comes. If the handler's swap comes later, it has read the asker's, and so the handler finds
//! `ASKED`. No question is lost. If the program takes the signal out of the queue (`sigwait`), the
//! thread answers no further question.

use crate::sampler::Doing;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{mem, thread};

/// How much of the stack is copied, in words. Frames further out are lost.
const WORDS: usize = 64 * 1024 / 8;

/// How long the asker waits for the answer. A thread without a processor may take longer.
const PATIENCE: Duration = Duration::from_millis(10);

/// How long the asker sleeps between two looks.
const POLL: Duration = Duration::from_micros(50);

/// How long an asker waits for its turn: another one has asked before, and reads the answer.
const TURN: Duration = Duration::from_millis(15);

const IDLE: u32 = 0;
const ASKED: u32 = 1;
const COPYING: u32 = 2;
const COPIED: u32 = 3;

/// The registers from which unwinding starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Registers {
    pub(super) ip: u64,
    pub(super) sp: u64,
    /// The frame pointer, if the code keeps it there.
    pub(super) fp: u64,
    /// The return address, on processors with a register for it.
    pub(super) lr: u64,
}

/// A thread's room for copies.
pub(super) struct Sample {
    word: AtomicU32,
    /// A signal is on its way to the handler.
    is_underway: AtomicBool,
    /// The end of the thread's stack: the address after its outermost word.
    stack_end: u64,
    stack_start: u64,
    /// `ip`, `sp`, `fp` and `lr`.
    registers: [AtomicU64; 4],
    /// The thread's act.
    doing: AtomicU64,
    /// How many words of the stack have been copied.
    copied: AtomicUsize,
    stack: Box<[AtomicU64]>,
}

/// A thread's answer.
pub(super) struct Copied {
    pub(super) registers: Registers,
    /// The thread's act at the interruption.
    pub(super) doing: u64,
    /// The stack from the stack pointer on, outwards.
    pub(super) stack: Vec<u64>,
}

impl Sample {
    /// Makes room for the calling thread; `None` if the system does not tell where its stack is.
    pub(super) fn of_this_thread() -> Option<Self> {
        let (stack_start, stack_end) = stack_of_this_thread()?;
        Some(Self {
            word: AtomicU32::new(IDLE),
            is_underway: AtomicBool::new(false),
            stack_start,
            stack_end,
            registers: Default::default(),
            doing: AtomicU64::new(0),
            copied: AtomicUsize::new(0),
            stack: (0..WORDS).map(|_| AtomicU64::new(0)).collect(),
        })
    }

    /// Asks for a copy, which the signal's handler makes; `None` while another thread asks.
    pub(super) fn ask(&self) -> Option<Asked<'_>> {
        // Ordering: Acquire pairs with the Release in `Asked::drop`: the previous asker has read
        // everything. Release pairs with the Acquire in `answer`: the handler's copy is later than
        // the question.
        let asked = self
            .word
            .compare_exchange(IDLE, ASKED, Ordering::AcqRel, Ordering::Relaxed);
        asked.is_ok().then(|| Asked(self))
    }

    /// Asks when no other thread asks any longer; `None` if that takes long.
    pub(super) fn ask_in_turn(&self) -> Option<Asked<'_>> {
        let patience = Patience::new(TURN);
        loop {
            let asked = self.ask();
            if asked.is_some() || patience.is_over() {
                return asked;
            }
            thread::sleep(POLL);
        }
    }

    /// Copies the calling thread's state, if an asker waits for it. For the signal handler: takes
    /// no lock, allocates nothing, and makes no call outside of its own code but for [`Doing`].
    ///
    /// # Safety
    /// The calling thread is the thread of [`of_this_thread`](Self::of_this_thread), and the
    /// registers are its registers at the interruption.
    pub(super) unsafe fn answer(&self, registers: Registers, doing: &dyn Doing) {
        // Ordering: Acquire pairs with the Release in `Asked::signal`: an asker writes `ASKED`
        // before it relies on this signal.
        self.is_underway.swap(false, Ordering::Acquire);
        // Ordering: Acquire pairs with the Release in `ask`. Relaxed on failure: nothing is read.
        let asked =
            self.word
                .compare_exchange(ASKED, COPYING, Ordering::Acquire, Ordering::Relaxed);
        if asked.is_err() {
            return;
        }
        let Registers { ip, sp, fp, lr } = registers;
        for (to, from) in self.registers.iter().zip([ip, sp, fp, lr]) {
            // Ordering: Relaxed: published by the Release below.
            to.store(from, Ordering::Relaxed);
        }
        // Ordering: Relaxed: published by the Release below.
        self.doing.store(doing.read(), Ordering::Relaxed);
        let mut copied = 0;
        // A step may run on a stack of its own, with unknown bounds.
        if sp % 8 == 0 && (self.stack_start..self.stack_end).contains(&sp) {
            for (at, to) in (sp..self.stack_end - 7).step_by(8).zip(&self.stack) {
                // SAFETY: a thread's stack is mapped from the stack pointer to its end. Only this
                // thread, interrupted here, writes to it, except through borrows that it has given
                // out. The meaning of a word does not matter, nor whether it was ever written.
                let word = unsafe { std::ptr::read_volatile(at as *const u64) };
                // Ordering: Relaxed: published by the Release below.
                to.store(word, Ordering::Relaxed);
                copied += 1;
            }
        }
        // Ordering: Relaxed: published by the Release below.
        self.copied.store(copied, Ordering::Relaxed);
        // Ordering: Release pairs with the Acquire in `Asked::answer`.
        self.word.store(COPIED, Ordering::Release);
    }
}

/// How long an asker waits.
pub(super) struct Patience {
    began: Instant,
    lasts: Duration,
}

impl Patience {
    pub(super) fn new(lasts: Duration) -> Self {
        let began = Instant::now();
        Self { began, lasts }
    }

    /// Creates the time limit for answers.
    pub(super) fn for_answers() -> Self {
        Self::new(PATIENCE)
    }

    fn is_over(&self) -> bool {
        self.began.elapsed() >= self.lasts
    }
}

/// A question, which its drop takes back. No other thread can ask at the same time.
pub(super) struct Asked<'a>(&'a Sample);

impl Asked<'_> {
    /// Calls `send`, unless a signal is underway already. Returns whether a signal is underway.
    /// `send` returns whether it has sent a signal.
    pub(super) fn signal(&self, send: impl FnOnce() -> bool) -> bool {
        let is_underway = &self.0.is_underway;
        // Ordering: Release pairs with the Acquire in `Sample::answer`: its handler sees `ASKED`.
        if is_underway.swap(true, Ordering::Release) {
            return true;
        }
        let is_sent = send();
        if !is_sent {
            // Ordering: Relaxed: there is a single asker, and no other role sets the flag.
            is_underway.store(false, Ordering::Relaxed);
        }
        is_sent
    }

    /// Returns the answer, if the handler begins it within `patience`. Blocks.
    pub(super) fn answer(self, patience: &Patience) -> Option<Copied> {
        let sample = self.0;
        // Ordering: Acquire pairs with the Release in `Sample::answer`.
        while sample.word.load(Ordering::Acquire) != COPIED {
            if patience.is_over() && self.take_back() {
                mem::forget(self);
                return None;
            }
            thread::sleep(POLL);
        }
        // Ordering: Relaxed: the Acquire above orders these loads.
        let [ip, sp, fp, lr] = sample
            .registers
            .each_ref()
            .map(|it| it.load(Ordering::Relaxed));
        // Ordering: Relaxed: the Acquire above orders this load.
        let copied = sample.copied.load(Ordering::Relaxed);
        let stack = sample.stack[..copied].iter();
        Some(Copied {
            registers: Registers { ip, sp, fp, lr },
            // Ordering: Relaxed: the Acquire above orders this load.
            doing: sample.doing.load(Ordering::Relaxed),
            // Ordering: Relaxed: the Acquire above orders these loads.
            stack: stack.map(|word| word.load(Ordering::Relaxed)).collect(),
        })
    }

    /// Takes the question back. `false` if the handler has begun, and will soon be done.
    fn take_back(&self) -> bool {
        // Ordering: Relaxed: the handler has written nothing.
        self.0
            .word
            .compare_exchange(ASKED, IDLE, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        // Ordering: Relaxed: only this asker leaves `COPIED`.
        while self.0.word.load(Ordering::Relaxed) != COPIED {
            if self.take_back() {
                return;
            }
            thread::yield_now();
        }
        // Ordering: Release pairs with the Acquire in `ask`.
        self.0.word.store(IDLE, Ordering::Release);
    }
}

/// Returns the bounds of the calling thread's stack, without the guard.
fn stack_of_this_thread() -> Option<(u64, u64)> {
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut start, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: the first call writes the attributes, the second reads them, and the third destroys
    // them; the second and third run only if the first succeeds.
    let failed = unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let failed = libc::pthread_attr_getstack(attributes.as_ptr(), &mut start, &mut size);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        failed
    };
    let start = start as u64;
    (failed == 0).then(|| (start, start + size as u64))
}
