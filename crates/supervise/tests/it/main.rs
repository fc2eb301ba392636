//! Supervisors and pools, as their users see them.

mod batches;
mod breakers;
mod chaos;
mod child_limits;
mod failures;
mod in_place;
mod incarnations;
mod inherited;
mod pool_chaos;
mod pool_children;
mod pool_lines;
mod pool_places;
mod pool_priorities;
mod pool_retries;
mod pools;
mod questions;
mod stops;
mod support;
mod trees;
mod waits;
