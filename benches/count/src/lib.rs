//! Single acts of a scheduler with a single worker, and of the queues, repeated: the cost of a
//! step, a send, a spawn, a command, a question, a value of a channel, a turn of a mutex, a timer,
//! a request over a socket.
//!
//! `cargo xtask bench --instructions` runs the program
//! `ganger-count` under callgrind. Threads meet only at the beginning and at the end of an act, so
//! that counts hardly differ from run to run.

mod act;
mod actors;
mod commands;
mod one_worker;
mod oneself;
mod pair;
mod sockets;
mod spawning;
mod stream;
mod tasks;
mod timers;

pub use act::Act;
pub use one_worker::OneWorker;
