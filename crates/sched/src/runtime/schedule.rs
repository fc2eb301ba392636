//! The queue for a ready process, and the worker to wake for it.

use crate::probe::{Probe, Push};
use crate::runtime::local::{self, LocalQueue};
use crate::runtime::shared::Shared;
use crate::runtime::token::Token;
use ganger_deque::Stealer;
use std::sync::Arc;

impl Shared {
    /// Pushes a process into the global queue, and wakes no worker.
    pub(crate) fn push_global(&self, push: Push, token: Token) {
        let process = &token.cell().probe;
        let _pushing = self
            .probe
            .pushing(process, push, || self.queues.global.len());
        self.queues.global.push(token);
    }

    /// Pushes a process into the urgent lane, and wakes no worker.
    fn push_urgent(&self, token: Token) {
        let process = &token.cell().probe;
        let _pushing = self
            .probe
            .pushing(process, Push::Urgent, || self.queues.urgent.len());
        self.queues.urgent.push(token);
    }

    /// Pushes a process into the lane of arrivals, and wakes no worker.
    fn push_arrival(&self, token: Token) {
        let (process, push) = (&token.cell().probe, Push::Arrival);
        let _pushing = (self.probe).pushing(process, push, || self.queues.arrivals.len());
        self.queues.arrivals.push(token);
    }

    /// Queues a process whose run token the caller owns: in the deque of this thread's worker, or
    /// else in the global queue. Wakes a worker to look for it where needed.
    pub(crate) fn schedule(self: &Arc<Self>, token: Token) {
        local::with_either(self, |queue| self.schedule_on(queue, token));
    }

    /// Schedules a process as [`schedule`](Self::schedule) does, on a thread with this queue.
    pub(crate) fn schedule_on(self: &Arc<Self>, queue: Option<&LocalQueue>, token: Token) {
        match queue {
            Some(queue) => self.schedule_here(queue, token),
            None => self.schedule_from_outside(token),
        }
    }

    /// Schedules a process as [`schedule`](Self::schedule) does, on a thread other than a worker.
    #[inline(never)]
    fn schedule_from_outside(self: &Arc<Self>, token: Token) {
        let Some(token) = self.put_aside(token) else {
            return;
        };
        let _waking = self.probe.waking(|| None);
        if local::is_firing() {
            self.push_arrival(token);
        } else {
            self.push_global(Push::Global, token);
        }
        self.queues.idle.notify_from_outside();
        self.end_after_halt();
    }

    /// Schedules a process as [`schedule`](Self::schedule) does, on the worker with this queue.
    #[inline(never)]
    pub(crate) fn schedule_here(&self, queue: &LocalQueue, token: Token) {
        if local::is_firing() {
            return self.schedule_arrival(queue, token);
        }
        let below = queue.deque.len();
        queue.begin_woken(below);
        if below > 0 {
            return self.schedule_beside(queue, token);
        }
        let _waking = self.probe.waking(|| Some(queue.index));
        queue.push(token);
        // This worker takes it itself, as soon as its step is over.
        self.queues.idle.defer();
    }

    /// Schedules a process woken by a timer, as [`schedule_here`](Self::schedule_here) does others.
    #[cold]
    fn schedule_arrival(&self, queue: &LocalQueue, token: Token) {
        let is_alone = queue.deque.is_empty() && !self.queues.is_any_queued();
        let _waking = self.probe.waking(|| Some(queue.index));
        self.push_arrival(token);
        if is_alone {
            // This worker takes it itself: it delivers between two turns.
            self.queues.idle.defer();
        } else {
            self.queues.idle.notify();
        }
    }

    /// Schedules a process as [`schedule_here`](Self::schedule_here) does, in a deque with others.
    #[inline(never)]
    fn schedule_beside(&self, queue: &LocalQueue, token: Token) {
        let _waking = self.probe.waking(|| Some(queue.index));
        queue.note_woken();
        queue.push(token);
        if queue.keeps() {
            self.queues.idle.defer();
        } else {
            self.queues.idle.notify();
        }
    }

    /// Queues a process before all others: a system event has woken it, and the caller owns its run
    /// token. Wakes a worker to look for it where needed.
    pub(crate) fn schedule_urgent(self: &Arc<Self>, token: Token) {
        let _waking = self.probe.waking(|| self.own_index());
        self.push_urgent(token);
        self.queues.idle.notify_from_outside();
        self.end_after_halt();
    }

    /// Has the queued processes ended after the halt, when no worker may be left to look. This
    /// thread has just queued something, or may have.
    pub(crate) fn end_after_halt(self: &Arc<Self>) {
        if self.shutdown.is_halted() {
            (self.end_queued)(self);
        }
    }

    /// Queues a process with a system event, just run on this thread, before all others.
    ///
    /// Wakes no other worker, on a worker: the calling worker looks at the urgent lane next, and
    /// wakes another worker if it then leaves a process there.
    pub(crate) fn requeue_urgent(self: &Arc<Self>, token: Token) {
        match self.own_index() {
            Some(worker) => {
                self.probe.looking(worker);
                self.push_urgent(token);
            }
            None => self.schedule_urgent(token),
        }
    }

