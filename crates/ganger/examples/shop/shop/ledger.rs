//! The ledger of the work done, and of its owners.

use super::account::Account;
use ganger::again::SenderId;
use ganger::cluster::FencingToken;
use ganger::{Actor, Context, Reply, StepOutput, StepResult};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A question: its sender, and its number.
pub(crate) type Id = (SenderId, u64);

/// The messages of the ledger.
#[derive(Serialize, Deserialize)]
pub(crate) enum Ledger {
    /// A cart has a new owner since this time.
    Open {
        cart: u32,
        token: FencingToken,
        at: u64,
        reply: Reply<Opened>,
    },
    /// A question is done, by an owner that has looked at its token at this time. The answer is
    /// false for an owner that has been replaced.
    Write {
        cart: u32,
        token: FencingToken,
        at: u64,
        id: Id,
        sum: u64,
        reply: Reply<bool>,
    },
}

/// The known facts of a cart.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Opened {
    pub(crate) sum: u64,
    pub(crate) done: Vec<(Id, u64)>,
}

#[derive(Default)]
struct Page {
    sum: u64,
    done: HashMap<Id, u64>,
    /// The owner, and the time since when it is.
    owner: Option<(FencingToken, u64)>,
}

/// The process.
pub(crate) struct Book {
    pages: HashMap<u32, Page>,
    account: Arc<Mutex<Account>>,
}

impl Book {
    pub(crate) fn new(account: Arc<Mutex<Account>>) -> Self {
        let pages = HashMap::new();
        Self { pages, account }
    }
}

impl Actor for Book {
    type Message = Ledger;

    fn receive(&mut self, _: &Context, message: Ledger, _: &mut StepOutput) -> StepResult {
        let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        match message {
            Ledger::Open {
                cart,
                token,
                at,
                reply,
            } => {
                let page = self.pages.entry(cart).or_default();
                if page.owner.is_none_or(|(owner, _)| owner < token) {
                    account.owners += 1;
                    page.owner = Some((token, at));
                }
                let done = page.done.iter().map(|(id, sum)| (*id, *sum));
                let (sum, done) = (page.sum, done.collect());
                reply.complete(Opened { sum, done });
            }
            Ledger::Write {
                cart,
                token,
                at,
                id,
                sum,
                reply,
            } => {
                let page = self.pages.entry(cart).or_default();
                let is_owner = page.owner.is_some_and(|(owner, _)| owner == token);
                if is_owner {
                    let again = page.done.insert(id, sum).is_some();
                    account.twice += u64::from(again);
                    account.done += 1;
                    page.sum = sum;
                } else {
                    account.fenced += 1;
                    // Both owners have seen themselves as the owner.
                    let since = page.owner.map_or(u64::MAX, |(_, since)| since);
                    account.two_owners += u64::from(at > since);
                }
                reply.complete(is_owner);
            }
        }
        Ok(())
    }
}
