//! A scheduler with its soak's equipment: handlers, answering threads, hooks, factories, and the
//! account.

use crate::account::Account;
use crate::actor::{Actor, Behaviour, Kit};
use crate::commands::Answerers;
use crate::faults::{Faults, ON_PURPOSE};
use crate::plan::{PATIENT_MS, SitePlan};
use crate::sink::Sink;
use crate::watch::Watch;
use fastrand::Rng;
use ganger::{
    BoxError, ExitReason, Handle, Lifecycle, Pid, Process, ProcessHandle, Runtime, Scheduler,
    Symbol, WorkerStats,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The names of factories, for upgrades.
pub(crate) const FACTORY: &str = "sink";
pub(crate) const BAD_FACTORY: &str = "bad";

/// A scheduler on trial.
pub(crate) struct Site {
    pub(crate) runtime: Runtime,
    pub(crate) account: Arc<Account>,
    answerers: Answerers,
}

/// The hooks of every process.
struct Hooks {
    account: Arc<Account>,
    max_processes: Option<usize>,
    /// Refuses each start whose number is a multiple of this; 0: never.
    refuse: u64,
    starts: AtomicU64,
}

impl Lifecycle for Hooks {
    fn on_start(&self, pid: Pid, _: Symbol) -> Result<(), BoxError> {
        // Ordering: Relaxed: a count.
        let nth = self.starts.fetch_add(1, Ordering::Relaxed) + 1;
        if self.refuse > 0 && nth.is_multiple_of(self.refuse) {
            self.account.refused_starts.bump();
            if (nth / self.refuse).is_multiple_of(2) {
                self.account.panics.bump();
                panic!("{ON_PURPOSE}: a hook");
            }
            return Err(format!("{ON_PURPOSE}: a hook").into());
        }
        self.account.started.bump();
        if let Some(max) = self.max_processes
            && let Some(alive) = self.alive()
            && alive > max as u64
        {
            let what = format!("{pid} starts as one of {alive}, and {max} may be alive");
            self.account.fault(what);
        }
        Ok(())
    }

    fn on_complete(&self, _: Pid, reason: &ExitReason) {
        self.account.exit(reason);
    }
}

impl Hooks {
    /// Returns the number of live processes; none if a process ends meanwhile.
    fn alive(&self) -> Option<u64> {
        let before = self.account.exits();
        let started = self.account.started.get();
        (self.account.exits() == before).then(|| started - before)
    }
}

impl Site {
    /// Builds and starts the site's scheduler.
    pub(crate) fn start(plan: &SitePlan, watch: &Watch) -> Result<Self, String> {
        let account = Arc::new(Account::default());
        let hooks = Hooks {
            account: Arc::clone(&account),
            max_processes: plan.max_processes,
            refuse: plan.refuse_starts,
            starts: AtomicU64::new(0),
        };
        let mut settings = Scheduler::builder()
            .workers(plan.workers)
            .deque_capacity(plan.deque_capacity)
            .event_batch(plan.event_batch)
            .global_batch(plan.global_batch)
            .rotation(plan.rotation)
            .spin_limits(plan.spins, 4 * plan.spins)
            .max_spares(plan.max_spares)
            .keep_spares(plan.keep_spares)
            .shutdown_deadline(Duration::from_millis(PATIENT_MS))
            .lifecycle(hooks)
            .quiet_failures();
        if let Some(limit) = plan.mailbox_limit {
            settings = settings.mailbox_limit(limit);
        }
        if let Some(max) = plan.max_processes {
            settings = settings.max_processes(max);
        }
        let runtime = Runtime::builder().node("soak").scheduler(settings);
        let runtime = runtime.build().map_err(|error| error.to_string())?;
        watch.add(runtime.downgrade(), &account);
        let answerers = Answerers::start(plan.answerers, plan.seed);
        let registered = answerers.register(&runtime, &account);
        registered.map_err(|error| error.to_string())?;
        let site = Self {
            runtime,
            account,
            answerers,
        };
        site.register_factories()?;
        let started = site.runtime.start();
        started.map_err(|error| error.to_string())?;
        Ok(site)
    }

    fn register_factories(&self) -> Result<(), String> {
        let kit = self.kit(Faults::default());
        let good = move || Box::new(kit.replacement(Sink, 0)) as Box<dyn Process>;
        let account = Arc::clone(&self.account);
        let bad = move || {
            account.panics.bump();
            panic!("{ON_PURPOSE}: a factory")
        };
        let good = self.runtime.register_factory(FACTORY, good);
        good.map_err(|error| error.to_string())?;
        let bad = self.runtime.register_factory(BAD_FACTORY, bad);
        bad.map_err(|error| error.to_string())
    }

    pub(crate) fn kit(&self, faults: Faults) -> Kit {
        Kit {
            account: Arc::clone(&self.account),
            faults,
        }
    }

    /// Submits a process. Returns none, and counts, if the process was refused.
    pub(crate) fn submit(&self, actor: Actor) -> Option<ProcessHandle> {
        let submitted = self.runtime.submit(actor, "main", ());
        if submitted.is_err() {
            self.account.refused.bump();
        }
        submitted.ok()
    }

    /// Submits processes until a process starts.
    pub(crate) fn submit_surely<B: Behaviour>(
        &self,
        kit: &Kit,
        random: &mut Rng,
        behaviour: impl Fn() -> B,
    ) -> ProcessHandle {
        loop {
            let actor = kit.actor(behaviour(), random.u64(..));
            if let Some(handle) = self.submit(actor) {
                return handle;
            }
            std::thread::yield_now();
        }
    }

    /// Asks processes to finish, and waits until they have.
    pub(crate) fn finish(&self, watch: &Watch, handles: Vec<ProcessHandle>) -> Vec<ExitReason> {
        for handle in &handles {
            if self.runtime.cancel(handle.pid(), "the soak").is_ok() {
                self.account.cancels.bump();
            }
        }
        handles
            .into_iter()
            .map(|handle| wait(watch, handle))
            .collect()
    }

    /// Asks all live processes to finish. No driver waits for them: attacks have put some of them
    /// in the place of processes with an end of their own.
    pub(crate) fn finish_rest(&self) {
        for process in self.runtime.processes() {
            if self.runtime.cancel(process.pid, "the wave is over").is_ok() {
                self.account.cancels.bump();
            }
        }
    }

    /// Waits until no process is alive and no completer is open, and settles the account.
    pub(crate) fn settle(&self, watch: &Watch) -> Result<(), String> {
        settle(&self.runtime, &self.account, &self.answerers, watch)
    }

    /// Drops the scheduler, waits for its processes, settles the account, and waits for all
    /// threads. Returns the scheduler's own counts.
    pub(crate) fn end(self, watch: &Watch) -> Result<WorkerStats, String> {
        let Self {
            runtime,
            account,
            answerers,
            ..
        } = self;
        let handle = Handle::clone(&runtime);
        {
            let _waits = watch.wait("the round waits until the scheduler is dropped".to_owned());
            drop(runtime);
        }
        settle(&handle, &account, &answerers, watch)?;
        let (stats, weak) = (handle.stats().total, handle.downgrade());
        drop(handle);
        watch.until("nothing keeps the scheduler's memory", || {
            weak.upgrade().is_none()
        });
        let _waits = watch.wait("the round waits for those who answer later".to_owned());
        let joined = answerers.join();
        joined.map_err(|panic| format!("one who answers: {}", ganger_soak::message(&*panic)))?;
        Ok(stats)
    }
}

fn settle(
    scheduler: &Handle,
    account: &Account,
    answerers: &Answerers,
    watch: &Watch,
) -> Result<(), String> {
    watch.until("every process has ended", || {
        let ended = account.exits();
        let stats = scheduler.stats();
        stats.live == 0 && ended == stats.ended() && ended == account.started.get()
    });
    watch.until("every command has been answered", || {
        answerers.answer_kept();
        answerers.are_idle()
    });
    let timers = scheduler.timers();
    // The timers first: the scheduler's counts, read later, include their effects.
    let counts = || {
        let timers = timers.stats();
        (scheduler.stats().total, timers)
    };
    watch.until("the completion of every timer is counted", || {
        let (stats, timers) = counts();
        account.has_all_answers(&stats, &timers)
    });
    let listed = scheduler.processes();
    if !listed.is_empty() {
        return Err(format!("all have ended, and listed are {listed:?}\n"));
    }
    let (stats, timers) = counts();
    account.settle(&stats, &timers)
}

/// Waits for the end of a process.
pub(crate) fn wait(watch: &Watch, handle: ProcessHandle) -> ExitReason {
    let _waits = watch.wait(format!("somebody waits until {} has ended", handle.pid()));
    handle.wait()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::{FIRST_TIMER, Mail, Next, Turn};
    use ganger::{Envelope, Payload, Timers};
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// A payload whose destructor waits.
    struct Gate {
        entered: Sender<()>,
        opened: Receiver<()>,
    }

    impl Drop for Gate {
        fn drop(&mut self) {
            self.entered.send(()).ok();
            self.opened.recv().ok();
        }
    }

    /// Sets a timer behind a refused envelope, and goes on until both are due.
    struct Late {
        timers: Timers,
        envelope: Option<Envelope>,
    }

    const SOON: Duration = Duration::from_millis(1);

    impl Behaviour for Late {
        fn turn(&mut self, _: Vec<Mail>, turn: &mut Turn<'_>) -> Result<Next, BoxError> {
            if let Some(envelope) = self.envelope.take() {
                let _ = self.timers.send_after(SOON, envelope);
                turn.sleep(SOON, FIRST_TIMER);
                return Ok(Next::GoOn);
            }
            let due = self.timers.now().after(8 * SOON);
            while self.timers.now() < due {
                std::thread::yield_now();
            }
            Ok(Next::Wait)
        }
    }

    struct Ends;

    impl Behaviour for Ends {
        fn turn(&mut self, _: Vec<Mail>, _: &mut Turn<'_>) -> Result<Next, BoxError> {
            Ok(Next::Done(0))
        }
    }

    /// Keeps a worker busy, which would deliver an earlier timer before the rest is due.
    struct Keeps(Option<(Sender<()>, Receiver<()>)>);

    impl Behaviour for Keeps {
        fn turn(&mut self, _: Vec<Mail>, _: &mut Turn<'_>) -> Result<Next, BoxError> {
            if let Some((begun, ends)) = self.0.take() {
                begun.send(()).unwrap();
                ends.recv().ok();
            }
            Ok(Next::Done(0))
        }
    }

    /// Hangs the worker with the fired timer in the destructor before it, while the process ends.
    #[test]
    fn the_account_waits_for_a_timer_that_has_fired_and_is_not_completed() {
        let plan = SitePlan {
            workers: 2,
            max_spares: 0,
            refuse_starts: 0,
            max_processes: None,
            ..SitePlan::veteran(1)
        };
        let watch = Watch::default();
        let site = Site::start(&plan, &watch).unwrap();
        let (kit, mut random) = (site.kit(Faults::default()), Rng::with_seed(1));
        let gone = site.submit_surely(&kit, &mut random, || Ends);
        let pid = gone.pid();
        drop(gone.wait());

        let (begun, begins) = channel();
        let (release, released) = channel();
        let keeps = kit.actor(Keeps(Some((begun, released))), 2);
        let keeps = site.submit(keeps).unwrap();
        begins.recv().unwrap();
        let (entered, enters) = channel();
        let (opens, opened) = channel();
        let gate = Payload::any(Gate { entered, opened });
        let late = Late {
            timers: site.runtime.timers().clone(),
            envelope: Some(Envelope::new(None, pid, "late", gate)),
        };
        let late = site.submit(kit.actor(late, 1)).unwrap();
        enters.recv().unwrap();
        drop(release);
        drop(keeps.wait());
        site.runtime.terminate(late.pid()).unwrap();
        drop(late.wait());
        let settled = std::thread::scope(|scope| {
            let settled = scope.spawn(|| site.settle(&watch));
            while !settled.is_finished() && !watch.report().contains("timer is counted") {
                std::thread::yield_now();
            }
            opens.send(()).unwrap();
            settled.join().unwrap()
        });
        assert_eq!(settled, Ok(()));
        site.end(&watch).unwrap();
    }
}
