//! Questions to a supervisor, and its answers.
//!
//! **Protocol.** Each question has a single answer.
//! 1. A question for a stop waits for the end of the child, also when another question has the
//!    child started again meanwhile.
//! 2. A question for a start waits until the child runs, or its start has failed. When a stop of
//!    the child or of the supervisor, or a removal, overtakes the start, the answer is an error in
//!    the same step.
//! 3. A process that asks for its own end can't wait for it: a task would wait until its
//!    termination. So the process gets an error at once, and its order is carried out.

use super::error::SuperviseError;
use super::order::{Kind, time_for_children};
use super::{Driver, Waiting};
use crate::child::ChildRef;
use crate::plan::{ChildId, Verdict};
use ganger_proc_api::{BoxError, Pid, Reply};
use ganger_sched::Instant;
use std::mem;
use std::sync::Arc;

impl Driver {
    pub(super) fn ordered(&mut self, order: Kind) {
        match order {
            Kind::StopBy(by) => {
                let now = self.timers.now();
                self.plan
                    .must_stop_by(time_for_children(now, by.since(now)));
            }
            Kind::StopAll(asker, reply) => {
                match asker.filter(|it| self.has_below(*it)) {
                    Some(asker) => reply.fail(SuperviseError::WaitsForItself(asker)),
                    None => self.stopping.push(reply),
                }
                self.plan.stop(Verdict::Stopped, Instant::NEVER);
            }
            _ if self.plan.is_stopping() => order.refuse(SuperviseError::Stopping),
            Kind::Start(child, watcher, reply) => match self.add(*child) {
                Ok(id) => {
                    if let Some(known) = self.children.get_mut(&id) {
                        known.watcher = watcher;
                    }
                    self.wait(id, [Waiting::Start(reply)]);
                }
                Err(error) => reply.fail(error),
            },
            Kind::Stop(child, is_removed, asker, reply) => match self.find(&child) {
                Some(id) => {
                    self.answer_overtaken(id);
                    let reply = self.refuse_within(id, asker, reply);
                    if self.plan.stop_child(id, is_removed) {
                        self.wait(id, reply.map(Waiting::End));
                    } else {
                        self.show(id);
                        reply.into_iter().for_each(|it| it.complete(()));
                    }
                }
                None => reply.fail(SuperviseError::NoChild(child)),
            },
            Kind::Restart(child, asker, reply) => match self.find(&child) {
                Some(id) => {
                    let reply = self.refuse_within(id, asker, reply);
                    self.wait(id, reply.map(Waiting::Start));
                    if !self.plan.restart_child(id, self.timers.now()) {
                        self.answer_overtaken(id);
                    }
                }
                None => reply.fail(SuperviseError::NoChild(child)),
            },
        }
    }

    fn wait(&mut self, id: ChildId, waiting: impl IntoIterator<Item = Waiting>) {
        if let Some(known) = self.children.get_mut(&id) {
            known.waiting.extend(waiting);
        }
    }

    fn find(&self, child: &ChildRef) -> Option<ChildId> {
        match child {
            ChildRef::Pid(pid) => self.by_pid.get(pid).copied(),
            ChildRef::Name(name) => self.view.id_of(name),
        }
    }

    /// Refuses a question of a process for its own end. Other replies come back.
    fn refuse_within<T: Send + 'static>(
        &self,
        id: ChildId,
        asker: Option<Pid>,
        reply: Reply<T>,
    ) -> Option<Reply<T>> {
        let is_within = |asker: &Pid| {
            self.by_pid.get(asker) == Some(&id)
                || (self.view.below(id)).is_some_and(|below| below.has(*asker))
        };
        match asker.filter(is_within) {
            None => Some(reply),
            Some(asker) => {
                reply.fail(SuperviseError::WaitsForItself(asker));
                None
            }
        }
    }

    /// Returns whether the process belongs to the tree.
    fn has_below(&self, process: Pid) -> bool {
        self.by_pid.contains_key(&process) || self.view.has(process)
    }

    /// Answers the callers that wait for the end of the child and its orphans.
    pub(super) fn answer_ends(&mut self, id: ChildId) {
        let is_end = |it: &mut Waiting| matches!(it, Waiting::End(_));
        let Some(known) = self.children.get_mut(&id) else {
            return;
        };
        for waiting in known.waiting.extract_if(.., is_end) {
            if let Waiting::End(reply) = waiting {
                reply.complete(());
            }
        }
    }

    pub(super) fn answer_not_started(&mut self, id: ChildId, error: &BoxError) {
        let text = error.to_string();
        let child = self.name(id);
        self.answer_all(id, || SuperviseError::NotStarted {
            child: Arc::clone(&child),
            error: text.clone().into(),
        });
    }

    /// Answers the callers that wait for a start that a stop has overtaken.
    pub(super) fn answer_overtaken(&mut self, id: ChildId) {
        let Some(known) = self.children.get_mut(&id) else {
            return;
        };
        let is_start = |it: &mut Waiting| matches!(it, Waiting::Start(_));
        let starts: Vec<_> = known.waiting.extract_if(.., is_start).collect();
        for start in starts {
            if let Waiting::Start(reply) = start {
                reply.fail(self.overtaken(id));
            }
        }
    }

    fn overtaken(&self, id: ChildId) -> SuperviseError {
        let child = self.name(id);
        SuperviseError::Overtaken { child }
    }

    /// Refuses the starts of a stopping supervisor, which starts no child. O(n), once.
    pub(super) fn refuse_starts(&mut self) {
        if self.has_refused || !self.plan.is_stopping() {
            return;
        }
        self.has_refused = true;
        let is_start = |it: &mut Waiting| matches!(it, Waiting::Start(_));
        for known in self.children.values_mut() {
            for start in known.waiting.extract_if(.., is_start) {
                if let Waiting::Start(reply) = start {
                    reply.fail(SuperviseError::Stopping);
                }
            }
        }
    }

    fn answer_all(&mut self, id: ChildId, error: impl Fn() -> SuperviseError) {
        let Some(known) = self.children.get_mut(&id) else {
            return;
        };
        for waiting in mem::take(&mut known.waiting) {
            match waiting {
                Waiting::Start(reply) => reply.fail(error()),
                Waiting::End(reply) => reply.complete(()),
            }
        }
    }
}

impl Kind {
    fn refuse(self, error: SuperviseError) {
        match self {
            Self::Start(_, _, reply) | Self::Restart(_, _, reply) => reply.fail(error),
            Self::Stop(_, _, _, reply) => reply.fail(error),
            Self::StopBy(_) | Self::StopAll(..) => {}
        }
    }
}
