//! What all workers and all callers of a scheduler share.

use crate::base::clock::CoarseTime;
use crate::base::stats::{AllCounters, Counters};
use crate::config::Config;
use crate::handlers::commands::CommandRegistry;
use crate::handlers::factories::Factories;
use crate::handlers::names::Names;
use crate::limits::room::Limit;
use crate::limits::waiters::Waiters;
use crate::limits::waiting_steps::WaitingSteps;
use crate::probe::{Active, Probe, Push, Scheduler};
use crate::process::cancel_signals::CancelSignals;
use crate::process::exit_actions::ExitRequest;
use crate::process::revoked::Revoked;
use crate::progress::Progress;
use crate::progress::stopper::Stopper;
use crate::queues::closing_inbox::ClosingInbox;
use crate::queues::idle::Idle;
use crate::queues::timer_waiter::TimerWaiter;
use crate::reports::failures::Lines;
use crate::reports::long_steps::LongSteps;
use crate::reports::queue::Reports;
use crate::runtime::cell::Task;
use crate::runtime::driver::{Driven, Driver};
use crate::runtime::extensions::Extensions;
use crate::runtime::frames;
use crate::runtime::local;
use crate::runtime::local::LocalQueue;
use crate::runtime::pool::{Cache, FRESH, Pool};
use crate::runtime::registry::Registry;
use crate::runtime::sources::Source;
use crate::runtime::token::Token;
use crate::runtime::turns::Turns;
use crate::runtime::worker_slots::WorkerSlots;
use ganger_deque::{Stealer, Worker};
use ganger_mpsc::Injector;
use ganger_os::{Pins, Sampler};
use ganger_proc_api::{HostName, Message, NodeName, Pid};
use ganger_sync::atomic::{AtomicBool, Ordering};
use ganger_sync::{CachePadded, ShardedCount, WaitableCount, sync};
#[cfg(feature = "check")]
use std::any::Any;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

pub(crate) struct Shared {
    pub(crate) host: HostName,
    pub(crate) node: Option<NodeName>,
    pub(crate) config: Config,
    pub(crate) commands: CommandRegistry,
    pub(crate) factories: Factories,
    pub(crate) names: Arc<Names>,
    pub(crate) closing_inbox: ClosingInbox<ExitRequest>,
    pub(crate) revoked: Arc<Revoked>,
    pub(crate) registry: Registry,
    /// New processes, and processes woken from outside of any worker; first in, first out.
    pub(crate) global: Injector<Token>,
    /// The urgent lane: processes that a system event has woken, or waits for. Workers take from it
    /// before they look elsewhere, and find it empty as a rule, by two loads.
    ///
    /// Rejected: a lane in each worker, because the sender may choose a worker that is in a long
    /// step. Rejected: the top of the worker's deque, because a thief may take the process, or the
    /// next process that the step wakes may bury it.
    pub(crate) urgent: Injector<Token>,
    /// The lane of arrivals: processes that a source has woken, first in, first out. Workers take
    /// from it before they look at their deques, and find it empty as a rule, by two loads.
    ///
    /// Rejected: the deque of the worker that delivers, where the newest comes first, and which has
    /// a slice of the time alone: with long steps beside them, the oldest wait for many slices.
    pub(crate) arrivals: Injector<Token>,
    /// Of this scheduler alone, in this program.
    pub(crate) number: u64,
    /// Of the workers' deques, and of those of their spares.
    stealers: Box<[Stealer<Token>]>,
    pub(crate) idle: Idle,
    pub(crate) timer_waiter: TimerWaiter,
    pub(crate) sources: Vec<Arc<dyn Source>>,
    pub(crate) driven: Option<Driven>,
    pub(crate) extensions: Extensions,
    /// Some process has had values that its children inherit.
    pub(crate) has_inherited: AtomicBool,
    pub(crate) probe: Active,
    pub(crate) worker_slots: WorkerSlots,
    pub(crate) long_steps: LongSteps,
    pub(crate) reports: Arc<Reports>,
    pub(crate) failure_lines: Lines,
    /// Of threads, where they are asked for.
    pub(crate) backtraces: Option<Box<dyn Sampler>>,
    /// Written by the monitor.
    pub(crate) time: CachePadded<CoarseTime>,
    pub(crate) counters: AllCounters,
    /// Processes that were submitted and have not ended, and submissions under way.
    pub(crate) live: ShardedCount,
    /// Processes that count for `max_processes`; unused without a limit.
    pub(crate) places: WaitableCount,
    /// Threads of the scheduler that have not returned: workers, spares, the monitor, the
    /// supervisor of a stop, reapers.
    pub(crate) threads: WaitableCount,
    /// Of a mailbox, unless its process has one of its own.
    pub(crate) limit: Limit,
    /// The senders that wait for room in mailboxes, where these have a limit.
    pub(crate) waiters: Waiters<Message>,
    /// The steps of its processes that wait for room in whichever mailboxes.
    pub(crate) waiting_steps: WaitingSteps,
    pub(crate) cancel_signals: CancelSignals,
    pub(crate) shutdown: Progress,
    pub(crate) stopper: Stopper,
    /// Has what is queued after the halt ended, for a thread that has queued something.
    end_queued: fn(&Arc<Self>),
    /// Held while the workers are started.
    pub(crate) starting: std::sync::Mutex<()>,
    pub(crate) turns: Turns,
    pub(crate) pool: Pool,
    /// The workers' deques, until `start` hands them out.
    unstarted: sync::Mutex<Option<Vec<Worker<Token>>>>,
    /// A worker's thread has been started.
    served: AtomicBool,
}

