//! The legacy of a failed incarnation. Links and groups have a test with the models.

use crate::support::*;
use ganger_proc_api::{
    Actor, BoxError, Context, ExitCause, ExitNotice, Message, Pid, Process, SendErrorKind,
    StepOutput, StepResult, actor_fn, process_fn,
};
use ganger_sched::{ContextExt, ExitAction};
use ganger_supervise::{ChildSpec, Supervisor, Tree};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

fn waits() -> impl Process {
    process_fn(|_, _, _| Ok(()))
}

struct Noted(Log, u64);

impl ExitAction for Noted {
    fn release(&mut self, _: Pid) {
        self.0.note(format!("{} released", self.1));
    }

    fn tell(self: Box<Self>, _: Pid, cause: &ExitCause) {
        self.0.note(format!("{} {cause}", self.1));
    }
}

/// Makes registrations in its `init`, which may fail afterwards.
struct Registers {
    target: Pid,
    log: Log,
    broken: u64,
    tree: Arc<OnceLock<Tree>>,
}

impl Actor for Registers {
    /// The number of the incarnation that has sent the message; the largest number fails.
    type Message = u64;

    fn init(&mut self, ctx: &Context) -> Result<(), BoxError> {
        let number = ctx.incarnation();
        ctx.monitor(self.target, number)?;
        let later = Message::of(number).payloads;
        let _sent = ctx.send_after(secs(60), ctx.pid(), "", later);
        ctx.add_exit_action(Box::new(Noted(self.log.clone(), number)))?;
        if (1..=self.broken).contains(&number) {
            return Err("broken".into());
        }
        if let Some(tree) = self.tree.get() {
            let child = ChildSpec::new("other", waits).temporary();
            let started = tree.start_child_monitored(ctx, child, number);
            drop(started.begin());
        }
        Ok(())
    }

    fn receive(&mut self, ctx: &Context, number: u64, _: &mut StepOutput) -> StepResult {
        if number == u64::MAX {
            return Err("on purpose".into());
        }
        assert_eq!(number, ctx.incarnation());
        self.log.note("later");
        Ok(())
    }

    fn exited(&mut self, ctx: &Context, notice: ExitNotice, _: &mut StepOutput) -> StepResult {
        assert_eq!(notice.tag, ctx.incarnation());
        self.log.note("ended");
        Ok(())
    }
}

// pins: S13, P12, T3
#[test]
fn what_an_incarnation_has_registered_goes_with_it() {
    sim(70).check_seeds(40, |rt| {
        for broken in [0, 3] {
            let (log, target) = (Log::default(), rt.spawn(waits()).unwrap());
            let others = Supervisor::dynamic().start(rt).unwrap();
            let place = Arc::<OnceLock<Tree>>::default();
            assert!(place.set(Tree::clone(&others)).is_ok());
            let (pid, noted) = (target.pid(), log.clone());
            let child = ChildSpec::new("c", move || Registers {
                target: pid,
                log: noted.clone(),
                broken,
                tree: Arc::clone(&place),
            });
            let tree = Supervisor::one_for_one()
                .intensity(100, secs(5))
                .with(child.in_place())
                .start(rt)
                .unwrap();
            let address = tree.address::<u64>("c").unwrap();
            rt.run_for(ms(1));
            for _ in 0..5 {
                address.send(u64::MAX).unwrap();
                rt.run_for(ms(1));
            }
            let ends = (0..5 + broken).flat_map(|number| {
                let is_broken = (1..=broken).contains(&number);
                let cause = if is_broken { "broken" } else { "on purpose" };
                [
                    format!("{number} released"),
                    format!("{number} failed: {cause}"),
                ]
            });
            assert_eq!(log.take(), ends.collect::<Vec<_>>());
            rt.terminate(target.pid()).unwrap();
            for child in others.children() {
                rt.terminate(child.pid.unwrap()).unwrap();
            }
            rt.run_for(ms(1));
            assert_eq!(log.take(), ["ended"; 2]);
            rt.run_for(secs(120));
            assert_eq!(log.take(), ["later"]);
            for tree in [tree, others] {
                tree.cancel("enough").unwrap();
                end_of(rt, tree);
            }
        }
    });
}

