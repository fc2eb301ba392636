//! The signal: its handler, shared by all samplers of the program, and its sending.

use super::sample::{Registers, Sample};
use crate::sampler::{Doing, SamplerError};
use std::ffi::c_void;
use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

thread_local! {
    /// The handler's data on this thread, or null. A constant without a destructor, so that a
    /// handler may read it at any time; each thread sets it before it is asked.
    static HERE: AtomicPtr<Here<'static>> = const { AtomicPtr::new(ptr::null_mut()) };
}

/// The handler's data on a thread.
pub(super) struct Here<'a> {
    pub(super) sample: &'a Sample,
    pub(super) doing: &'a dyn Doing,
}

/// Held while a handler is looked for and installed.
static INSTALLING: Mutex<()> = Mutex::new(());

/// Calls `f`. Meanwhile the handler on this thread finds `here`.
pub(super) fn with_here<R>(here: &Here<'_>, f: impl FnOnce() -> R) -> R {
    set_here(ptr::from_ref(here).cast());
    let _reset = Reset;
    f()
}

/// Removes the handler's pointer, also when `f` panics.
struct Reset;

impl Drop for Reset {
    fn drop(&mut self) {
        set_here(ptr::null());
    }
}

fn set_here(here: *const Here<'static>) {
    // Ordering: SeqCst: the handler, which runs on the same thread, must not see a sample before it
    // is made or after it is gone.
    HERE.with(|it| it.swap(here.cast_mut(), Ordering::SeqCst));
}

/// Installs the handler for the real-time signal `signal`, or for the last but one, unless it is
/// already installed. The handler stays: without it, a signal still on its way would end the
/// program.
///
/// # Errors
/// If the signal is not a real-time signal, or another part of the program handles or ignores it.
pub(super) fn install(signal: Option<i32>) -> Result<i32, SamplerError> {
    let (min, max) = (libc::SIGRTMIN(), libc::SIGRTMAX());
    let signal = signal.unwrap_or(max - 1);
    if !(min..=max).contains(&signal) {
        return Err(SamplerError::NoRealTimeSignal { signal, min, max });
    }
    let _installing = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: all zeros are a valid `sigaction`: the default, no flags, an empty mask.
    let mut ours: libc::sigaction = unsafe { zeroed() };
    ours.sa_sigaction = handler();
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
    match action(signal, None).map_err(SamplerError::System)? {
        there if there == handler() => return Ok(signal),
        libc::SIG_DFL => {}
        _ => return Err(SamplerError::SignalTaken { signal }),
    }
    match action(signal, Some(&ours)).map_err(SamplerError::System)? {
        before if before == handler() || before == libc::SIG_DFL => Ok(signal),
        // Another part of the program was faster by a moment. Its handler, now replaced, is lost.
        _ => Err(SamplerError::SignalTaken { signal }),
    }
}

/// Sends the signal to a live thread of this process. Returns whether the signal was sent.
///
/// Does not send if the handler has been replaced: another handler would not know the signal, and
/// the default action would end the program.
pub(super) fn send(signal: i32, thread: u32) -> bool {
    if !action(signal, None).is_ok_and(|there| there == handler()) {
        return false;
    }
    let Ok(thread) = i32::try_from(thread) else {
        return false;
    };
    // SAFETY: takes three numbers, and touches no memory of the process.
    thread > 0 && unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, signal) } == 0
}

/// Returns the handler's address, as `sigaction` stores it.
fn handler() -> libc::sighandler_t {
    on_signal as extern "C" fn(_, _, _) as libc::sighandler_t
}

/// Returns the current handler, or with `new` the previous handler.
fn action(signal: i32, new: Option<&libc::sigaction>) -> io::Result<libc::sighandler_t> {
    let mut old = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: the pointers are valid or null, as the call wants them; an installed handler does
    // only what a handler may.
    let result = unsafe {
        let new = new.map_or(ptr::null(), ptr::from_ref);
        libc::sigaction(signal, new, old.as_mut_ptr())
    };
    if result == 0 {
        // SAFETY: the call has written the struct.
        Ok(unsafe { old.assume_init() }.sa_sigaction)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Handles the signal, which may interrupt any code. As it only loads and stores, `errno` stays as
/// well; what it calls by [`Doing`] only loads.
extern "C" fn on_signal(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // Ordering: Acquire pairs with the swap in `set_here`, on the same thread.
    let here = HERE.with(|it| it.load(Ordering::Acquire));
    // SAFETY: null, or what `with_here` on this thread borrows until it has set null again. The
    // handler runs on the sample's thread. The system gives a handler with `SA_SIGINFO` the
    // registers.
    unsafe {
        if let Some(here) = here.as_ref() {
            here.sample.answer(registers(&*context.cast()), here.doing);
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn registers(context: &libc::ucontext_t) -> Registers {
    let registers = &context.uc_mcontext.gregs;
    Registers {
        ip: registers[libc::REG_RIP as usize].cast_unsigned(),
        sp: registers[libc::REG_RSP as usize].cast_unsigned(),
        fp: registers[libc::REG_RBP as usize].cast_unsigned(),
        lr: 0,
    }
}

#[cfg(target_arch = "aarch64")]
fn registers(context: &libc::ucontext_t) -> Registers {
    let registers = &context.uc_mcontext;
    Registers {
        ip: registers.pc,
        sp: registers.sp,
        fp: registers.regs[29],
        lr: registers.regs[30],
    }
}
