//! Steps that block their thread or last long, and the spare threads that take their workers'
//! places.
//!
//! **Purpose.** The monitor watches the turns of all workers (`monitor.rs`), by samples of each
//! (`sample.rs`). A step that is about to block announces it (`block_in_place.rs`). Either has a
//! spare thread replace the step's worker (`spares.rs`), and has the step reported (`reports.rs`).
//!
//! **Promise.** G6: a blocking step costs no worker.
//!
//! **Imports.** The folders from `base` to `worker` (`docs/ARCHITECTURE.md`).

mod block_in_place;
pub(crate) mod monitor;
mod reports;
mod sample;
mod spares;

pub(crate) use block_in_place::{block_if_replaced, block_in_place, may_wait, may_wait_for};
pub(crate) use spares::start_worker;
