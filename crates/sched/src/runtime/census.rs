//! The processes and threads of a scheduler.

use crate::runtime::pool::Pool;
use crate::runtime::registry::Registry;
use crate::runtime::turns::Turns;
use ganger_sync::{ShardedCount, WaitableCount};
use std::sync::Arc;

/// `C` is the cell of a process.
pub(crate) struct Census<C> {
    pub(crate) registry: Registry<Arc<C>>,
    /// Cells and ids of ended processes, for new processes.
    pub(crate) pool: Pool<C>,
    /// Submitted processes before their end, and submissions under way.
    pub(crate) live: ShardedCount,
    /// Processes counted for `max_processes`; unused without a limit.
    pub(crate) places: WaitableCount,
    /// Running threads of the scheduler: workers, spares, the monitor, the supervisor of a stop,
    /// reapers.
    pub(crate) threads: WaitableCount,
    pub(crate) turns: Turns,
}

impl<C> Census<C> {
    /// Creates an empty census. Ids begin at `generation`.
    pub(crate) fn new(generation: u32, slots: usize) -> Self {
        Self {
            registry: Registry::beginning_at(generation),
            pool: Pool::new(),
            live: ShardedCount::new(slots),
            places: WaitableCount::default(),
            threads: WaitableCount::default(),
            turns: Turns::new(slots),
        }
    }
}