/// A number that no other scheduler of the program has. It is drawn, because two of 64 bits are not
/// the same.
fn draw_number() -> u64 {
    RandomState::new().hash_one(())
}

/// The generation at which ids begin: one of its own for each scheduler and run, so that a PID of
/// another one finds no process. Always the first where promises are checked, as in a simulation,
/// which repeats.
fn first_generation(config: &Config, number: u64) -> u32 {
    if config.is_checked {
        return 1;
    }
    // Most of the generations are left, and PIDs stay short.
    fastrand::Rng::with_seed(number).u32(1..=1 << 30)
}

/// What makes processes ready from outside of the scheduler.
type Outside = (Vec<Arc<dyn Source>>, Option<Arc<dyn Driver>>);

impl Shared {
    pub(crate) fn new(
        workers: usize,
        (host, node): (HostName, Option<NodeName>),
        config: Config,
        (sources, driver): Outside,
        pins: Option<Pins>,
        backtraces: Option<Box<dyn Sampler>>,
        end_queued: fn(&Arc<Self>),
    ) -> Arc<Self> {
        let slots = workers + config.max_spares;
        // Spares' deques are small until they have something to hold.
        let capacity = |slot| {
            if slot < workers {
                config.deque_capacity
            } else {
                1
            }
        };
        let deques: Vec<Worker<Token>> = (0..slots)
            .map(|slot| Worker::with_capacity(capacity(slot)))
            .collect();
        let driven = driver.map(Driven::new);
        let number = draw_number();
        let idle = Idle::new(workers, slots);
        let shared = Arc::new(Self {
            host,
            node,
            commands: CommandRegistry::new(),
            factories: Factories::default(),
            names: Arc::default(),
            closing_inbox: ClosingInbox::new(),
            revoked: Arc::default(),
            registry: Registry::beginning_at(first_generation(&config, number)),
            number,
            global: Injector::new(),
            urgent: Injector::new(),
            arrivals: Injector::new(),
            stealers: deques.iter().map(Worker::stealer).collect(),
            idle: match &driven {
                Some(driven) => idle.interrupted_by(driven.interrupter()),
                None => idle,
            },
            driven,
            timer_waiter: TimerWaiter::new(sources.len(), slots + 1),
            sources,
            extensions: Extensions::default(),
            has_inherited: AtomicBool::new(false),
            probe: Active::new(&config, slots),
            worker_slots: WorkerSlots::new(workers, slots, pins),
            long_steps: LongSteps::default(),
            reports: Arc::default(),
            failure_lines: Lines::default(),
            backtraces,
            time: CachePadded::default(),
            counters: AllCounters::new(slots),
            live: ShardedCount::new(slots),
            places: WaitableCount::default(),
            threads: WaitableCount::default(),
            shutdown: Progress::default(),
            stopper: Stopper::default(),
            end_queued,
            starting: std::sync::Mutex::default(),
            turns: Turns::new(slots),
            pool: Pool::new(),
            unstarted: sync::Mutex::new(Some(deques)),
            served: AtomicBool::new(false),
            limit: config.mailbox_limit.map_or(Limit::NONE, Limit::of),
            waiters: Waiters::new(),
            waiting_steps: WaitingSteps::default(),
            cancel_signals: CancelSignals::default(),
            config,
        });
        shared.attach_sources();
        shared
    }

