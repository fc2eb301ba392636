//! The places at which the program's threads stand still: their names, states and backtraces.
//!
//! Each thread in turn is sent a signal, and its handler notes where the thread is.
//!
//! A signal handler must not unwind, and this handler does: a thread inside of the dynamic linker,
//! or of the unwinder itself, may hang in it for ever. The program stands still already, and is
//! about to end, so it loses nothing. Such a thread has no backtrace; the other threads have
//! theirs.
//!
//! Each question has a slot, which is never freed. So a late answer does no harm.

use std::cell::Cell;
use std::ffi::c_void;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::mem::zeroed;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long a thread has for its answer.
const PATIENCE: Duration = Duration::from_secs(2);
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// The most frames of a backtrace.
const MOST: usize = 100;

/// The frames of a thread.
struct Slot {
    thread: libc::pid_t,
    frames: [AtomicUsize; MOST],
    /// The number of frames plus 1; 0 before the answer.
    answered: AtomicUsize,
}

/// The open question.
static ASKED: AtomicPtr<Slot> = AtomicPtr::new(ptr::null_mut());

/// Returns a paragraph for each thread except the calling thread.
pub(crate) fn report() -> String {
    let signal = libc::SIGRTMAX() - 2;
    if let Err(error) = install(signal) {
        return format!("there are no backtraces: {error}\n");
    }
    // SAFETY: takes nothing and returns a number.
    let own = unsafe { libc::gettid() };
    let mut report = String::new();
    for thread in threads().into_iter().filter(|thread| *thread != own) {
        let (name, state) = described(thread);
        writeln!(report, "thread {thread} {name:?} {state}").expect("a string takes everything");
        match ask(thread, signal) {
            Some(frames) => report.push_str(&text(&frames)),
            None => report.push_str("    it does not answer\n"),
        }
    }
    report
}

/// Returns the threads' ids.
fn threads() -> Vec<libc::pid_t> {
    let Ok(entries) = fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    let mut threads: Vec<_> = names
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect();
    threads.sort_unstable();
    threads
}

/// Returns a thread's name, and the system's letter for its state.
fn described(thread: libc::pid_t) -> (String, String) {
    let read = |file| fs::read_to_string(format!("/proc/self/task/{thread}/{file}"));
    let name = read("comm").unwrap_or_default().trim().to_owned();
    // `id (name) S ...`, and the name may be anything.
    let stat = read("stat").unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.get(..1));
    (name, state.unwrap_or("?").to_owned())
}

fn install(signal: libc::c_int) -> io::Result<()> {
    // SAFETY: all zeros are a valid `sigaction`: the default, no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { zeroed() };
    action.sa_sigaction = on_signal as extern "C" fn(_) as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: the pointers are valid or null, as the call wants them.
    if unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Asks the thread for its place, the innermost function first; none when it does not answer.
fn ask(thread: libc::pid_t, signal: libc::c_int) -> Option<Vec<usize>> {
    let slot: &'static Slot = Box::leak(Box::new(Slot {
        thread,
        frames: [const { AtomicUsize::new(0) }; MOST],
        answered: AtomicUsize::new(0),
    }));
    // Ordering: Release pairs with the Acquire in `on_signal`: the slot is whole before it is seen.
    ASKED.store(ptr::from_ref(slot).cast_mut(), Ordering::Release);
    // SAFETY: takes three numbers, and touches no memory of the process.
    let sent = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, signal) };
    if sent != 0 {
        return None;
    }
    let began = Instant::now();
    loop {
        // Ordering: Acquire pairs with the Release in `on_signal`.
        let answered = slot.answered.load(Ordering::Acquire);
        if answered > 0 {
            let frames = slot.frames[..answered - 1].iter();
            // Ordering: Relaxed: the Acquire above orders them.
            return Some(frames.map(|it| it.load(Ordering::Relaxed)).collect());
        }
        if began.elapsed() > PATIENCE {
            return None;
        }
        thread::sleep(BETWEEN_LOOKS);
    }
}

/// Notes the thread's place. The module's header names the risk.
extern "C" fn on_signal(_: libc::c_int) {
    // Ordering: Acquire pairs with the Release in `ask`.
    let asked = ASKED.load(Ordering::Acquire);
    // SAFETY: null, or a slot, which is never freed.
    let Some(slot) = (unsafe { asked.as_ref() }) else {
        return;
    };
    // SAFETY: takes nothing and returns a number.
    let thread = unsafe { libc::gettid() };
    // Ordering: Relaxed: only this thread writes it.
    if thread != slot.thread || slot.answered.load(Ordering::Relaxed) > 0 {
        return;
    }
    let count = Cell::new(0);
    let note = |frame: &backtrace::Frame| {
        let nth = count.get();
        // Ordering: Relaxed: published by the Release below.
        slot.frames[nth].store(frame.ip().addr(), Ordering::Relaxed);
        count.set(nth + 1);
        nth + 1 < MOST
    };
    // SAFETY: a single thread at a time may call it, and a single thread at a time is asked. A
    // thread that hangs in it has been given up.
    unsafe { backtrace::trace_unsynchronized(note) };
    // Ordering: Release pairs with the Acquire in `ask`.
    slot.answered.store(count.get() + 1, Ordering::Release);
}

/// Writes a line for each function, from where the signal came.
fn text(frames: &[usize]) -> String {
    let mut lines: Vec<Vec<String>> = frames.iter().map(|&frame| symbols(frame)).collect();
    let is_handler =
        |lines: &Vec<String>| lines.iter().any(|line| line.contains("threads::on_signal"));
    if let Some(handler) = lines.iter().position(is_handler) {
        // Also drops the system's frame that called the handler.
        lines.drain(..(handler + 2).min(lines.len()));
    }
    let lines = lines.into_iter().flatten();
    lines.fold(String::new(), |text, line| text + "    " + &line + "\n")
}

/// Returns the function at an address, and the functions around it into which it is inlined.
fn symbols(frame: usize) -> Vec<String> {
    let mut lines = Vec::new();
    // The address before a return address means its call.
    backtrace::resolve(frame.wrapping_sub(1) as *mut c_void, |symbol| {
        let Some(name) = symbol.name() else { return };
        let mut line = format!("{name:#}");
        if let (Some(file), Some(number)) = (symbol.filename(), symbol.lineno()) {
            write!(line, " at {}:{number}", file.display()).expect("a string takes everything");
        }
        lines.push(line);
    });
    if lines.is_empty() {
        lines.push(format!("{frame:#x}"));
    }
    lines
}
