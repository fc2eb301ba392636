//! The requests of a process to its scheduler, by way of its context.

use crate::blocking;
use crate::probe::Probe;
use crate::process::process_box::ProcessBox;
use crate::runtime::cell::ProcessCell;
use crate::runtime::local;
use crate::submit::Birth;
use ganger_proc_api::{
    CancelReason, CommandError, ContextBackend, Envelope, Kind, MonitorError, NodeName, NotFound,
    Payloads, Pid, Process, RegisterNameError, SendError, SubmitError, Symbol, Tag,
};
use std::sync::Arc;
use std::task::Waker;

impl ProcessCell {
    /// Tells the probe of a call of the process's context, or of an address, before the call
    /// returns.
    #[inline(always)]
    pub(super) fn called(&self, call: &'static str) {
        self.shared.probe.called(&self.shared, call);
    }
}

impl ContextBackend for ProcessCell {
    fn pid(&self) -> Pid {
        self.pid()
    }

    fn accept_only(&self, kind: Kind) {
        self.accepts.set(Some(kind));
    }

    fn node_name(&self) -> Option<NodeName> {
        self.shared.node
    }

    fn send(&self, envelope: Envelope) -> Result<(), SendError> {
        let result = self.shared.route(envelope);
        self.called("send");
        result
    }

    fn send_control(&self, envelope: Envelope) -> Result<(), SendError> {
        let result = self.shared.route_control(envelope);
        self.called("send_control");
        result
    }

    fn submit(
        &self,
        process: Box<dyn Process>,
        method: Symbol,
        input: Payloads,
    ) -> Result<Pid, SubmitError> {
        let process = ProcessBox::boxed(process);
        let result = self.shared.submit_detached(self, process, method, input);
        self.called("submit");
        result
    }

    fn submit_as(
        &self,
        pid: Pid,
        process: Box<dyn Process>,
        method: Symbol,
        input: Payloads,
    ) -> Result<Pid, SubmitError> {
        let process = ProcessBox::boxed(process);
        let birth = Birth::by_under(self, pid);
        let handle = self.shared.submit(birth, process, method, input)?;
        let result = Ok(handle.pid());
        self.called("submit_as");
        result
    }

    fn monitor(self: Arc<Self>, target: Pid, tag: Tag) -> Result<(), MonitorError> {
        let shared = Arc::clone(&self.shared);
        let begun = self.begin_monitor(target, tag);
        shared.probe.called(&shared, "monitor");
        begun
    }

    fn demonitor(&self, target: Pid, tag: Tag) {
        self.end_monitor(target, tag);
        self.called("demonitor");
    }

    fn register_name(self: Arc<Self>, name: &str) -> Result<(), RegisterNameError> {
        let result = self.shared.register_name(name, &self);
        self.called("register_name");
        result
    }

    fn whereis(&self, name: &str) -> Option<Pid> {
        let result = self.shared.whereis(name);
        self.called("whereis");
        result
    }

    fn cancel(&self, target: Pid, reason: CancelReason) -> Result<(), NotFound> {
        let result = self.shared.cancel(target, reason);
        self.called("cancel");
        result
    }

    fn terminate(&self, target: Pid) -> Result<(), NotFound> {
        let result = self.shared.terminate(target);
        self.called("terminate");
        result
    }

    fn waker(self: Arc<Self>) -> Waker {
        self.into_waker()
    }

    fn leaves_answer(&self, tag: Tag, error: &CommandError) {
        self.report_answer(tag, error);
    }

    fn is_cancelled(&self) -> bool {
        let result = self.state.is_unwanted();
        self.called("is_cancelled");
        result
    }

    fn watch_cancel(&self, key: Option<u64>, waker: &Waker) -> Option<u64> {
        let signals = &self.shared.cancel_signals;
        let key = signals.enter(self.pid().id(), key, waker.clone());
        if self.state.watch() {
            signals.leave(self.pid().id(), key);
            return None;
        }
        Some(key)
    }

    fn unwatch_cancel(&self, key: u64) {
        self.shared.cancel_signals.leave(self.pid().id(), key);
    }

    fn block(&self, f: &mut dyn FnMut()) {
        blocking::block_in_place(f);
    }

    fn should_yield(&self) -> bool {
        let is_overdue = local::with(&self.shared, |queue| {
            let turns = self.shared.counters.of(Some(queue.index)).turns.get();
            self.shared.worker_slots.is_overdue(queue.index, turns)
        });
        is_overdue.unwrap_or(false)
    }
}
