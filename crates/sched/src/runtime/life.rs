//! How the lives of processes are told.
//!
//! **Protocol.** The thread that starts a process reports the start before it queues the process,
//! so no end comes before its start. The thread that ends the process reports the end when the PID
//! is gone, before the owner of the handle gets the reason. A scheduler without a watch pays a look
//! at its settings; with a watch it asks whether the watch is on.

use crate::base::contain::contain_and_report;
use crate::probe::Probe;
use crate::reports::life::{LifeChange, LifeEvent, LifeWatch};
use crate::runtime::cell::Task;
use crate::runtime::shared::Shared;
use ganger_proc_api::Pid;

impl Shared {
    /// Returns whether changes are wanted at the moment.
    pub(crate) fn tells_life(&self) -> bool {
        self.config.life.as_deref().is_some_and(|it| it.is_on())
    }

    /// Tells the watch, if it is on, that a process has changed. This thread has its run token.
    #[inline(always)]
    pub(crate) fn tell_life(&self, task: &Task, change: impl FnOnce() -> LifeChange) {
        if let Some(watch) = self.config.life.as_deref()
            && watch.is_on()
        {
            self.tell_life_to(watch, task, change());
        }
    }

    #[cold]
    #[inline(never)]
    fn tell_life_to(&self, watch: &dyn LifeWatch, task: &Task, change: LifeChange) {
        let parent = task.origin.parent();
        let event = LifeEvent {
            at: self.timing.timers.now(),
            pid: task.pid(),
            parent: parent.map(|it| Pid::new(self.host, it)),
            method: task.method,
            type_name: task.about.type_name(),
            label: self.probe.label_of(&task.probe),
            change,
        };
        contain_and_report("a watch of lives", task.pid(), self.own_counters(), || {
            watch.tell(event);
        });
    }
}
