//! The errors of this crate itself: each is an [`io::Error`], as the errors of the system are.

use std::io;

/// Creates the error of a socket closed by this side.
pub(crate) fn closed() -> io::Error {
    io::Error::new(
        io::ErrorKind::NotConnected,
        "the socket is closed on this side: make a new one",
    )
}

/// Creates the error of an operation whose deadline has passed.
pub(crate) fn timed_out() -> io::Error {
    io::Error::new(
        io::ErrorKind::TimedOut,
        "timed out: the deadline has passed; set a later deadline to go on",
    )
}

/// Creates the error of a halted scheduler.
pub(crate) fn halted() -> io::Error {
    io::Error::new(
        io::ErrorKind::NotConnected,
        "the scheduler has halted: use sockets of a running one",
    )
}

/// Creates the error of a thread without a scheduler with a network.
pub(crate) fn no_network() -> io::Error {
    io::Error::other(
        "no network on this thread: give a `Net` to `Builder::driver`, or call `Net::enter`",
    )
}

/// Creates the error of a blocking call on a thread without a spare to replace it.
pub(crate) fn no_process() -> io::Error {
    io::Error::other("a blocking call must come from a process: call it in a task or a step")
}

/// Creates the error of a thread without a process.
#[cfg(feature = "hyper")]
pub(crate) fn not_in_a_process() -> io::Error {
    io::Error::other("no process runs on this thread: call `Rt::current` in a task or a step")
}

/// Creates the error of a call without a result.
pub(crate) fn no_result() -> io::Error {
    io::Error::other("the blocking call left no result: it has panicked, or the scheduler stops")
}

/// Creates the error of a simulation, which has no sockets of the system.
pub(crate) fn no_system() -> io::Error {
    let text = "not available in a simulation: use its simulated sockets and signals";
    io::Error::new(io::ErrorKind::Unsupported, text)
}
