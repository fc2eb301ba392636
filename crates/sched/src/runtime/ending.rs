//! The rest of a process's end, when the end takes several turns.
//!
//! **Problem.** The end of a process may have millions of processes to notify, while other
//! processes wait for its worker.
//!
//! **Protocol.** The worker closes the process, and does a portion. Then it keeps the rest here,
//! and queues the process behind others. The thread that takes the process from a queue finds it
//! terminated and closed, and continues with the rest. So the promises of queues hold for the end
//! of a process as well, and a stop waits for it.

use crate::process::exit_actions::{ExitActions, Telling};
use crate::process::failed::Failed;
use ganger_proc_api::ExitReason;
use std::any::Any;
use std::sync::Arc;

pub(crate) struct Ending {
    pub(crate) reason: ExitReason,
    pub(crate) stage: Stage,
}

pub(crate) enum Stage {
    /// The process has been closed: the actions release, from the given place on.
    Release(Box<ExitActions>, usize, Option<Box<Failed>>),
    /// The process is gone: the actions notify other processes. The reference is the registry's, if
    /// the process was registered.
    Tell(
        Box<Telling>,
        Option<Arc<dyn Any + Send + Sync>>,
        Option<Box<Failed>>,
    ),
}
