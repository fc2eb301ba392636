//! Cells that stand for processes of other schedulers.
//!
//! **Problem.** An address leads to a cell. Addresses of processes elsewhere are of the same type,
//! and sends to processes of this scheduler must not pay for them.
//!
//! **Rejected.** A process that forwards: it costs a step for each message, and an error of the
//! codec would not be the error of the send. An address of two kinds: a branch for each send.
//!
//! **Protocol.** A stand-in is a cell whose mailbox is closed from the beginning. It has no core,
//! no handle and no place in the registry, and its id is of no process. A send finds the mailbox
//! closed, as with an ended process, and on this cold path alone the sender looks whether the cell
//! is a stand-in: then the message goes to the router, and exit actions go to the remote.

use super::{Content, OwnedCore, ProcessCell, Task};
use crate::limits::room::Room;
use crate::probe::Probe;
use crate::process::about::About;
use crate::process::accepts::Accepts;
use crate::process::exit_slot::ExitSlot;
use crate::process::origin::Origin;
use crate::process::state::State;
use crate::runtime::shared::Shared;
use ganger_proc_api::{Pid, Symbol};
use ganger_sync::cell::UnsafeCell;
use std::sync::Arc;

/// The id of all stand-ins. No process has it: the table of counted ids has no slot with this
/// number, and chosen ids are below.
const STANDS_IN: u64 = u64::MAX;

impl ProcessCell {
    /// Creates a cell that stands for the process with this PID, of another scheduler or gone.
    pub(crate) fn stand_in(shared: Arc<Shared>, pid: Pid) -> Task {
        let state = State::new();
        let _without_a_step = state.begin();
        let _no_items = state.complete();
        let probe = shared.probe.process();
        let content = Content { stands_for: pid };
        Arc::new(Self {
            id: STANDS_IN,
            method: Symbol::default(),
            state,
            room: Room::new(),
            exit: ExitSlot::of_nothing(),
            accepts: Accepts::anything(),
            about: About::new(|| "a process of another scheduler"),
            origin: Origin::new(0, None, None, false),
            shared,
            core: OwnedCore(UnsafeCell::new(content)),
            probe,
        })
    }

    /// Returns whether it stands for a process of another scheduler.
    pub(crate) fn is_stand_in(&self) -> bool {
        self.id == STANDS_IN
    }

    /// Returns the PID of the process, also of one of another scheduler.
    pub(crate) fn target(&self) -> Pid {
        if !self.is_stand_in() {
            return self.pid();
        }
        self.core.0.with(|content| {
            // SAFETY: the content of a stand-in is a PID, and nothing writes to it: there is no run
            // token, and no handle.
            unsafe { (*content).stands_for }
        })
    }

    /// Returns whether the process takes nothing any more, as far as this scheduler knows.
    pub(crate) fn takes_nothing(&self) -> bool {
        self.state.is_closed() && (!self.is_stand_in() || self.stands_for_gone())
    }

    /// Returns whether it stands for a process of this scheduler, which has ended.
    #[cold]
    fn stands_for_gone(&self) -> bool {
        let pid = self.target();
        self.shared.is_local(pid)
            && (self.shared.census.registry)
                .read(pid.id(), |_| ())
                .is_none()
    }
}
