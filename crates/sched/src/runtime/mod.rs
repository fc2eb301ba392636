//! The cell of a process, and the state shared by all threads of a scheduler.
//!
//! **Promise.** A process is queued at most once (G1). The cell and the shared state refer to each
//! other, so they share a folder.
//!
//! **Imports.** The folders from `base` to `queues` (`docs/ARCHITECTURE.md`).

mod caused;
pub(crate) mod causes;
pub(crate) mod cell;
pub(crate) mod census;
pub(crate) mod driver;
pub(crate) mod driver_wait;
pub(crate) mod ending;
pub(crate) mod extensions;
pub(crate) mod failures;
pub(crate) mod frames;
pub(crate) mod hash_key;
pub(crate) mod here;
pub(crate) mod ids;
pub(crate) mod inherited;
pub(crate) mod interventions;
pub(crate) mod item;
pub(crate) mod lent_context;
pub(crate) mod life;
pub(crate) mod local;
pub(crate) mod owned;
pub(crate) mod pool;
pub(crate) mod queues;
pub(crate) mod registry;
pub(crate) mod round;
pub(crate) mod schedule;
pub(crate) mod shared;
pub(crate) mod side_queues;
pub(crate) mod spares;
pub(crate) mod start;
pub(crate) mod step_events;
pub(crate) mod threads;
pub(crate) mod timers;
pub(crate) mod timing;
pub(crate) mod token;
pub(crate) mod turn_place;
pub(crate) mod turns;
pub(crate) mod worker_slots;
