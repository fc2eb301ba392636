//! Restarts in place, as the scheduler carries them out for crates above it.

use crate::support::start;
use ganger_proc_api::{
    BoxError, Context, Event, Events, ExitCause, Message, Payloads, Pid, Process, SendErrorKind,
    StepOutput, StepResult, UpgradeRequest, process_fn,
};
use ganger_sched::internal::ContextInternals as _;
use ganger_sched::{ContextExt, ExitAction, Handle};
use std::sync::mpsc;

/// Says when it is run, and why.
struct Says(mpsc::Sender<String>, String);

impl ExitAction for Says {
    fn release(&mut self, _: Pid) {
        let _ = self.0.send(format!("{}: released", self.1));
    }

    fn tell(self: Box<Self>, _: Pid, cause: &ExitCause) {
        let _ = self.0.send(format!("{}: {cause}", self.1));
    }
}

/// Another takes its place at each message, after a failure or by an upgrade.
struct Life {
    says: mpsc::Sender<String>,
    target: Pid,
    is_restart: bool,
    /// Whether it states the type of its messages.
    has_type: bool,
}

impl Process for Life {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        if self.has_type {
            // The first of several incarnations.
            ctx.begin_incarnations();
            ctx.accept_only::<u64>();
        }
        let number = ctx.incarnation();
        ctx.monitor(self.target, number)?;
        let says = Says(self.says.clone(), format!("own {number}"));
        ctx.add_exit_action(Box::new(says))?;
        Ok(self.says.send(format!("{number} begins"))?)
    }

    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        let mut is_over = false;
        for event in events {
            match event {
                Event::Message(_) => is_over = true,
                Event::Exit(notice) => {
                    let number = ctx.incarnation();
                    self.says.send(format!("{number}: end of {}", notice.tag))?;
                }
                _ => {}
            }
        }
        if !is_over {
            return Ok(());
        }
        let next = Self {
            says: self.says.clone(),
            target: self.target,
            is_restart: self.is_restart,
            has_type: false,
        };
        out.upgrade(if self.is_restart {
            UpgradeRequest::restart(next, "main", ExitCause::Failed("on purpose".into()))
        } else {
            UpgradeRequest::process(next, "main", ())
        });
        Ok(())
    }
}

fn begin(handle: &Handle, is_restart: bool) -> (Pid, Pid, mpsc::Receiver<String>) {
    let (says, said) = mpsc::channel();
    let target = handle.spawn(process_fn(|_, _, _| Ok(()))).unwrap().pid();
    let other = Says(says.clone(), "other".into());
    let life = handle.spawn(Life {
        says,
        target,
        is_restart,
        has_type: true,
    });
    let pid = life.unwrap().pid();
    handle.add_exit_action(pid, Box::new(other)).unwrap();
    assert_eq!(said.recv().unwrap(), "0 begins");
    (pid, target, said)
}

fn send(handle: &Handle, pid: Pid, message: Message) -> Result<(), ganger_proc_api::SendError> {
    handle.address(pid).unwrap().send(message)
}

// pins: S13, P12
#[test]
fn a_restart_runs_the_actions_of_the_incarnation_and_ends_its_monitors() {
    let scheduler = start(2);
    let (pid, target, said) = begin(&scheduler, true);
    send(&scheduler, pid, Message::of(7_u64)).unwrap();
    let expected = ["own 0: released", "own 0: failed: on purpose", "1 begins"];
    for line in expected {
        assert_eq!(said.recv().unwrap(), line);
    }
    scheduler.terminate(target).unwrap();
    assert_eq!(said.recv().unwrap(), "1: end of 1");
    scheduler.terminate(pid).unwrap();
    let mut rest: Vec<_> = said.iter().collect();
    rest.sort();
    let cause = ExitCause::Terminated;
    let expected =
        ["other", "own 1"].map(|it| [format!("{it}: released"), format!("{it}: {cause}")]);
    assert_eq!(rest, expected.concat());
}

// pins: P11, P12
#[test]
fn an_upgrade_is_no_restart() {
    let scheduler = start(2);
    let (pid, target, said) = begin(&scheduler, false);
    send(&scheduler, pid, Message::of(7_u64)).unwrap();
    assert_eq!(said.recv().unwrap(), "0 begins");
    scheduler.terminate(target).unwrap();
    for _ in 0..2 {
        assert_eq!(said.recv().unwrap(), "0: end of 0");
    }
    scheduler.terminate(pid).unwrap();
    let rest = said.iter().filter(|it| it.ends_with("released"));
    assert_eq!(rest.count(), 3);
}

// pins: P13, S13
#[test]
fn after_a_restart_the_type_stays_until_the_next_one_has_begun() {
    let scheduler = start(2);
    let (pid, _, said) = begin(&scheduler, true);
    let wrong = || {
        send(&scheduler, pid, Message::of("a text"))
            .unwrap_err()
            .kind
    };
    let SendErrorKind::WrongType(before) = wrong() else {
        panic!("it takes numbers")
    };
    assert!(!before.is_restarting());
    send(&scheduler, pid, Message::of(7_u64)).unwrap();
    while said.recv().unwrap() != "1 begins" {}
    // The process states no type, and nothing has marked its begin.
    let SendErrorKind::WrongType(after) = wrong() else {
        panic!("it takes numbers still")
    };
    assert!(after.is_restarting() && after.expected() == "u64");
    let error = scheduler.address(pid).unwrap().typed::<bool>().unwrap_err();
    assert!(error.is_restarting && error.to_string().ends_with("it restarts at the moment"));
    scheduler.address(pid).unwrap().typed::<u64>().unwrap();
}
