//! Questions asked again, and done once.

use super::{Ground as _, Harness, PATIENCE};
use ganger_again::{Numbers, Once, Retry, RetryExt as _, Seen};
use ganger_proc_api::{Actor, Context, Pid, Reply, StepOutput, StepResult};
use ganger_sched::{Address, Call, Handle};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The messages of an account.
#[derive(Serialize, Deserialize)]
pub enum Pay {
    /// Adds an amount, and answers with the sum.
    Add(Once<u64>, Reply<u64>),
    /// Answers how many amounts were added.
    Added(Reply<u64>),
    /// Answers how often the account was asked to add.
    Asked(Reply<u64>),
}

/// Adds each amount once, and answers every third question late.
#[derive(Default)]
struct Account {
    sum: u64,
    added: u64,
    asked: u64,
    seen: Seen<u64>,
    late: Vec<(Reply<u64>, u64)>,
}

impl Actor for Account {
    type Message = Pay;

    fn receive(&mut self, _: &Context, message: Pay, _: &mut StepOutput) -> StepResult {
        match message {
            Pay::Add(amount, reply) => {
                self.asked += 1;
                for (reply, sum) in self.late.drain(..) {
                    reply.complete(sum);
                }
                if let Some((amount, reply)) = self.seen.fresh(amount, reply) {
                    self.sum += amount;
                    self.added += 1;
                    match self.added % 3 {
                        0 => self.late.push((reply, self.sum)),
                        _ => reply.complete(self.sum),
                    }
                }
            }
            Pay::Added(reply) => reply.complete(self.added),
            Pay::Asked(reply) => reply.complete(self.asked),
        }
        Ok(())
    }
}

/// Starts an account.
///
/// # Panics
/// When the scheduler refuses.
pub fn account(scheduler: &Handle) -> Pid {
    let account = scheduler.spawn(Account::default());
    account.expect("the process starts").pid()
}

/// Asks until the account answers, with this limit for an attempt.
pub fn pay(from: &Handle, to: &Address<Pay>, amount: &Once<u64>, each: Duration) -> Call<u64> {
    let (to, amount) = (to.clone(), amount.clone());
    let pauses = (Duration::from_millis(1), Duration::from_millis(100));
    let retry = Retry::times(u32::MAX).within(PATIENCE).each(each);
    from.at_least_once(retry.pauses(pauses.0, pauses.1), move || {
        let amount = amount.clone();
        to.call(move |reply| Pay::Add(amount, reply))
    })
}

/// Asks over a bad carrier, too. A late answer is there at the next attempt.
pub fn a_question_asked_twice_is_done_once<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    harness.disturb();
    let (near, far) = (harness.near(), harness.far());
    let account = near.address(harness.far_pid(account(&far)));
    let account = account.expect("it has an address").typed::<Pay>();
    let account = account.expect("it takes this type");
    let mut numbers = Numbers::new();
    let each = Duration::from_millis(300);
    let mut sums = Vec::new();
    for round in 1..=30 {
        let amount = numbers.once(10);
        let ask = || pay(&near, &account, &amount, each).begin();
        // Two at a time: the second joins the first, or gets its answer.
        for answer in [ask(), ask()] {
            assert_eq!(
                ground.answer(answer, PATIENCE).expect("it answers"),
                10 * round
            );
        }
        sums.push((amount, 10 * round));
    }
    for (amount, sum) in sums {
        let again = ground.ask(pay(&near, &account, &amount, each));
        assert_eq!(again.expect("it is remembered"), sum);
    }
    let added = ground.ask(account.call(Pay::Added));
    assert_eq!(added.expect("it answers"), 30);
    let asked = ground.ask(account.call(Pay::Asked));
    assert!(asked.expect("it answers") >= 90);
}