    /// The workers' deques, once.
    pub(crate) fn take_deques(&self) -> Option<Vec<Worker<Token>>> {
        sync::lock(&self.unstarted).take()
    }

    /// Whether it has been tried to start workers.
    pub(crate) fn is_started(&self) -> bool {
        sync::lock(&self.unstarted).is_none()
    }

    /// Whether a wait for a process would not end: nothing runs it, and no stop ends it.
    pub(crate) fn is_unstarted(&self) -> bool {
        !self.shutdown.is_stopping() && !self.is_started()
    }

    /// There is a worker.
    pub(crate) fn begin_to_serve(&self) {
        // Ordering: Relaxed: the reader is behind the lock that the starter of workers holds.
        self.served.store(true, Ordering::Relaxed);
    }

    /// Whether there has ever been a worker; for callers after the start.
    pub(crate) fn is_served(&self) -> bool {
        // Ordering: Relaxed, as above.
        self.served.load(Ordering::Relaxed)
    }

    /// Calls `f` with what this thread keeps of ended processes. `f` calls nothing of a user's.
    pub(crate) fn with_cache<R>(&self, f: impl FnOnce(&mut Cache) -> R) -> R {
        local::with_either(self, |queue| match queue {
            Some(queue) => f(&mut queue.cache.borrow_mut()),
            None => self.pool.outside(f),
        })
    }

    /// Keeps the cell of an ended process for another one, if there is no other reference to it.
    pub(crate) fn keep_cell(&self, queue: &LocalQueue, cell: Task) {
        if !self.shutdown.is_halted() {
            queue.cache.borrow_mut().keep_cell(cell, &self.pool);
        }
    }

    /// An id that no other process of this scheduler has, has had or will have; none when there are
    /// no more.
    pub(crate) fn claim_id(&self, cache: &mut Cache) -> Option<u64> {
        cache.take_id(&self.pool, || self.registry.claim_fresh(FRESH))
    }

    /// Frees an id, and gives the process back whose id it was, if it was visible.
    ///
    /// # Safety
    /// As for [`Registry::remove`].
    pub(crate) unsafe fn free_id(&self, id: u64) -> Option<Task> {
        // SAFETY: as this function's.
        let (task, next) = unsafe { self.registry.remove(id) };
        if let Some(next) = next {
            self.with_cache(|cache| cache.keep_id(next, &self.pool));
        }
        task
    }

    /// The process that the worker runs at this moment.
    pub(crate) fn running_on(&self, worker: usize) -> Option<Pid> {
        let id = self.turns.on(worker)?;
        Some(Pid::new(self.host, id))
    }

    /// The id of the process whose step or `init` this thread is in, or zero.
    pub(crate) fn own_process_id(&self) -> u64 {
        let in_step = || self.turns.on(self.own_index()?);
        frames::submitted(self).or_else(in_step).unwrap_or_default()
    }

    /// Whether the worker is in the turn of that number, with that process.
    pub(crate) fn is_in_turn(&self, worker: usize, turn: u64, pid: Pid) -> bool {
        let turns = &self.counters.of(Some(worker)).turns;
        turns.get() == turn && self.turns.on(worker) == Some(pid.id())
    }

    /// The processes that are inside a call at this moment.
    pub(crate) fn running_pids(&self) -> Vec<Pid> {
        let ids = self.turns.ids().into_iter();
        ids.map(|id| Pid::new(self.host, id)).collect()
    }

