//! Values with panicking destructors, in every place where the scheduler drops a value.

use crate::support::*;
use ganger_proc_api::{
    BoxError, Command, CommandId, Completer, Context, Event, ExitReason, Handler, Message, Payload,
    Payloads, UpgradeRequest,
};
use ganger_sched::{ProcessState, Scheduler};
use std::sync::{Arc, Mutex};

const DO: CommandId = CommandId::new(256);

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("on purpose: destructor");
    }
}

fn bomb() -> Payload {
    Payload::any(Bomb)
}

/// Checks that the only worker still works, and the number of contained panics.
#[track_caller]
fn works(scheduler: &Scheduler, panics: u64) {
    let quick = process(|_, _, out| {
        out.done(7);
        Ok(())
    });
    let quick = scheduler.submit(quick, "main", ()).unwrap();
    assert_eq!(exit_number(quick), 7);
    until("the panics are counted", || {
        scheduler.stats().total.panics == panics
    });
}

// pins: P8, P2
#[test]
fn of_a_result_that_nobody_wants() {
    quiet_panics();
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let bomber = process(|_, _, out| {
        out.done(bomb());
        Ok(())
    });
    drop(scheduler.submit(bomber, "main", ()).unwrap());
    let calls: Vec<_> = (0..5).map(|_| Calls::new()).collect();
    let handles: Vec<_> = calls
        .iter()
        .map(|calls| {
            let process = counted(calls, |_, _, out| {
                out.done(1);
                Ok(())
            });
            scheduler.submit(process, "main", ()).unwrap()
        })
        .collect();
    scheduler.start().unwrap();
    for handle in handles {
        assert_eq!(exit_number(handle), 1);
    }
    assert!(calls.iter().all(|calls| calls.closes() == 1));
    works(&scheduler, 1);
}

// pins: P8, P9
#[test]
fn of_a_result_that_a_termination_replaces() {
    quiet_panics();
    let scheduler = start(1);
    let handle = scheduler.handle();
    let bomber = process(move |ctx, _, out| {
        handle.terminate(ctx.pid())?;
        out.done(bomb());
        Ok(())
    });
    let bomber = scheduler.submit(bomber, "main", ()).unwrap();
    assert!(matches!(exit(bomber), ExitReason::Terminated));
    works(&scheduler, 1);
}

// pins: P8, P4
#[test]
fn of_each_message_in_a_mailbox() {
    quiet_panics();
    let scheduler = start(1);
    let idler = process(|_, _, _| Ok(()));
    let idler = scheduler.submit(idler, "main", ()).unwrap();
    for _ in 0..3 {
        let bombs: Payloads = [bomb(), bomb()].into_iter().collect();
        idler.send(Message::new("m", bombs)).unwrap();
    }
    scheduler.terminate(idler.pid()).unwrap();
    assert!(matches!(exit(idler), ExitReason::Terminated));
    works(&scheduler, 3);
}

// pins: P7, P8
#[test]
fn of_stale_completions() {
    quiet_panics();
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&kept);
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    scheduler
        .register(DO, "do", move |_: Command, completer: Completer| {
            keep.lock().unwrap().push(completer);
            Err("gave up".into())
        })
        .unwrap();
    scheduler.start().unwrap();
    let mut first = true;
    let asker = process(move |_, events, out| {
        if std::mem::take(&mut first) {
            out.yield_command(Command::new(DO, ()), 1);
        }
        events.for_each(drop);
        Ok(())
    });
    let asker = scheduler.submit(asker, "main", ()).unwrap();
    until_state(&scheduler, asker.pid(), ProcessState::Idle);
    // For a live process, and for an ended process.
    let completer = kept.lock().unwrap().pop().unwrap();
    completer.complete(bomb());
    works(&scheduler, 1);
    let other = process(|_, _, out| {
        out.yield_command(Command::new(DO, ()), 1);
        out.done(());
        Ok(())
    });
    exit(scheduler.submit(other, "main", ()).unwrap());
    let completer = kept.lock().unwrap().pop().unwrap();
    completer.complete(bomb());
    works(&scheduler, 2);
    scheduler.terminate(asker.pid()).unwrap();
    exit(asker);
}

// pins: P8, P11
#[test]
fn of_what_an_upgrade_did_not_need() {
    quiet_panics();
    let scheduler = start(1);
    scheduler
        .register_factory("panics", || panic!("on purpose: factory"))
        .unwrap();
    for (factory, panics) in [("missing", 1), ("panics", 3)] {
        let process = process(move |_, _, out| {
            out.upgrade(UpgradeRequest::factory(factory, "main", bomb()));
            Ok(())
        });
        let process = scheduler.submit(process, "main", ()).unwrap();
        assert!(matches!(exit(process), ExitReason::UpgradeFailed(_)));
        works(&scheduler, panics);
    }
}

