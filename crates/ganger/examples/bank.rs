//! A bank: each account is a process, and so is each transfer. A refused or late transfer is rolled
//! back. `cargo run -p ganger --example bank`

use ganger::prelude::*;
use std::collections::HashMap;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_millis(50);

pub(crate) enum Account {
    /// Changes the balance, for the transfer with this number.
    Change(u64, i64, Reply<()>),
    /// Takes the transfer's change back, if it was made.
    Undo(u64),
    /// Answers nothing for now.
    Freeze,
    Thaw,
    Balance(Reply<i64>),
}

#[derive(Default)]
pub(crate) struct Ledger {
    balance: i64,
    changes: HashMap<u64, i64>,
    is_frozen: bool,
    kept: Vec<Account>,
}

impl Ledger {
    fn apply(&mut self, message: Account) {
        match message {
            Account::Thaw => {
                self.is_frozen = false;
                let kept = std::mem::take(&mut self.kept);
                kept.into_iter().for_each(|it| self.apply(it));
            }
            kept if self.is_frozen => self.kept.push(kept),
            Account::Freeze => self.is_frozen = true,
            Account::Balance(reply) => reply.complete(self.balance),
            Account::Undo(number) => self.balance -= self.changes.remove(&number).unwrap_or(0),
            // Nothing waits for it any more.
            Account::Change(_, _, reply) if reply.is_cancelled() => {}
            Account::Change(_, by, reply) if self.balance + by < 0 => reply.fail("too poor"),
            Account::Change(number, by, reply) => {
                self.balance += by;
                self.changes.insert(number, by);
                reply.complete(());
            }
        }
    }
}

impl Actor for Ledger {
    type Message = Account;

    fn receive(&mut self, _: &Context, message: Account, _: &mut StepOutput) -> StepResult {
        self.apply(message);
        Ok(())
    }
}

/// Moves the amount from the first account to the second, or leaves both as they were.
pub(crate) async fn transfer(
    cx: Cx,
    number: u64,
    accounts: [Address<Account>; 2],
    amount: i64,
) -> Result<(), BoxError> {
    for (account, by) in accounts.iter().zip([-amount, amount]) {
        let change = account.call(move |reply| Account::Change(number, by, reply));
        if let Err(error) = cx.ask_within(change, PATIENCE).await {
            // An undo comes after its change, even after a late change.
            for account in &accounts {
                account.send(Account::Undo(number))?;
            }
            return Err(error.into());
        }
    }
    Ok(())
}

pub(crate) fn main() -> Result<(), BoxError> {
    let scheduler = Scheduler::start_default()?;
    let [ann, bob, cyd] = [(); 3].map(|()| scheduler.spawn(Ledger::default()));
    let (ann, bob, cyd) = (ann?, bob?, cyd?);
    ann.call(|reply| Account::Change(0, 100, reply)).wait()?;
    cyd.send(Account::Freeze)?;
    for (number, to, amount) in [(1, &bob, 60), (2, &bob, 60), (3, &cyd, 30)] {
        let accounts = [&ann, to].map(|it| it.address().clone());
        let transfer =
            scheduler.spawn(async move |cx| transfer(cx, number, accounts, amount).await)?;
        println!("transfer {number}: {}", transfer.wait());
    }
    cyd.send(Account::Thaw)?;
    for (name, account) in [("Ann", ann), ("Bob", bob), ("Cyd", cyd)] {
        println!("{name} has {}", account.call(Account::Balance).wait()?);
    }
    Ok(())
}
