//! The vocabulary of processes as its users see it.

#[cfg(feature = "serde")]
mod crossing;
mod errors;
mod output;
mod pid_text;
mod traits;
