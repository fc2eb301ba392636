//! What is left of the end of a process, when that takes several turns.
//!
//! **Problem.** The end of a process may have millions to tell. Its worker has others to serve.
//!
//! **Protocol.** The worker closes the process, and does a portion. Then it keeps the rest here,
//! and queues the process behind others. A thread that takes it from a queue finds it terminated
//! and closed, and goes on with the rest. So what a queue promises to a process holds for its end
//! as well, and a stop waits for it.

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
    /// It has been closed: the actions release, from that place on.
    Release(Box<ExitActions>, usize, Option<Box<Failed>>),
    /// It is gone: others are told. The reference is the registry's, if it was there.
    Tell(
        Box<Telling>,
        Option<Arc<dyn Any + Send + Sync>>,
        Option<Box<Failed>>,
    ),
}
