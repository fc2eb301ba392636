//! The vocabulary of processes as its users see it.

mod errors;
mod output;
mod pid_text;
mod traits;
