//! Steps that block their thread, and the spare threads that take their places.

mod blocked_steps;
mod spares;
