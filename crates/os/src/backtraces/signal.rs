//! The signal: its handler, which all samplers of the program share, and its sending.

use super::sample::{Registers, Sample};
use crate::sampler::SamplerError;
use std::ffi::c_void;
use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

thread_local! {
    /// What the handler fills on this thread, or null. Without a destructor and constant, so that a
    /// handler may look at it at any time; each thread that is asked has touched it before.
    static SAMPLE: AtomicPtr<Sample> = const { AtomicPtr::new(ptr::null_mut()) };
}

/// Held while a handler is looked for and installed.
static INSTALLING: Mutex<()> = Mutex::new(());

/// The calling thread answers with that, which lives until another or none is set.
pub(super) fn set_sample(sample: Option<&Sample>) {
    let sample = sample.map_or(ptr::null(), ptr::from_ref).cast_mut();
    // Ordering: SeqCst: the handler, which runs on this very thread, is not to see a sample that
    // has not been made yet, or is gone.
    SAMPLE.with(|it| it.swap(sample, Ordering::SeqCst));
}

/// Installs the handler for that real-time signal, or for the last but one, if it is not there yet.
/// It stays: a signal that is still on its way would end the program otherwise.
///
/// # Errors
/// When the signal is no real-time signal, or another part of the program handles or ignores it.
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
        // Another part of the program was faster by a moment, and is left without: two want it.
        _ => Err(SamplerError::SignalTaken { signal }),
    }
}

/// Sends the signal to a thread of this process, which is alive. Returns whether it is on its way.
///
/// Not when the handler has been replaced: another would not know the signal, and none would end
/// the program.
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

/// The handler's address, as `sigaction` has it.
fn handler() -> libc::sighandler_t {
    on_signal as extern "C" fn(_, _, _) as libc::sighandler_t
}

/// Which handler there is, or was before this one.
fn action(signal: i32, new: Option<&libc::sigaction>) -> io::Result<libc::sighandler_t> {
    let mut old = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: the pointers are valid or null, as the call wants them; a handler that is installed
    // does only what a handler may.
    let result = unsafe {
        let new = new.map_or(ptr::null(), ptr::from_ref);
        libc::sigaction(signal, new, old.as_mut_ptr())
    };
    if result == 0 {
        // SAFETY: the call has written it.
        Ok(unsafe { old.assume_init() }.sa_sigaction)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Runs anywhere in anything: does nothing but loads and stores, so that it keeps `errno` as well.
extern "C" fn on_signal(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // Ordering: Acquire pairs with the swap in `set_sample`, on the same thread.
    let sample = SAMPLE.with(|it| it.load(Ordering::Acquire));
    // SAFETY: not null while the thread's sample is there; the handler runs on that thread, which
    // removes it only after it has set another. The system gives a handler with `SA_SIGINFO` the
    // registers.
    unsafe {
        if let Some(sample) = sample.as_ref() {
            sample.answer(registers(&*context.cast()));
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
