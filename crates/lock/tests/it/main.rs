//! Locks among threads, tasks and processes.
#![allow(missing_docs)]
#![cfg(not(ganger_loom))]

mod cancel;
mod deadlock;
mod deadlock_lines;
mod foreign_code;
mod histories;
mod marks;
mod models;
mod mutex;
mod others;
mod rates;
mod simulated;
mod support;
