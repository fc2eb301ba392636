//! What a process may ask of its scheduler, by way of its context.

use crate::blocking;
use crate::core::cell::ProcessCell;
use crate::core::local;
use crate::process::process_box::ProcessBox;
use ganger_proc_api::{
    CancelReason, ContextBackend, Kind, MonitorError, NodeName, NotFound, Package, Payloads, Pid,
    Process, RegisterNameError, SendError, SubmitError, Symbol, Tag,
};
use std::any::Any;
use std::sync::Arc;
use std::task::Waker;

impl ContextBackend for ProcessCell {
    fn pid(&self) -> Pid {
        self.pid
    }

    fn into_any(self: Arc<Self>) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(self)
    }

    fn accept_only(&self, kind: Kind) {
        self.accepts.set(Some(kind));
    }

    fn node_name(&self) -> Option<NodeName> {
        self.shared.node
    }

    fn send(&self, package: Package) -> Result<(), SendError> {
        self.shared.route(package)
    }

    fn send_control(&self, package: Package) -> Result<(), SendError> {
        self.shared.route_control(package)
    }

    fn submit(
        &self,
        process: Box<dyn Process>,
        method: Symbol,
        input: Payloads,
    ) -> Result<Pid, SubmitError> {
        let process = ProcessBox::boxed(process);
        self.shared.submit_detached(process, method, input)
    }

    fn submit_as(
        &self,
        pid: Pid,
        process: Box<dyn Process>,
        method: Symbol,
        input: Payloads,
    ) -> Result<Pid, SubmitError> {
        let process = ProcessBox::boxed(process);
        let handle = self.shared.submit(Some(pid), process, method, input)?;
        Ok(handle.pid())
    }

    fn monitor(self: Arc<Self>, target: Pid, tag: Tag) -> Result<(), MonitorError> {
        self.begin_monitor(target, tag)
    }

    fn demonitor(&self, target: Pid, tag: Tag) {
        self.end_monitor(target, tag);
    }

    fn register_name(self: Arc<Self>, name: &str) -> Result<(), RegisterNameError> {
        self.shared.register_name(name, &self)
    }

    fn whereis(&self, name: &str) -> Option<Pid> {
        self.shared.whereis(name)
    }

    fn cancel(&self, target: Pid, reason: CancelReason) -> Result<(), NotFound> {
        self.shared.cancel(target, reason)
    }

    fn terminate(&self, target: Pid) -> Result<(), NotFound> {
        self.shared.terminate(target)
    }

    fn waker(self: Arc<Self>) -> Waker {
        Waker::from(self)
    }

    fn is_cancelled(&self) -> bool {
        self.state.is_unwanted()
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
