//! Schedulers with timers, and children that note their starts and ends.

use ganger_proc_api::internal::RunnerOutput as _;
use ganger_proc_api::{
    Actor, BoxError, CancelReason, Completion, Context, ExitReason, StepOutput, StepResult,
};
use ganger_sched::{Handle, Scheduler};
use ganger_sim::{Rt, Sim};
use ganger_supervise::{ChildSpec, TreeHandle};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The time after which a wait of a test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn start(workers: usize) -> Scheduler {
    Scheduler::builder().workers(workers).start().unwrap()
}

pub(crate) fn sim(seed: u64) -> Sim {
    Sim::new(seed).workers(3).must_free()
}

pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}: not in time");
        thread::sleep(ms(1));
    }
}

/// The notes of the children, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    /// Takes the notes since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// Creates a child that notes its start and its end.
    pub(crate) fn child(&self, name: &'static str) -> impl Fn() -> Noting + Send + Sync + use<> {
        let log = self.clone();
        move || Noting {
            name,
            log: log.clone(),
            stops: Stops::AtOnce,
            init: Ok(()),
        }
    }
}

/// Creates a child that goes on when it is asked to stop, and has this time.
pub(crate) fn stubborn(log: &Log, name: &'static str, time: Duration) -> ChildSpec {
    let make = log.child(name);
    let make = move || Noting {
        stops: Stops::Never,
        ..make()
    };
    ChildSpec::new(name, make).stop_within(time)
}

/// A message to a [`Noting`] child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Do {
    Fail,
    Panic,
    Finish,
}

/// How it takes a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stops {
    AtOnce,
    Never,
    /// The child cleans up for this time first, and notes the end of the clean-up.
    After(Duration),
}

pub(crate) struct Noting {
    pub(crate) name: &'static str,
    pub(crate) log: Log,
    pub(crate) stops: Stops,
    pub(crate) init: Result<(), &'static str>,
}

impl Actor for Noting {
    type Message = Do;

    fn init(&mut self, _: &Context) -> Result<(), BoxError> {
        self.init?;
        self.log.note(format!("+{}", self.name));
        Ok(())
    }

    fn receive(&mut self, _: &Context, what: Do, out: &mut StepOutput) -> StepResult {
        match what {
            Do::Fail => return Err("no luck".into()),
            Do::Panic => panic!("a panic on purpose"),
            Do::Finish => out.done(()),
        }
        Ok(())
    }

    fn cancelled(&mut self, _: &Context, _: CancelReason, out: &mut StepOutput) -> StepResult {
        if self.stops != Stops::AtOnce {
            out.defer_cancel();
        }
        if let Stops::After(time) = self.stops {
            out.sleep(time, 0);
        }
        Ok(())
    }

    fn completed(&mut self, _: &Context, _: Completion, out: &mut StepOutput) -> StepResult {
        self.log.note(format!("clean {}", self.name));
        out.show_cancel("it has cleaned up".into());
        Ok(())
    }

    fn close(&mut self) {
        self.log.note(format!("-{}", self.name));
    }
}

/// Waits for the end of a supervisor in a simulation.
pub(crate) fn end_of(rt: &Rt<'_>, tree: TreeHandle) -> ExitReason {
    rt.wait(tree.into_handle())
}

pub(crate) fn send(handle: &Handle, tree: &TreeHandle, child: &str, what: Do) {
    let pid = tree.child(child).unwrap();
    let address = handle.address(pid).unwrap().typed::<Do>().unwrap();
    address.send(what).unwrap();
}
