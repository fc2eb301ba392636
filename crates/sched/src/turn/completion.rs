//! The completers of a process's commands send to its cell.

use crate::core::cell::ProcessCell;
use crate::core::nodes::CommandResult;
use crate::turn::dispatch;
use ganger_proc_api::{CompletionSink, EndCall, Pid, Tag};
use std::sync::{Arc, Weak};

impl CompletionSink for ProcessCell {
    fn complete(self: Arc<Self>, tag: Tag, token: u64, result: CommandResult) {
        self.shared.accounts.answer();
        dispatch::complete(self, tag, token, result);
    }

    fn complete_dropped(self: Arc<Self>, tag: Tag, token: u64) {
        self.shared.accounts.answer();
        dispatch::complete_dropped(self, tag, token);
    }

    fn pid(&self) -> Pid {
        self.pid
    }

    fn is_cancelled(&self) -> bool {
        self.state.is_unwanted()
    }

    fn on_end(self: Arc<Self>, call: Weak<EndCall>) -> bool {
        self.call_at_end(call)
    }
}
