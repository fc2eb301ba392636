//! Steps that block their thread or last long, and the spare threads that take their workers'
//! places.
//!
//! **What it is for.** The monitor watches the turns of all workers (`monitor.rs`), by what it has
//! sampled of each (`sample.rs`). A step that is about to block says so itself
//! (`block_in_place.rs`). Either has a spare thread replace the step's worker (`spares.rs`), and
//! has the step reported (`reports.rs`).
//!
//! **What it promises.** G6: a step that blocks costs no worker.
//!
//! **What it may import.** The folders from `base` to `worker` (`docs/ARCHITECTURE.md`).

mod block_in_place;
pub(crate) mod monitor;
mod reports;
mod sample;
mod spares;

pub(crate) use block_in_place::{block_if_replaced, block_in_place, may_wait, may_wait_for};
pub(crate) use spares::start_worker;
