//! A customer: asks carts, a question after the other.

use super::account::Account;
use super::cart::Cart;
use super::{CARTS, name};
use ganger::again::{Numbers, Retry, RetryExt as _};
use ganger::cluster::StrongNames;
use ganger::prelude::*;
use ganger::{BoxError, Call};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Long enough for a node that is paused, a lease, and a session.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn shop(
    cx: Cx,
    names: StrongNames,
    (account, is_closing): (Arc<Mutex<Account>>, Arc<AtomicBool>),
    first: u32,
) -> Result<(), BoxError> {
    let count = |change: fn(&mut Account)| {
        change(&mut account.lock().unwrap_or_else(PoisonError::into_inner));
    };
    let scheduler = cx.scheduler().ok_or("no scheduler")?;
    let mut numbers = Numbers::new();
    let mut cart = first;
    // Ordering: Relaxed: a further question after the flag does no harm.
    while !is_closing.load(Ordering::Relaxed) {
        cart = (cart + 1) % CARTS;
        let add = numbers.once(1);
        let (names, account, scheduler) = (names.clone(), Arc::clone(&account), scheduler.clone());
        let mut attempts = 0;
        let handle = scheduler.clone();
        let question = move || {
            attempts += 1;
            if attempts > 1 {
                account
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .retried += 1;
            }
            let owner = names.whereis(&name(cart)).ok().flatten();
            let cart = owner.and_then(|it| handle.address(it.pid)?.typed::<Cart>().ok());
            match cart {
                Some(cart) => cart.call({
                    let add = add.clone();
                    |reply| Cart::Add(add, reply)
                }),
                None => Call::by(|_| Err("the cart is nowhere at the moment".into())),
            }
        };
        // Each end of a cart is followed by another start of the cart.
        let retry = Retry::times(1_000)
            .within(PATIENCE)
            .each(Duration::from_secs(2));
        let retry = retry.pauses(Duration::from_millis(20), Duration::from_millis(500));
        let call = scheduler.at_least_once(retry.also_after(|_| true), question);
        count(|it| it.asked += 1);
        match cx.ask(call).await {
            Ok(_) => count(|it| it.answered += 1),
            Err(_) => count(|it| it.lost += 1),
        }
        cx.sleep(Duration::from_millis(2)).await?;
    }
    Ok(())
}
