//! A supervisor: starts a child, and starts another when it fails, so many times at the most.
//! `cargo run -p ganger --example supervisor`
//!
//! Processes have no links to each other, but `Lifecycle::on_complete` is told how each of them ends,
//! by itself, by an error or by a panic. Here it tells the supervisor, by a control message: where mailboxes have a
//! limit (here they have none), as many of these as that find room in a full mailbox, too. It needs a handle for that, and hooks are handed over before there is a
//! scheduler: hence the `OnceLock`. The handle is a weak one: the scheduler keeps its hooks, and hooks that
//! kept the scheduler would keep each other for ever.

use ganger::prelude::*;
use std::sync::{Arc, OnceLock};

/// The supervisor's id: a fixed one, by which everybody finds it.
pub(crate) const SUPERVISOR: u64 = 1;

fn main() -> Result<(), BoxError> {
    for (failures, restarts) in [(2, 3), (3, 2)] {
        println!("A child that fails {failures} times, and {restarts} restarts at the most:");
        println!("supervisor: {}\n", supervise(failures, restarts)?);
    }
    Ok(())
}

/// Runs a supervisor of a child that fails that often; says how the supervisor has ended.
pub(crate) fn supervise(failures: u32, restarts: u32) -> Result<String, BoxError> {
    let exits = Exits::default();
    let scheduler = Scheduler::builder().lifecycle(exits.clone()).build()?;
    // There is nothing in it yet.
    let _ = exits.0.set(scheduler.downgrade());
    scheduler.start()?;

    let child = move |attempt| Flaky { attempt, failures };
    let supervisor = Supervisor::new(restarts, child);
    let pid = Pid::new(scheduler.host_name(), SUPERVISOR);
    let exit = scheduler.submit_as(pid, supervisor, "main", ())?.wait();
    Ok(match exit {
        ExitReason::Done(result) => result.as_str().unwrap_or_default().to_owned(),
        other => other.to_string(),
    })
}

/// Tells the supervisor of every process that ends.
#[derive(Clone, Default)]
pub(crate) struct Exits(pub Arc<OnceLock<WeakHandle>>);

impl Lifecycle for Exits {
    fn on_complete(&self, pid: Pid, reason: &ExitReason) {
        let Some(scheduler) = self.0.get().and_then(WeakHandle::upgrade) else {
            return;
        };
        let supervisor = Pid::new(scheduler.host_name(), SUPERVISOR);
        let topic = if reason.is_done() { "done" } else { "failed" };
        let exit = Package::new(pid, supervisor, topic, reason.to_string());
        // It comes back when the supervisor has ended, as when the process is the supervisor itself. With a limit of
        // mailboxes it would when the supervisor is too far behind, and would have to be kept for later.
        let _ = scheduler.send_control(exit);
    }
}

/// Keeps one child running until it is done.
pub(crate) struct Supervisor<F> {
    /// Makes a child, and is told the how many-th it is, from 1.
    make: F,
    /// How many children have been started.
    started: u32,
    /// How many may be.
    most: u32,
    child: Option<Pid>,
    ctx: Option<ProcessContext>,
}

impl<F> Supervisor<F> {
    pub(crate) fn new(restarts: u32, make: F) -> Self {
        Self {
            make,
            started: 0,
            most: restarts.saturating_add(1),
            child: None,
            ctx: None,
        }
    }
}

impl<P: Process, F: Fn(u32) -> P> Supervisor<F> {
    fn start(&mut self) -> Result<(), BoxError> {
        let ctx = self.ctx.as_ref().ok_or("not initialised")?;
        let attempt = self.started + 1;
        match ctx.submit((self.make)(attempt), "main", ()) {
            // It may have ended by now: its control message waits until this step is over.
            Ok(child) => (self.child, self.started) = (Some(child), attempt),
            // The supervisor is about to be cancelled, too.
            Err(error) if matches!(error.kind, SubmitErrorKind::Stopping) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

impl<P: Process, F: Fn(u32) -> P + Send + 'static> Process for Supervisor<F> {
    fn init(&mut self, ctx: &ProcessContext, _: &str, _: Payloads) -> Result<(), BoxError> {
        self.ctx = Some(ctx.clone());
        Ok(())
    }

    fn step(&mut self, events: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
        out.idle();
        for event in events {
            match event {
                Event::Control(exit) if self.child.is_some() && exit.source == self.child => {
                    let how = exit.payloads.into_first();
                    println!("child {}: {}", self.started, how.as_str().unwrap_or("?"));
                    self.child = None;
                    if exit.topic == "done" {
                        out.done(format!("done at attempt {}", self.started));
                        return Ok(());
                    }
                    if self.started == self.most {
                        return Err(format!("gave up after attempt {}", self.started).into());
                    }
                }
                Event::Cancel(_) => {
                    out.done("cancelled");
                    return Ok(());
                }
                _ => {}
            }
        }
        match self.child {
            Some(_) => Ok(()),
            None => self.start(),
        }
    }
}

/// Fails at first.
struct Flaky {
    attempt: u32,
    failures: u32,
}

impl Process for Flaky {
    fn step(&mut self, _: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
        if self.attempt <= self.failures {
            return Err("no luck".into());
        }
        out.done(());
        Ok(())
    }
}