/// Creates a process that takes numbers alone, unless it is a later child and `takes_all` holds.
fn of_some_kind(is_first: bool, takes_all: bool) -> Box<dyn Process> {
    use ganger_proc_api::ActorProcess;
    if is_first || !takes_all {
        Box::new(ActorProcess::new(actor_fn(|_, _: u64, _| {
            Err("on purpose".into())
        })))
    } else {
        Box::new(waits())
    }
}

// pins: P13, S13
#[test]
fn a_child_that_restarts_in_place_takes_its_type_meanwhile_and_says_that_it_restarts() {
    sim(72).check_seeds(60, |rt| {
        for takes_all in [false, true] {
            let starts = AtomicU32::new(0);
            let child = ChildSpec::new("c", move || {
                of_some_kind(starts.fetch_add(1, Ordering::Relaxed) == 0, takes_all)
            });
            let tree = Supervisor::one_for_one()
                .with(child.in_place().back_off(ms(200)))
                .start(rt)
                .unwrap();
            let address = tree.address::<u64>("c").unwrap();
            address.send(7).unwrap();
            rt.run_for(ms(100));
            assert_eq!(tree.children()[0].restarts, 1);
            tree.address::<u64>("c").unwrap().send(8).unwrap();
            let error = tree.address::<bool>("c").unwrap_err().to_string();
            assert!(error.contains("it restarts"), "{error}");
            let untyped = rt.address(address.pid()).unwrap();
            let refused = untyped.send(Message::of(true)).unwrap_err();
            let SendErrorKind::WrongType(types) = refused.kind else {
                panic!("{refused}");
            };
            assert!(types.is_restarting() && types.expected() == "u64");
            assert!(refused.to_string().contains("it restarts"), "{refused}");
            assert!(refused.into_message::<bool>().unwrap());
            if takes_all {
                rt.run_for(ms(200));
                untyped.send(Message::of(true)).unwrap();
                assert!(tree.address::<u64>("c").is_err());
            } else {
                // The kept number makes the next incarnation fail, and so on.
                rt.run_for(ms(150));
                let refused = untyped.send(Message::of(true)).unwrap_err().to_string();
                assert!(refused.contains("it restarts"), "{refused}");
                rt.run_for(secs(1));
                let refused = untyped.send(Message::of(true)).unwrap_err().to_string();
                assert!(!refused.contains("it restarts"), "{refused}");
                let error = tree.address::<bool>("c").unwrap_err().to_string();
                assert!(!error.contains("it restarts"), "{error}");
            }
            tree.cancel("enough").unwrap();
            end_of(rt, tree);
        }
    });
}

// pins: S13, P11
#[test]
fn incarnations_are_counted_by_restarts_in_place_alone() {
    sim(73).check_seeds(10, |rt| {
        let log = Log::default();
        for is_in_place in [true, false] {
            let notes = log.clone();
            let child = ChildSpec::new("c", move || {
                let notes = notes.clone();
                actor_fn(move |ctx: &Context, fails: bool, _| {
                    notes.note(ctx.incarnation().to_string());
                    if fails {
                        Err("on purpose".into())
                    } else {
                        Ok(())
                    }
                })
            });
            let child = if is_in_place { child.in_place() } else { child };
            let tree = Supervisor::one_for_one().with(child).start(rt).unwrap();
            for fails in [true, true, false] {
                tree.address::<bool>("c").unwrap().send(fails).unwrap();
                rt.run_for(ms(1));
            }
            let expected = if is_in_place {
                ["0", "1", "2"]
            } else {
                ["0"; 3]
            };
            assert_eq!(log.take(), expected);
            tree.cancel("enough").unwrap();
            end_of(rt, tree);
        }
    });
}
