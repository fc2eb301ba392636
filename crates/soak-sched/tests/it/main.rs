//! The soak as a library and as a program, and its watchdog's report on a hanging soak.

mod program;
mod rounds;
mod watchdog;
