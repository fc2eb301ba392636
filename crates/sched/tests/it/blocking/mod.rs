//! Blocking steps, and the spare threads in their places.

mod blocked_steps;
mod spares;
