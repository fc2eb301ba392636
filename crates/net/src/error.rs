//! The errors of this crate's own: all are of [`io::Error`], as those of the system.

use std::io;

/// The socket was closed by this side.
pub(crate) fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the socket was closed here")
}

/// The deadline of the operation has passed.
pub(crate) fn timed_out() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the deadline has passed")
}

/// The scheduler has halted.
pub(crate) fn halted() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the scheduler has halted")
}

/// The thread belongs to no scheduler with a network.
pub(crate) fn no_network() -> io::Error {
    io::Error::other(
        "no network on this thread: give a `Net` to `Builder::driver`, or call `Net::enter`",
    )
}

/// The call blocks, and no spare could take the place of the thread.
pub(crate) fn no_process() -> io::Error {
    io::Error::other("what blocks is to be called by a process of a scheduler")
}

/// The call that was waited for is over, and left no result.
pub(crate) fn no_result() -> io::Error {
    io::Error::other("the call has panicked, or the scheduler stops")
}

/// A simulation has no sockets of the system.
pub(crate) fn no_system() -> io::Error {
    let text = "a simulation has simulated sockets and signals, and none of the system";
    io::Error::new(io::ErrorKind::Unsupported, text)
}