// pins: P8
#[test]
fn of_what_a_panicking_step_had_written() {
    quiet_panics();
    let yielded = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&yielded);
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    scheduler
        .register(DO, "do", move |_: Command, completer: Completer| {
            seen.lock().unwrap().push(completer.pid().unwrap());
            completer.complete(());
            Ok(())
        })
        .unwrap();
    let first = process(|_, _, out| {
        out.yield_command(Command::new(DO, "of the first"), 1);
        out.yield_command(Command::new(DO, bomb()), 2);
        out.yield_command(Command::new(DO, bomb()), 3);
        out.done("of the first");
        panic!("on purpose: step")
    });
    let first = scheduler.submit(first, "main", ()).unwrap();
    let mut steps = 0;
    let second = process(move |_, _, out| {
        steps += 1;
        if steps == 3 {
            out.done("of the second");
        } else {
            out.step_again();
        }
        Ok(())
    });
    let second = scheduler.submit(second, "main", ()).unwrap();
    scheduler.start().unwrap();
    assert!(matches!(exit(first), ExitReason::Panicked(_)));
    let result = exit(second).into_result().unwrap();
    assert_eq!(result.as_str(), Some("of the second"));
    assert!(
        yielded.lock().unwrap().is_empty(),
        "a panicking step yields nothing"
    );
    works(&scheduler, 3);
}

// pins: P1, P8
#[test]
fn of_a_process_whose_init_failed_in_an_upgrade() {
    struct Next(Option<Bomb>);
    impl ganger_proc_api::Process for Next {
        fn init(
            &mut self,
            _: &ganger_proc_api::Context,
            _: &str,
            _: ganger_proc_api::Payloads,
        ) -> Result<(), BoxError> {
            Err("no".into())
        }

        fn step(
            &mut self,
            _: &Context,
            _: &mut ganger_proc_api::Events<'_>,
            out: &mut ganger_proc_api::StepOutput,
        ) -> Result<(), BoxError> {
            out.done(self.0.is_some());
            Ok(())
        }
    }
    quiet_panics();
    let scheduler = start(1);
    let old = scheduler.submit(waiter(), "main", ()).unwrap();
    let request = UpgradeRequest::process(Next(Some(Bomb)), "main", ());
    scheduler.upgrade(old.pid(), request).unwrap();
    assert!(matches!(exit(old), ExitReason::UpgradeFailed(_)));
    works(&scheduler, 1);
}

/// Keeps its completers, and something whose destructor panics.
#[derive(Default)]
struct Keeps {
    kept: Mutex<Vec<Completer>>,
    _bomb: Option<Bomb>,
}

impl Handler for Keeps {
    fn handle(&self, _: Command, completer: Completer) -> Result<(), BoxError> {
        self.kept.lock().unwrap().push(completer);
        Ok(())
    }
}

/// Has a handler keep its completers. The completers keep the scheduler, which must give the
/// handler up.
// pins: P6, P8
#[test]
fn of_handlers_when_the_workers_have_returned() {
    quiet_panics();
    for workers in [1, 3] {
        let scheduler = Scheduler::builder().workers(workers).build().unwrap();
        let keeper = Arc::new(Keeps::default());
        scheduler.register(DO, "do", Arc::clone(&keeper)).unwrap();
        // In the array, and beyond it.
        for id in [257, 258, 700, 701] {
            let _bomb = Some(Bomb);
            let keeps = Keeps {
                _bomb,
                ..Keeps::default()
            };
            scheduler.register(id, "bomb", keeps).unwrap();
        }
        scheduler.start().unwrap();
        let asker = process(|_, events, out| {
            if events.any(|it| matches!(it, Event::Cancel(_))) {
                out.done(7);
            } else {
                out.yield_command(Command::new(DO, ()), 1);
            }
            Ok(())
        });
        let asker = scheduler.submit(asker, "main", ()).unwrap();
        until_state(&scheduler, asker.pid(), ProcessState::Blocked);
        let handle = scheduler.handle();
        drop(scheduler);
        assert_eq!(exit_number(asker), 7);
        until("the handlers are gone", || Arc::strong_count(&keeper) == 1);
        until("the panics are counted", || {
            handle.stats().total.panics == 4
        });
        let names = handle.commands().list();
        let of_users = names.iter().filter(|(id, _)| id.get() >= 256);
        assert_eq!(of_users.count(), 5, "their names stay");
        assert_eq!(keeper.kept.lock().unwrap().len(), 1);
    }
}
