//! Commands, their completions, and calls.

mod answers;
mod calls;
mod handlers;
mod kept_completers;
mod standard;
mod taken_back;
