//! How processes start: submits, hooks, `init`, and starts inside of starts.

mod depth;
mod events_during_init;
mod spawners;
mod submit;