    /// Requeues a process as [`requeue`](Self::requeue) does, behind the other ready processes, if
    /// any.
    pub(crate) fn requeue_last(self: &Arc<Self>, queue: Option<&LocalQueue>, token: Token) {
        let Some(queue) = queue else {
            return self.schedule(token);
        };
        let others = queue.deque.len();
        if others == 0 && self.queues.global.is_empty() {
            return self.requeue(Some(queue), token);
        }
        if others == 0 || queue.has_woken() {
            return self.requeue_behind(queue, token);
        }
        queue.round.give_way(others);
        self.probe.looking(queue.index);
        queue.push(token);
    }

    /// Queues a ready process, just run on this thread.
    ///
    /// Wakes no other worker: the calling worker looks at its deque next, and wakes another worker
    /// if it then takes another process from the deque.
    pub(crate) fn requeue(self: &Arc<Self>, queue: Option<&LocalQueue>, token: Token) {
        match queue {
            Some(queue) if queue.has_woken() => self.requeue_behind(queue, token),
            Some(queue) => {
                if queue.round.is_on() {
                    // A continuing process comes before a process that gives way.
                    queue.begin_woken(queue.deque.len());
                }
                self.probe.looking(queue.index);
                queue.push(token);
            }
            None => self.schedule(token),
        }
    }

    /// Requeues a process as [`requeue`](Self::requeue) does, where the deque has woken or stolen
    /// processes: in the global queue the process does not keep them waiting.
    #[inline(never)]
    fn requeue_behind(&self, queue: &LocalQueue, token: Token) {
        self.probe.looking(queue.index);
        self.push_global(Push::Global, token);
        self.queues.idle.notify_from_outside();
    }

    /// Returns the stealers of all deques in use.
    pub(crate) fn stealers(&self) -> &[Stealer<Token>] {
        self.queues.stealers(self.worker_slots.used())
    }

    /// Returns whether a process is queued anywhere but in the worker's deque.
    pub(crate) fn has_work_beside(&self, worker: usize) -> bool {
        let mut others = self.stealers().iter().enumerate();
        self.queues.is_any_queued() || others.any(|(it, deque)| it != worker && !deque.is_empty())
    }

    /// Counts the processes in all queues, each queue at a moment of its own.
    pub(crate) fn ready(&self) -> usize {
        let crate::runtime::queues::Queues {
            global,
            urgent,
            arrivals,
            ..
        } = &self.queues;
        let deques = self.stealers().iter().map(Stealer::len);
        deques.sum::<usize>() + global.len() + urgent.len() + arrivals.len()
    }

    /// Returns whether something is queued anywhere.
    pub(crate) fn has_work(&self) -> bool {
        self.queues.is_any_queued() || self.stealers().iter().any(|stealer| !stealer.is_empty())
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use crate::Scheduler;
    use ganger_proc_api::{Context, Events, Process, StepOutput, StepResult};
    use std::thread;

    struct Quick;

    impl Process for Quick {
        fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
            out.done(());
            Ok(())
        }
    }

    // pins: G2
    #[test]
    fn a_process_in_the_urgent_lane_is_work_and_leaves_it_in_order() {
        let scheduler = Scheduler::builder().workers(1).build().unwrap();
        let submit = || scheduler.submit(Quick, "main", ()).unwrap();
        let handles = [submit(), submit()];
        let shared = &scheduler.shared;
        let tokens: Vec<_> = std::iter::from_fn(|| shared.queues.global.pop()).collect();
        assert!(!shared.has_work() && shared.queues.urgent.pop().is_none());
        for token in tokens {
            shared.queues.urgent.push(token);
            assert!(shared.has_work(), "a worker would fall asleep beside it");
        }
        for handle in &handles {
            assert!(!shared.queues.urgent.is_empty());
            let task = shared.queues.urgent.pop().unwrap().into_task();
            assert_eq!(task.pid(), handle.pid());
        }
        assert!(shared.queues.urgent.is_empty() && !shared.has_work());
        drop(handles);
        // No thread has their tokens any more: nothing would end them.
        std::mem::forget(scheduler);
    }

    // pins: G2
    #[test]
    fn a_lone_process_is_left_to_its_worker_and_a_second_wakes_a_sleeper() {
        let builder = Scheduler::builder().workers(2);
        // No worker serves them.
        let scheduler = builder.shutdown_deadline(std::time::Duration::ZERO);
        let scheduler = scheduler.build().unwrap();
        for _ in 0..2 {
            drop(scheduler.submit(Quick, "main", ()).unwrap());
        }
        let shared = &scheduler.shared;
        let sleeper = {
            let shared = Arc::clone(shared);
            thread::spawn(move || {
                shared
                    .queues
                    .idle
                    .sleep(1, false, || false, || false, || None)
            })
        };
        while shared.queues.idle.snapshot().sleeping == 0 {
            thread::yield_now();
        }
        let queue = LocalQueue::of_first(shared);
        local::enter(&queue, || {
            let asleep = [(); 2].map(|()| {
                shared.schedule(shared.queues.global.pop().unwrap());
                shared.queues.idle.snapshot().sleeping
            });
            assert_eq!(asleep, [1, 0]);
        });
        assert_eq!(
            sleeper.join().unwrap(),
            crate::queues::idle::Woken::Notified
        );
        // For the scheduler's end, as no worker has these tokens.
        while let Some(token) = queue.deque.pop() {
            shared.queues.global.push(token);
        }
    }
}
