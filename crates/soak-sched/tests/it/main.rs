//! The soak as a library and as a program, and what its watchdog says of one that hangs.

mod program;
mod rounds;
mod watchdog;
