//! Calls for handlers with completers.

use crate::process::exit_actions::{ExitRequest, YieldCall};
use crate::runtime::cell::{ProcessCell, Task};
use ganger_proc_api::EndCall;
use std::sync::Weak;

impl ProcessCell {
    /// Has a call made when the process has ended, or has taken the yield back. `false` when it has
    /// ended already.
    pub(crate) fn call_at_end(self: &Task, token: u64, call: Weak<EndCall>) -> bool {
        let call = Box::new(YieldCall { token, call });
        self.ask_exit(ExitRequest::Call(call)).is_ok()
    }
}
