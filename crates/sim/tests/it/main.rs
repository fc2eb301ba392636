//! The simulation as tests of processes see it.

mod crowds;
mod mixed;
mod network;
mod reports;
mod retry;
mod runs;
mod senders;
mod spares;
