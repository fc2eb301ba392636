//! How processes end, and what each end runs and reports.

mod cancel;
mod exit_actions;
mod handles;
mod panicking_destructors;
mod unwatched_failures;
mod ways_to_end;
