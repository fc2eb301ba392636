//! A supervisor: it starts a child, and starts another one when the child fails, up to a limit.
//! `cargo run -p ganger --example supervisor`
//!
//! It monitors each child, and so learns how the child ends: done, failed or panicked. When the
//! supervisor is cancelled, it cancels its child, and ends after it. Each child has the same fixed
//! id, so that other processes always find the current one.

use ganger::prelude::*;

/// The child's id.
pub(crate) const CHILD: u64 = 1;

fn main() -> Result<(), BoxError> {
    for (failures, restarts) in [(2, 3), (3, 2)] {
        println!("A child that fails {failures} times, and {restarts} restarts at the most:");
        println!("supervisor: {}\n", supervise(failures, restarts)?);
    }
    Ok(())
}

/// Runs a supervisor of a child that fails that often; says how the supervisor has ended.
pub(crate) fn supervise(failures: u32, restarts: u32) -> Result<String, BoxError> {
    let scheduler = Scheduler::builder().build()?;
    scheduler.start()?;

    let child = move |attempt| Flaky { attempt, failures };
    let child_pid = Pid::new(scheduler.host_name(), CHILD);
    let supervisor = Supervisor::new(child_pid, restarts, child);
    let exit = scheduler.spawn(supervisor)?.wait();
    Ok(match exit {
        ExitReason::Done(result) => result.as_str().unwrap_or_default().to_owned(),
        other => other.to_string(),
    })
}

/// Keeps one child running until it is done.
pub(crate) struct Supervisor<F> {
    /// The child's PID, whichever it is.
    child: Pid,
    /// Makes a child; its argument is the child's number, from 1.
    make: F,
    /// How many children have been started.
    started: u32,
    /// How many may be.
    most: u32,
    is_cancelled: bool,
}

impl<F> Supervisor<F> {
    pub(crate) fn new(child: Pid, restarts: u32, make: F) -> Self {
        Self {
            child,
            make,
            started: 0,
            most: restarts.saturating_add(1),
            is_cancelled: false,
        }
    }
}

impl<P: Process, F: Fn(u32) -> P> Supervisor<F> {
    fn start(&mut self, ctx: &Context) -> Result<(), BoxError> {
        self.started += 1;
        // The number of the child is the tag of its monitor.
        let tag = u64::from(self.started);
        match ctx.submit_as(self.child, (self.make)(self.started), "main", ()) {
            // If the child has ended already, the notice says so.
            Ok(child) => Ok(ctx.monitor(child, tag)?),
            // The supervisor is about to be cancelled, too.
            Err(error) if matches!(error.kind, SubmitErrorKind::Stopping) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl<P: Process, F: Fn(u32) -> P + Send + 'static> Process for Supervisor<F> {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if self.started == 0 {
            self.start(ctx)?;
        }
        for event in events {
            match event {
                Event::Exit(exit) if exit.tag == u64::from(self.started) => {
                    println!("child {}: {}", self.started, exit.cause);
                    if self.is_cancelled {
                        out.done("cancelled");
                        return Ok(());
                    }
                    if exit.cause.is_done() {
                        out.done(format!("done at attempt {}", self.started));
                        return Ok(());
                    }
                    if self.started == self.most {
                        return Err(format!("gave up after attempt {}", self.started).into());
                    }
                    self.start(ctx)?;
                }
                Event::Cancel(reason) => {
                    self.is_cancelled = true;
                    out.defer_cancel();
                    if ctx.cancel(self.child, reason).is_err() {
                        out.done("cancelled");
                        return Ok(());
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Fails at first.
struct Flaky {
    attempt: u32,
    failures: u32,
}

impl Process for Flaky {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if self.attempt <= self.failures {
            return Err("no luck".into());
        }
        out.done(());
        Ok(())
    }
}
