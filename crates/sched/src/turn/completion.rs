//! The completers of a process's commands send to its cell.

use crate::core::cell::ProcessCell;
use crate::core::nodes::CommandResult;
use crate::probe::Probe;
use crate::turn::dispatch;
use ganger_proc_api::{CompletionSink, Pid, Tag};
use std::sync::Arc;

impl CompletionSink for ProcessCell {
    fn complete(self: Arc<Self>, tag: Tag, token: u64, result: CommandResult) {
        self.shared.probe.answered();
        dispatch::complete(self, tag, token, result);
    }

    fn complete_dropped(self: Arc<Self>, tag: Tag, token: u64) {
        self.shared.probe.answered();
        dispatch::complete_dropped(self, tag, token);
    }

    fn pid(&self) -> Pid {
        self.pid
    }

    fn is_cancelled(&self) -> bool {
        self.state.is_unwanted()
    }
}
