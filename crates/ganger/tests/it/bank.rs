//! The bank: no transfer makes or loses money, in any order of events.

#[path = "../../examples/bank.rs"]
mod example;

#[test]
fn it_ends_by_itself() {
    example::main().unwrap();
}

// pins: C1
#[cfg(feature = "sim")]
#[test]
fn no_transfer_makes_or_loses_money() {
    use example::{Account, Ledger};
    use ganger::prelude::*;
    use ganger::sim::{Rt, Sim};

    const ACCOUNTS: usize = 3;
    const EACH: i64 = 100;

    fn balance(rt: &Rt<'_>, account: &Address<Account>) -> i64 {
        rt.answer(account.call(Account::Balance)).unwrap()
    }

    Sim::check(300, |rt| {
        let accounts = [(); ACCOUNTS].map(|()| rt.spawn(Ledger::default()).unwrap());
        let accounts = accounts.each_ref().map(|it| it.address().clone());
        for account in &accounts {
            let change = account.call(|reply| Account::Change(0, EACH, reply));
            rt.answer(change).unwrap();
        }
        let mut transfers = Vec::new();
        for number in 1..8 {
            let from = usize::try_from(number).unwrap() % ACCOUNTS;
            let pair = [0, 1].map(|it| accounts[(from + it) % ACCOUNTS].clone());
            let amount = if number == 7 { 1_000 } else { 25 };
            let transfer = async move |cx| example::transfer(cx, number, pair, amount).await;
            transfers.push(rt.spawn(transfer).unwrap());
            // Some are refused, some are late, and some are answered after the time is over.
            match number {
                2 => accounts[0].send(Account::Freeze).unwrap(),
                5 => accounts[0].send(Account::Thaw).unwrap(),
                _ => {}
            }
        }
        let done = transfers.into_iter().map(|it| rt.wait(it).is_done());
        let done = done.collect::<Vec<_>>();
        assert!(!done[6], "it moves more than there is");
        for account in &accounts {
            account.send(Account::Thaw).unwrap();
        }
        let balances = accounts.each_ref().map(|it| balance(rt, it));
        assert_eq!(
            balances.iter().sum::<i64>(),
            EACH * 3,
            "{balances:?} {done:?}"
        );
    });
}
