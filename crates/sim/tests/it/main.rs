//! The simulation as a test of processes sees it.

mod calls;
mod crowds;
mod fairness;
mod mixed;
mod names;
mod network;
mod planted;
mod races;
mod reports;
mod retry;
mod runs;
mod senders;
mod spares;
mod tasks;
mod waits;
mod worlds;
