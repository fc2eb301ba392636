//! Addresses, recipients and PIDs inside of messages to another node.

use super::nodes;
use super::typed::counter;
use crate::support::{PATIENCE, exit, puppet};
use ganger_proc_api::{Actor, Context, Message, Pid, SendErrorKind, StepOutput, StepResult};
use ganger_sched::crossing::encode;
use ganger_sched::{Address, Recipient};
use serde::{Deserialize, Serialize};
use std::sync::mpsc::{Sender, channel};

#[derive(Serialize, Deserialize)]
pub(super) struct Greeting {
    from: Address<Step>,
    numbers: Recipient<u64>,
    pid: Pid,
}

#[derive(Serialize, Deserialize)]
pub(super) enum Step {
    Number(u64),
    Back(Greeting),
}

impl From<u64> for Step {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

/// Shows its messages to the test.
pub(super) struct Home(pub(super) Sender<Step>);

impl Actor for Home {
    type Message = Step;

    fn receive(&mut self, _: &Context, step: Step, _: &mut StepOutput) -> StepResult {
        Ok(self.0.send(step)?)
    }
}

/// Answers a greeting by all its references, and sends the greeting back.
struct Guest;

impl Actor for Guest {
    type Message = Greeting;

    fn receive(&mut self, _: &Context, greeting: Greeting, _: &mut StepOutput) -> StepResult {
        let Greeting { from, numbers, pid } = &greeting;
        assert!(from.pid() == *pid && numbers.pid() == *pid && !from.is_closed());
        from.send(Step::Number(1))?;
        numbers.send(2)?;
        from.clone().send(Step::Back(greeting))?;
        Ok(())
    }
}

// pins: B19
#[test]
fn addresses_recipients_and_pids_lead_home_from_another_node() {
    let (wire, [here, there]) = nodes();
    let guest = there.spawn(Guest).unwrap();
    let guest = here.address(there.absolute(guest.pid())).unwrap();
    let guest: Address<Greeting> = guest.typed().unwrap();
    let (tell, told) = channel();
    let home = here.spawn(Home(tell)).unwrap();
    let greet = || {
        let greeting = Greeting {
            from: home.address().clone(),
            numbers: home.address().recipient(),
            pid: home.pid(),
        };
        guest.send(greeting).unwrap();
    };
    greet();
    let next = || told.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(next(), Step::Number(1)));
    assert!(matches!(next(), Step::Number(2)));
    let Step::Back(Greeting { from, numbers, pid }) = next() else {
        panic!("another message");
    };
    assert!(from.is_same(home.address()) && numbers.untyped().is_same(home.address()));
    assert_eq!(pid, home.pid());
    numbers.send(3).unwrap();
    assert!(matches!(next(), Step::Number(3)));
    // When the process has ended, its address tells so.
    wire.hold();
    greet();
    here.terminate(home.pid()).unwrap();
    let pid = home.pid();
    exit(home);
    let (tell, told) = channel();
    let witness = here.spawn(Home(tell)).unwrap();
    let gone = here.absolute(pid);
    wire.release();
    let far = there.address(here.absolute(witness.pid())).unwrap();
    let far: Address<Step> = far.typed().unwrap();
    let from = there.address(gone).unwrap().typed().unwrap();
    let numbers = there
        .address(gone)
        .unwrap()
        .typed::<u64>()
        .unwrap()
        .recipient();
    let back = Greeting {
        from,
        numbers,
        pid: gone,
    };
    far.send(Step::Back(back)).unwrap();
    let Step::Back(back) = told.recv_timeout(PATIENCE).unwrap() else {
        panic!("another message");
    };
    assert!(back.from.is_closed() && back.numbers.is_closed() && back.pid == pid);
    let refused = back.from.send(Step::Number(4)).unwrap_err();
    assert_eq!(refused.kind, SendErrorKind::NotFound);
    assert!(matches!(refused.into_message(), Ok(Step::Number(4))));
}

// pins: B19
#[test]
fn an_address_that_comes_home_with_another_type_is_checked_at_each_send() {
    let (wire, [here, there]) = nodes();
    let (tell, told) = channel();
    let home = here.spawn(Home(tell)).unwrap();
    let (other, _address, _kept) = counter(&here, &there);
    let far = there.address(here.absolute(home.pid())).unwrap();
    let far: Address<Step> = far.typed().unwrap();
    let wrong = || there.address(here.absolute(other.pid())).unwrap();
    let back = Greeting {
        from: wrong().typed().unwrap(),
        numbers: wrong().typed::<u64>().unwrap().recipient(),
        pid: other.pid(),
    };
    far.send(Step::Back(back)).unwrap();
    wire.settle();
    let Step::Back(back) = told.recv_timeout(PATIENCE).unwrap() else {
        panic!("another message");
    };
    assert!(!back.from.is_closed());
    for kind in [
        back.from.send(Step::Number(4)).unwrap_err().kind,
        back.numbers.send(4).unwrap_err().kind,
    ] {
        assert!(matches!(kind, SendErrorKind::WrongType(_)), "{kind}");
    }
}

/// A type with a conversion into a message.
struct Plain;

impl From<Plain> for Message {
    fn from(_: Plain) -> Self {
        Self::new("plain", ())
    }
}

// pins: B19
#[test]
fn a_recipient_of_a_process_that_takes_all_messages_stays() {
    let (wire, [here, _there]) = nodes();
    let text = |it: &Recipient<Plain>| {
        let text = || serde_json::to_string(it).map_err(|error| error.to_string());
        encode(&here, wire.clone(), text).0
    };
    let all = puppet(&here);
    let error = text(&all.handle.address().recipient()).unwrap_err();
    assert!(error.contains("one type alone"), "{error}");
    // A recipient for a process of another node travels on to the next node.
    let far = here.address("{beta@main|7}".parse().unwrap()).unwrap();
    assert_eq!(text(&far.recipient()).unwrap(), "\"{beta@main|7}\"");
    let (tell, _told) = channel();
    let home = here.spawn(Home(tell)).unwrap();
    // Nor does an address, or a recipient, cross elsewhere.
    for error in [
        serde_json::to_string(home.address()).unwrap_err(),
        serde_json::to_string(&home.address().recipient::<u64>()).unwrap_err(),
        serde_json::from_str::<Address<Step>>("\"{main|7}\"").unwrap_err(),
    ] {
        assert!(error.to_string().contains("crossing::encode"), "{error}");
    }
}