    /// Which worker this thread is, if so.
    pub(crate) fn own_index(&self) -> Option<usize> {
        local::with(self, |queue| queue.index)
    }

    /// The counters of this thread.
    pub(crate) fn own_counters(&self) -> &Counters {
        self.counters.of(self.own_index())
    }

    /// Pushes a process into the global queue, and wakes no worker.
    #[inline]
    pub(crate) fn push_global(&self, push: Push, token: Token) {
        let process = &token.cell().probe;
        let _pushing = self.probe.pushing(process, push, || self.global.len());
        self.global.push(token);
    }

    /// Pushes a process into the urgent lane, and wakes no worker.
    #[inline]
    fn push_urgent(&self, token: Token) {
        let process = &token.cell().probe;
        let _pushing = self
            .probe
            .pushing(process, Push::Urgent, || self.urgent.len());
        self.urgent.push(token);
    }

    /// Pushes a process into the lane of arrivals, and wakes no worker.
    fn push_arrival(&self, token: Token) {
        let (process, push) = (&token.cell().probe, Push::Arrival);
        let _pushing = (self.probe).pushing(process, push, || self.arrivals.len());
        self.arrivals.push(token);
    }

    /// Queues a process whose run token the caller owns: in the deque of the worker that runs on
    /// this thread, or else in the global queue. Wakes a worker if one should look.
    #[inline]
    pub(crate) fn schedule(self: &Arc<Self>, token: Token) {
        local::with_either(self, |queue| self.schedule_on(queue, token));
    }

    /// As [`schedule`](Self::schedule), on a thread that has that queue.
    #[inline]
    pub(crate) fn schedule_on(self: &Arc<Self>, queue: Option<&LocalQueue>, token: Token) {
        match queue {
            Some(queue) => self.schedule_here(queue, token),
            None => self.schedule_from_outside(token),
        }
    }

    /// As [`schedule`](Self::schedule), on a thread that is no worker.
    #[inline(never)]
    fn schedule_from_outside(self: &Arc<Self>, token: Token) {
        let Some(token) = self.put_aside(token) else {
            return;
        };
        let _waking = self.probe.waking(|| None);
        if local::is_delivering() {
            self.push_arrival(token);
        } else {
            self.push_global(Push::Global, token);
        }
        self.idle.notify_from_outside();
        self.end_after_halt();
    }

