//! Races that need other actors to move in the middle of a step, or of an `init`.

use ganger_proc_api::{
    BoxError, Context, Event, Events, Payloads, Pid, Process, StepOutput, StepResult,
};
use ganger_sim::{Faults, Rt, Sim};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const SEEDS: u64 = 300;

/// Returns the failure of the test, with moves of others within a move. Without them it does not
/// fail.
fn found(test: fn(&Rt<'_>)) -> String {
    let without = Faults {
        others_move: 0,
        ..Faults::some()
    };
    Sim::new(0).faults(without).check_seeds(SEEDS, test);
    let check = || Sim::check(SEEDS, test);
    let panic = catch_unwind(AssertUnwindSafe(check)).unwrap_err();
    *panic.downcast::<String>().unwrap()
}

/// Where a client and a server meet.
#[derive(Default)]
struct Desk {
    is_answered: AtomicBool,
    client_waits: AtomicBool,
}

/// Waits for a message, unless the answer is there already.
struct Client {
    desk: Arc<Desk>,
    server: Pid,
    has_answer: bool,
}

impl Process for Client {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        ctx.send(self.server, "ask", ctx.pid())?;
        // Too early: the answer may come until the client announces its wait.
        self.has_answer = self.desk.is_answered.load(Ordering::SeqCst);
        ctx.send(self.server, "thank", ())?;
        let desk = &self.desk;
        desk.client_waits.store(!self.has_answer, Ordering::SeqCst);
        Ok(())
    }

    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if self.has_answer || events.any(|event| matches!(event, Event::Message(_))) {
            out.done(());
        }
        Ok(())
    }
}

/// Answers, and wakes the client if it waits.
struct Server(Arc<Desk>);

impl Process for Server {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
        for event in events {
            let Event::Message(message) = event else {
                continue;
            };
            let client = message.payloads.first().and_then(|it| it.as_pid());
            if let Some(client) = client {
                self.0.is_answered.store(true, Ordering::SeqCst);
                if self.0.client_waits.load(Ordering::SeqCst) {
                    ctx.send(client, "answer", ())?;
                }
            }
        }
        Ok(())
    }
}

#[test]
fn an_answer_that_comes_while_init_goes_on_is_missed() {
    let report = found(|rt| {
        let desk = Arc::new(Desk::default());
        let server = rt.spawn(Server(Arc::clone(&desk))).unwrap().pid();
        let client = Client {
            desk,
            server,
            has_answer: false,
        };
        let client = rt.spawn(client).unwrap();
        rt.wait(client);
    });
    assert!(report.contains("has not ended, and nothing"), "{report}");
    let repeat = "The simplest run that fails like this";
    assert!(report.contains(repeat), "{report}");
    assert!(
        report.contains("others move after a `send` in an `init`:\n"),
        "{report}"
    );
    assert!(
        report.contains("(main, Server), 2 messages: ask, thank\n"),
        "{report}"
    );
}

/// Sells from the stock, an item for each message.
struct Clerk {
    stock: Arc<AtomicI64>,
    ledger: Pid,
}

impl Process for Clerk {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
        for event in events {
            // Another clerk may sell the same thing between the look and the sale.
            if matches!(event, Event::Message(_)) && self.stock.load(Ordering::SeqCst) > 0 {
                ctx.send(self.ledger, "sells", ())?;
                self.stock.fetch_sub(1, Ordering::SeqCst);
                ctx.send(self.ledger, "sold", ())?;
            }
        }
        Ok(())
    }
}

fn ignore(_: &Context, events: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
    events.for_each(drop);
    Ok(())
}

#[test]
fn what_two_steps_check_before_they_act_is_sold_twice() {
    let report = found(|rt| {
        let stock = Arc::new(AtomicI64::new(1));
        let ledger = rt.spawn(ignore).unwrap().pid();
        for _ in 0..2 {
            let stock = Arc::clone(&stock);
            let clerk = rt.spawn(Clerk { stock, ledger }).unwrap();
            rt.send(ganger_proc_api::Envelope::new(
                clerk.pid(),
                clerk.pid(),
                "buy",
                (),
            ))
            .unwrap();
        }
        rt.settle();
        assert_eq!(stock.load(Ordering::SeqCst), 0, "sold twice");
    });
    assert!(report.contains("sold twice"), "{report}");
    let within = "  others move after a `send`:\n  worker ";
    assert!(report.contains(within), "{report}");
}

/// Has a lock in its step, but in none of its calls.
struct Careful {
    all: Arc<Mutex<Vec<Pid>>>,
    steps: Arc<AtomicU64>,
}

impl Process for Careful {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
        if self.steps.fetch_add(1, Ordering::SeqCst) > 50 || events.by_ref().count() == 0 {
            return Ok(());
        }
        let all = self.all.lock().unwrap().clone();
        for pid in all {
            ctx.send(pid, "next", ())?;
        }
        Ok(())
    }
}

#[test]
fn a_lock_that_is_released_before_a_call_does_no_harm() {
    let faults = Faults {
        others_move: 500,
        ..Faults::some()
    };
    Sim::new(0).workers(3).faults(faults).check_seeds(50, |rt| {
        let (all, steps) = (Arc::default(), Arc::default());
        for _ in 0..5 {
            let (all, steps) = (Arc::clone(&all), Arc::clone(&steps));
            let pid = rt
                .spawn(Careful {
                    all: Arc::clone(&all),
                    steps,
                })
                .unwrap()
                .pid();
            all.lock().unwrap().push(pid);
        }
        let first = all.lock().unwrap()[0];
        rt.send(ganger_proc_api::Envelope::new(first, first, "next", ()))
            .unwrap();
        rt.settle();
        assert!(steps.load(Ordering::SeqCst) > 50);
    });
}
