//! What a contest does.

#[derive(Debug, Clone, Copy)]
pub(super) enum Work {
    /// A task takes turns alone.
    Uncontended { turns: u64 },
    /// Tasks take turns, each with `inside` microseconds inside.
    Mutex { tasks: u64, inside: u64, turns: u64 },
    /// Tasks take turns, with at most `permits` tasks inside at a time.
    Semaphore {
        tasks: u64,
        permits: usize,
        turns: u64,
    },
    /// Waiters wait, and are woken at once: by a notice, or by the close of the semaphore.
    Wake { waiters: u64, closes: bool },
}
