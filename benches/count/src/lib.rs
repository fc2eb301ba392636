//! Single acts of a scheduler with one worker, and of the queues, done over and over: what a step, a
//! send, a spawn, a command costs.
//!
//! The benchmark `step` measures their time, `cargo xtask bench --instructions` has the program
//! `ganger-count` do them under callgrind. Threads meet at the beginning and at the end of an act
//! only, so that a count of instructions hardly differs from run to run.

mod act;
mod commands;
mod one_worker;
mod oneself;
mod pair;
mod spawning;
mod stream;

pub use act::Act;
pub use one_worker::OneWorker;
