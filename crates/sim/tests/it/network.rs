//! Processes that send beyond their scheduler, over a link that refuses envelopes, delays them, or
//! loses its peer.

use ganger_proc_api::{
    Command, CommandId, Completer, Context, Envelope, EnvelopeReceiver, Event, Events, Message,
    NodeName, Pid, Process, SendErrorKind, StepOutput, StepResult, receiver_fn,
};
use ganger_sim::{Faults, Rt, Sim};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

const PAUSE: CommandId = CommandId::new(256);
const MESSAGES: u64 = 20;

/// Sends numbers to a distant process, each again until it is accepted, and ends with the last.
struct Caller {
    next: u64,
    unsent: Option<Envelope>,
    account: Arc<Mutex<Account>>,
}

#[derive(Default)]
struct Account {
    refused: u64,
    /// The numbers of each caller, in the order of their arrival.
    arrived: HashMap<Pid, Vec<u64>>,
    answered: u64,
}

fn number(message: &Message) -> Option<u64> {
    message.payloads.first()?.as_u64()
}

impl Process for Caller {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        let messages = |event: &Event| matches!(event, Event::Message(_));
        account.answered += events.filter(messages).count() as u64;
        let target: Pid = "{there@far|7}".parse()?;
        let envelope = self.unsent.take().unwrap_or_else(|| {
            self.next += 1;
            Envelope::new(ctx.pid(), target, "number", self.next)
        });
        drop(account);
        let sent = ctx.send_envelope(envelope);
        account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = sent {
            let envelope = error.into_envelope();
            assert_eq!(
                number(&envelope.message),
                Some(self.next),
                "it comes back as it was"
            );
            assert_eq!(envelope.target, target);
            account.refused += 1;
            self.unsent = Some(envelope);
        } else if self.next == MESSAGES {
            out.done(());
            return Ok(());
        }
        out.yield_command(Command::new(PAUSE, ()), 0);
        Ok(())
    }
}

/// Runs some callers. Returns the fates of their messages, and how many came back late.
fn calls(rt: &Rt<'_>, callers: usize) -> (Account, u64) {
    let clock = rt.clock();
    let pause = move |_: Command, completer: Completer| {
        clock.after(Duration::from_millis(1), move || completer.complete(()));
        Ok(())
    };
    rt.register(PAUSE, "pause", pause).unwrap();
    let account = Arc::new(Mutex::new(Account::default()));
    let (theirs, back) = (Arc::clone(&account), Arc::downgrade(rt.router()));
    let far = receiver_fn(move |envelope: Envelope| {
        let source = envelope.message.source.unwrap();
        let number = number(&envelope.message).unwrap();
        let mut account = theirs.lock().unwrap();
        account.arrived.entry(source).or_default().push(number);
        drop(account);
        if let Some(router) = Weak::upgrade(&back) {
            // An ended caller needs no answer.
            let answer = Message::new("answer", number);
            _ = EnvelopeReceiver::send(&*router, answer.to(source));
        }
        Ok(())
    });
    let peer = NodeName::new("there").unwrap();
    rt.router().add_peer(peer, Arc::new(far)).unwrap();
    let handles: Vec<_> = (0..callers)
        .map(|_| {
            let caller = Caller {
                next: 0,
                unsent: None,
                account: Arc::clone(&account),
            };
            rt.submit(caller, "main", ()).unwrap()
        })
        .collect();
    for handle in handles {
        assert!(rt.wait(handle).is_done());
    }
    rt.settle();
    let returned = rt.returned();
    for error in &returned {
        assert_eq!(error.kind, SendErrorKind::NodeNotFound);
    }
    let account = std::mem::take(&mut *account.lock().unwrap());
    (account, returned.len() as u64)
}

// pins: R2, R3, R4
#[test]
fn what_is_sent_far_away_arrives_in_order_or_comes_back() {
    let faults = Faults {
        envelope_is_refused: 100,
        envelope_is_late: 300,
        place_disappears: 20,
        ..Faults::some()
    };
    let sums = Mutex::new((0, 0, 0));
    for workers in 1..=3 {
        let sim = Sim::new(0).workers(workers).faults(faults);
        sim.check_seeds(60, |rt| {
            let (account, returned) = calls(rt, 3);
            let mut arrived = 0;
            for numbers in account.arrived.values() {
                assert!(
                    numbers.is_sorted_by(|a, b| a < b),
                    "out of order: {numbers:?}"
                );
                arrived += numbers.len() as u64;
            }
            assert_eq!(arrived + returned, 3 * MESSAGES, "something is lost");
            let mut sums = sums.lock().unwrap();
            *sums = (
                sums.0 + account.refused,
                sums.1 + returned,
                sums.2 + account.answered,
            );
        });
    }
    let (refused, returned, answered) = sums.into_inner().unwrap();
    assert!(refused > 100, "{refused} were refused");
    assert!(returned > 10, "{returned} came late and found nobody");
    assert!(answered > 1_000, "{answered} were answered");
}

#[test]
fn where_nothing_goes_wrong_all_arrives() {
    Sim::new(0).check_seeds(50, |rt| {
        let (account, returned) = calls(rt, 2);
        assert_eq!((account.refused, returned), (0, 0));
        let all: Vec<_> = (1..=MESSAGES).collect();
        assert_eq!(account.arrived.len(), 2);
        assert!(account.arrived.values().all(|numbers| *numbers == all));
    });
}
