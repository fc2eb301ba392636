//! A cart, and the process that starts it when its name is free.

use super::ledger::{Id, Ledger, Opened};
use super::{name, now};
use ganger::again::{Once, Seen};
use ganger::cluster::{Cluster, FencingToken, NameLost, StrongNames};
use ganger::prelude::*;
use ganger::{Address, BoxError, ExitCause, NodeName, Reply};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::time::Duration;

/// The messages of a cart.
#[derive(Serialize, Deserialize)]
pub(crate) enum Cart {
    /// Adds an amount; the answer is the sum.
    Add(Once<u64>, Reply<u64>),
    /// The cart is another's from now on.
    #[serde(skip)]
    Lost(NameLost),
}

impl From<NameLost> for Cart {
    fn from(lost: NameLost) -> Self {
        Self::Lost(lost)
    }
}

/// Starts the cart here, whenever its name is free.
pub(crate) async fn keep(
    cx: Cx,
    cluster: Cluster,
    names: StrongNames,
    number: u32,
) -> Result<(), BoxError> {
    let desk = NodeName::new("desk")?;
    loop {
        // Not all nodes at the same moment.
        cx.sleep(Duration::from_millis(100 + 7 * u64::from(number)))
            .await?;
        if !matches!(names.whereis(&name(number)), Ok(None)) {
            continue;
        }
        let Ok(Some(ledger)) = cx.ask(cluster.whereis(desk, "ledger")).await else {
            continue;
        };
        let (names, scheduler) = (names.clone(), cx.scheduler().ok_or("no scheduler")?);
        let ledger = scheduler
            .address(ledger)
            .ok_or("no ledger")?
            .typed::<Ledger>()?;
        let cart = async move |cx: Cx<Cart>| serve(cx, names, ledger, number).await;
        // A cart that can't go on ends, and its name is free.
        let end = cx.monitor(cx.spawn(cart)?.pid()).await?;
        if !matches!(end, ExitCause::Done) {
            println!("          {}: {end}", name(number));
        }
    }
}

async fn serve(
    cx: Cx<Cart>,
    names: StrongNames,
    ledger: Address<Ledger>,
    cart: u32,
) -> Result<(), BoxError> {
    let owner = cx.address().recipient();
    let Ok(token) = cx.ask(names.register(&name(cart), owner)).await else {
        return Ok(()); // Another node was faster.
    };
    let at = now();
    let open = ledger.call(move |reply| Ledger::Open {
        cart,
        token,
        at,
        reply,
    });
    let Opened { mut sum, done } = cx.ask(open).await?;
    let done: HashMap<Id, u64> = done.into_iter().collect();
    let mut seen = Seen::default();
    while let Some(message) = cx.recv().await {
        let (add, reply) = match message {
            Cart::Add(add, reply) => (add, reply),
            Cart::Lost(lost) => {
                println!("          {} is lost here", lost.name);
                break;
            }
        };
        let id = (add.sender(), add.number());
        if let Some(sum) = done.get(&id) {
            reply.complete(*sum);
            continue;
        }
        let Some((amount, reply)) = seen.fresh(add, reply) else {
            continue;
        };
        let Some(at) = holds(&names, cart, token) else {
            break;
        };
        sum += amount;
        let write = ledger.call(move |reply| Ledger::Write {
            cart,
            token,
            at,
            id,
            sum,
            reply,
        });
        if !cx.ask(write).await? {
            break; // The ledger knows a later owner.
        }
        reply.complete(sum);
    }
    Ok(())
}

/// Returns the time at which the cart has looked, if it is the owner then.
fn holds(names: &StrongNames, cart: u32, token: FencingToken) -> Option<u64> {
    let at = now();
    (names.token(&name(cart)) == Some(token)).then_some(at)
}
