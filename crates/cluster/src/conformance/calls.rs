//! Questions, and references inside of messages.

use super::{Ground, Harness, PATIENCE};
use ganger_proc_api::{
    Actor, CommandError, Completion, Context, ExitCause, Pid, Reply, StepOutput, StepResult,
};
use ganger_sched::{Address, ProcessHandle, Recipient};
use serde::{Deserialize, Serialize};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// The messages of a counter, at each node.
#[derive(Serialize, Deserialize)]
pub enum Count {
    /// Adds a number.
    Add(u64),
    /// Asks for the sum.
    Get(Reply<u64>),
    /// Keeps the reply.
    Keep(Reply<u64>),
    /// Drops the reply.
    Drop(Reply<u64>),
    /// Ends with an error, without an answer.
    Fail(Reply<u64>),
    /// Has the sum sent to all of these.
    Tell {
        /// An address.
        address: Address<Count>,
        /// A recipient.
        recipient: Recipient<u64>,
        /// The same process as the address.
        pid: Pid,
    },
    /// Answers all kept replies.
    Answer,
}

impl From<u64> for Count {
    fn from(number: u64) -> Self {
        Self::Add(number)
    }
}

/// Counts, and tells a test of what it keeps.
struct Counter {
    sum: u64,
    kept: Vec<Reply<u64>>,
    /// Told of a kept reply, and then that it is unwanted.
    keeps: Sender<bool>,
}

impl Actor for Counter {
    type Message = Count;

    fn receive(&mut self, ctx: &Context, message: Count, _: &mut StepOutput) -> StepResult {
        match message {
            Count::Add(number) => self.sum += number,
            Count::Get(reply) => reply.complete(self.sum),
            Count::Keep(reply) => {
                let keeps = self.keeps.clone();
                let end = reply.on_end(move || _ = keeps.send(false));
                // The watch stays for as long as the process.
                std::mem::forget(end);
                let _gone = self.keeps.send(true);
                self.kept.push(reply);
            }
            Count::Answer => {
                for reply in self.kept.drain(..) {
                    reply.complete(self.sum);
                }
            }
            Count::Drop(reply) => drop(reply),
            Count::Fail(_reply) => return Err("on purpose".into()),
            Count::Tell {
                address,
                recipient,
                pid,
            } => {
                assert_eq!(address.pid(), pid);
                address.send(Count::Add(self.sum))?;
                recipient.send(self.sum)?;
                ctx.send(pid, "", ganger_proc_api::Payload::any(Count::Add(self.sum)))?;
            }
        }
        Ok(())
    }
}

/// Starts a counter, and returns what it tells of kept replies, too.
pub(super) fn counter(
    scheduler: &ganger_sched::Handle,
) -> (ProcessHandle<Count>, std::sync::mpsc::Receiver<bool>) {
    let (keeps, kept) = channel();
    let counter = scheduler.spawn(Counter {
        sum: 0,
        kept: Vec::new(),
        keeps,
    });
    (counter.expect("the process starts"), kept)
}

/// Returns the address of a far counter, as the near side has it.
pub(super) fn address<H: Harness>(harness: &H, counter: &ProcessHandle<Count>) -> Address<Count> {
    let address = harness.near().address(harness.far_pid(counter.pid()));
    let typed = address.expect("it has an address").typed();
    typed.expect("it takes this type")
}

fn ask(
    ground: impl Ground,
    address: &Address<Count>,
    question: impl FnOnce(Reply<u64>) -> Count + Send + 'static,
) -> Result<u64, CommandError> {
    ground.ask(address.call(question))
}

/// A process that asks, and shows the answer to a test.
struct Asker {
    asks: Address<Count>,
    shows: Sender<Result<u64, CommandError>>,
}

impl Actor for Asker {
    type Message = ();

    fn started(&mut self, _: &Context, out: &mut StepOutput) -> StepResult {
        out.ask(self.asks.call(Count::Get), 7);
        Ok(())
    }

    fn completed(&mut self, _: &Context, it: Completion, out: &mut StepOutput) -> StepResult {
        drop(self.shows.send(it.take::<u64>()));
        out.done(());
        Ok(())
    }

    fn receive(&mut self, _: &Context, (): (), _: &mut StepOutput) -> StepResult {
        Ok(())
    }
}

