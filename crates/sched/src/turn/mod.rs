//! A turn of a process: its steps, the dispatch of its commands, its upgrade and its end.
//!
//! **Promise.** Each yield has one completion (P6), and each process one end (P2, P12).
//!
//! **Imports.** The folders from `base` to `exits` (`docs/ARCHITECTURE.md`).

mod catch_up;
mod conclude;
pub(crate) mod dispatch;
pub(crate) mod finish;
mod intervene;
pub(crate) mod run;
mod steps;
mod upgrade;

use crate::base::stats::Counters;
use crate::runtime::cell::{Core, Task};
use crate::runtime::shared::Shared;
use ganger_proc_api::ExitReason;

/// A turn of a process whose run token this thread owns.
struct Turn<'a, P> {
    shared: &'a Shared,
    /// The worker, or the thread other than a worker.
    place: P,
    task: &'a Task,
    core: &'a mut Core,
    counters: &'a Counters,
    /// Why the process has ended.
    end: &'a mut Option<ExitReason>,
}

/// The dispatch of a yield, a part of a turn. Its parts go through calls one by one, in registers:
/// see [`dispatch`].
struct Dispatch<'a, P> {
    place: P,
    task: &'a Task,
    core: &'a mut Core,
    counters: &'a Counters,
}

impl<P: Copy> Turn<'_, P> {
    /// Returns the same turn, for a call not inlined. So the turn itself stays in registers.
    #[inline(always)]
    fn apart(&mut self) -> Turn<'_, P> {
        Turn {
            core: &mut *self.core,
            end: &mut *self.end,
            ..*self
        }
    }
}
