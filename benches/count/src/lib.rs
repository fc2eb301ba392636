//! Single acts of a scheduler with a single worker, and of the queues, repeated: the cost of a
//! step, a send, a spawn, a command.
//!
//! The benchmark `step` measures their time. `cargo xtask bench --instructions` runs the program
//! `ganger-count` under callgrind. Threads meet only at the beginning and at the end of an act, so
//! that counts hardly differ from run to run.

mod act;
mod commands;
mod one_worker;
mod oneself;
mod pair;
mod spawning;
mod stream;

pub use act::Act;
pub use one_worker::OneWorker;