/// Asks by a thread and by a step, in the order of the messages before.
pub fn a_question_has_its_answer<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let (far, _) = counter(&harness.far());
    let address = address(&harness, &far);
    address.send(Count::Add(2)).expect("it is sent");
    for number in 0..100_u64 {
        address.send(Count::Add(1)).expect("it is sent");
        assert_eq!(
            ask(ground, &address, Count::Get).expect("it answers"),
            3 + number
        );
    }
    let (shows, shown) = channel();
    let asks = address;
    let asker = harness.near().spawn(Asker { asks, shows });
    drop(asker.expect("the process starts"));
    let answer = ground.next(&shown, PATIENCE).expect("it is told");
    assert_eq!(answer.expect("it answers"), 102);
}

/// Asks where the reply is dropped, the process fails, and the process is gone.
pub fn a_question_without_an_answer_has_the_cause<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let (far, _) = counter(&harness.far());
    let address = address(&harness, &far);
    let dropped = ask(ground, &address, Count::Drop);
    assert!(matches!(dropped, Err(CommandError::Dropped)), "{dropped:?}");
    let failed = ask(ground, &address, Count::Fail);
    let Err(CommandError::Ended(ExitCause::Failed(text))) = failed else {
        panic!("{failed:?}");
    };
    assert_eq!(&*text, "on purpose");
    drop(ground.end(far));
    let gone = ask(ground, &address, Count::Get);
    match gone {
        Err(CommandError::Failed(_)) if harness.is_one() => {}
        Err(CommandError::Ended(_)) => {}
        other => panic!("{other:?}"),
    }
}

/// Gives a question up, which the holder of its reply sees. The question has a single answer.
pub fn a_question_taken_back_is_seen<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let (far, kept) = counter(&harness.far());
    let address = address(&harness, &far);
    let late = ground.ask_for(address.call(Count::Keep), Duration::from_millis(200));
    assert!(matches!(late, Err(CommandError::Timeout)), "{late:?}");
    assert!(ground.next(&kept, PATIENCE).expect("it has come"));
    assert!(!ground.next(&kept, PATIENCE).expect("it is unwanted"));
    assert_eq!(ask(ground, &address, Count::Get).expect("it answers"), 0);
}

/// Answers a question late: the answer to a question that was given up is the answer to no other.
pub fn a_late_answer_is_nobodys<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let (far, kept) = counter(&harness.far());
    let address = address(&harness, &far);
    for sum in 1..20 {
        address.send(Count::Add(1)).expect("it is sent");
        let late = ground.ask_for(address.call(Count::Keep), Duration::ZERO);
        assert!(matches!(late, Err(CommandError::Timeout)), "{late:?}");
        let open = address.call(Count::Keep).begin();
        // A question that is given up at once may be answered before it is seen as unwanted.
        address.send(Count::Answer).expect("it is sent");
        let answer = ground.answer(open, PATIENCE).expect("it answers");
        assert_eq!(answer, sum);
        assert_eq!(ask(ground, &address, Count::Get).expect("it answers"), sum);
    }
    drop(kept);
}

/// Loses the connection of an open question: both sides are told.
pub fn a_question_over_a_lost_connection_says_so<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    if harness.is_one() {
        return;
    }
    let (far, kept) = counter(&harness.far());
    let address = address(&harness, &far);
    let answer = address.call(Count::Keep).begin();
    assert!(ground.next(&kept, PATIENCE).expect("it has come"));
    if !harness.cut() {
        return;
    }
    let lost = ground.answer(answer, PATIENCE);
    let is_told = matches!(lost, Err(CommandError::Ended(ExitCause::NoConnection)));
    assert!(is_told, "{lost:?}");
    assert!(!ground.next(&kept, PATIENCE).expect("it is unwanted"));
}

/// Sends addresses, recipients and PIDs inside of a message, which lead home.
pub fn references_cross_inside_of_messages<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let (far, _) = counter(&harness.far());
    let (near, _) = counter(&harness.near());
    let there = address(&harness, &far);
    there.send(Count::Add(5)).expect("it is sent");
    let tell = Count::Tell {
        address: near.address().clone(),
        recipient: near.address().recipient(),
        pid: near.pid(),
    };
    there.send(tell).expect("it is sent");
    ground.eventually("all three have come", || {
        // A simulation whose test asks all the time has a slow clock.
        ground.rest(Duration::from_millis(1));
        ask(ground, near.address(), Count::Get).expect("it answers") == 15
    });
}