    /// As [`schedule`](Self::schedule), on the worker that has the queue.
    #[inline(never)]
    pub(crate) fn schedule_here(&self, queue: &LocalQueue, token: Token) {
        if local::is_delivering() {
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
        self.idle.defer();
    }

    /// As [`schedule_here`](Self::schedule_here), for what a source wakes.
    #[cold]
    fn schedule_arrival(&self, queue: &LocalQueue, token: Token) {
        let is_alone = queue.deque.is_empty() && !self.is_any_queued();
        let _waking = self.probe.waking(|| Some(queue.index));
        self.push_arrival(token);
        if is_alone {
            // This worker takes it itself: it delivers between two turns.
            self.idle.defer();
        } else {
            self.idle.notify();
        }
    }

    /// Whether something is in a queue that all workers share.
    fn is_any_queued(&self) -> bool {
        !self.urgent.is_empty() || !self.arrivals.is_empty() || !self.global.is_empty()
    }

    /// As [`schedule_here`](Self::schedule_here), where there are others.
    #[inline(never)]
    fn schedule_beside(&self, queue: &LocalQueue, token: Token) {
        let _waking = self.probe.waking(|| Some(queue.index));
        queue.note_woken();
        queue.push(token);
        self.idle.notify();
    }

    /// Queues a process before all others: a system event has woken it, and the caller owns its
    /// run token. Wakes a worker if one should look.
    pub(crate) fn schedule_urgent(self: &Arc<Self>, token: Token) {
        let _waking = self.probe.waking(|| self.own_index());
        self.push_urgent(token);
        self.idle.notify_from_outside();
        self.end_after_halt();
    }

    /// Has the queued processes ended after the halt, when no worker may be left to look. This
    /// thread has just queued something, or may have.
    #[inline]
    pub(crate) fn end_after_halt(self: &Arc<Self>) {
        if self.shutdown.is_halted() {
            (self.end_queued)(self);
        }
    }

    /// Queues a process that has just run on this thread and has a system event, before all others.
    ///
    /// On a worker it wakes no other worker: this one looks there next. It wakes another one if it
    /// then leaves something there.
    pub(crate) fn requeue_urgent(self: &Arc<Self>, token: Token) {
        match self.own_index() {
            Some(worker) => {
                self.probe.looking(worker);
                self.push_urgent(token);
            }
            None => self.schedule_urgent(token),
        }
    }

    /// As [`requeue`](Self::requeue), behind the others that are ready, if there are any.
    #[cold]
    pub(crate) fn requeue_last(self: &Arc<Self>, queue: Option<&LocalQueue>, token: Token) {
        match queue {
            Some(queue) if !queue.deque.is_empty() || !self.global.is_empty() => {
                self.requeue_behind(queue, token);
            }
            queue => self.requeue(queue, token),
        }
    }

    /// Queues a process that has just run on this thread and is ready again.
    ///
    /// Wakes no other worker: this worker looks at its deque next. It wakes another one if it then
    /// takes another process from the deque.
    pub(crate) fn requeue(self: &Arc<Self>, queue: Option<&LocalQueue>, token: Token) {
        match queue {
            Some(queue) if queue.has_woken() => self.requeue_behind(queue, token),
            Some(queue) => {
                self.probe.looking(queue.index);
                queue.push(token);
            }
            None => self.schedule(token),
        }
    }

    /// As [`requeue`](Self::requeue), where the deque has some that were woken or stolen: in the
    /// global queue the process does not keep them waiting.
    #[inline(never)]
    fn requeue_behind(&self, queue: &LocalQueue, token: Token) {
        self.probe.looking(queue.index);
        self.push_global(Push::Global, token);
        self.idle.notify_from_outside();
    }

    /// The other ends of all deques in which there may be something.
    #[inline]
    pub(crate) fn stealers(&self) -> &[Stealer<Token>] {
        &self.stealers[..self.worker_slots.used()]
    }

    /// Whether something is queued anywhere.
    pub(crate) fn has_work(&self) -> bool {
        self.is_any_queued() || self.stealers().iter().any(|stealer| !stealer.is_empty())
    }
}

impl Scheduler for Arc<Shared> {}

impl Shared {
    /// The scheduler that a probe is told of.
    #[cfg(feature = "check")]
    pub(crate) fn of(scheduler: &dyn Scheduler) -> &Arc<Self> {
        let shared = (scheduler as &dyn Any).downcast_ref();
        shared.unwrap_or_else(|| unreachable!("there is one kind"))
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
        let tokens: Vec<_> = std::iter::from_fn(|| shared.global.pop()).collect();
        assert!(!shared.has_work() && shared.urgent.pop().is_none());
        for token in tokens {
            shared.urgent.push(token);
            assert!(shared.has_work(), "a worker would fall asleep beside it");
        }
        for handle in &handles {
            assert!(!shared.urgent.is_empty());
            let task = shared.urgent.pop().unwrap().into_task();
            assert_eq!(task.pid, handle.pid());
        }
        assert!(shared.urgent.is_empty() && !shared.has_work());
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
            thread::spawn(move || shared.idle.sleep(1, false, || false, || false, || None))
        };
        while shared.idle.snapshot().sleeping == 0 {
            thread::yield_now();
        }
        let queue = LocalQueue::of_first(shared);
        local::enter(&queue, || {
            let asleep = [(); 2].map(|()| {
                shared.schedule(shared.global.pop().unwrap());
                shared.idle.snapshot().sleeping
            });
            assert_eq!(asleep, [1, 0]);
        });
        assert_eq!(
            sleeper.join().unwrap(),
            crate::queues::idle::Woken::Notified
        );
        // For the scheduler's end, which knows of no worker that has them.
        while let Some(token) = queue.deque.pop() {
            shared.global.push(token);
        }
    }
}
