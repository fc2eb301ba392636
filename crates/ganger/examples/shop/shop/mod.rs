//! The shop, over any engine.
//!
//! Each cart is a process with a strong name, at whichever of three nodes has taken the name. The
//! *desk* is the program that a person starts: it has the store of the names, the ledger, the
//! customers, and the other programs as its children.
//!
//! A customer asks at least once, and numbers its questions. A cart remembers its answers, writes
//! each new one into the ledger first, and reads the ledger when it starts. So nothing is done
//! twice, whichever program is killed in between. The ledger refuses tokens smaller than the
//! greatest, and notes when each cart has last looked at its token.

mod account;
mod cart;
mod customer;
mod desk;
mod ledger;

use ganger::BoxError;
use ganger::cluster::{Cluster, Engine, StoreSource, Types};
use ganger::prelude::*;
use std::env;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The carts, by their numbers.
const CARTS: u32 = 12;
/// The names of the nodes with carts.
const NODES: [&str; 3] = ["alpha", "beta", "gamma"];
/// After half of this time without the store a node gives its carts up, and after all of it others
/// may have them.
const LEASE: Duration = Duration::from_secs(6);

/// The engines and the stores of the programs.
pub(crate) trait Carrier {
    type Engine: Engine + Clone + 'static;
    type Store: Into<StoreSource>;

    /// Creates the engine of the desk, and the store of the names; the folder is for its files.
    fn desk(&self, secret: &str, folder: &Path) -> Result<(Self::Engine, Self::Store), BoxError>;

    /// Returns the address at which the nodes find the desk, or its broker.
    fn address(&self, desk: &Self::Engine) -> String;

    /// Creates the engine of a node, and the store of the names.
    fn node(&self, desk: &str, secret: &str) -> Result<(Self::Engine, Self::Store), BoxError>;
}

/// Returns the name of the strong name of a cart.
fn name(cart: u32) -> String {
    format!("cart-{cart}")
}

/// Returns the time in nanoseconds, alike in all programs of the machine.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX))
}

fn types(types: &mut Types) {
    types
        .add::<cart::Cart>("shop.cart.v1")
        .add::<ledger::Ledger>("shop.ledger.v1")
        .add::<ledger::Opened>("shop.opened.v1");
}

pub(crate) fn main(carrier: &impl Carrier) -> Result<(), BoxError> {
    match (env::var("NODE"), env::var("DESK"), env::var("SECRET")) {
        (Ok(node), Ok(desk), Ok(secret)) => {
            let (engine, store) = carrier.node(&desk, &secret)?;
            serve(&node, &secret, engine, store)
        }
        _ => desk::open(carrier),
    }
}

/// Serves as a node with carts, until its input ends.
fn serve(
    node: &str,
    secret: &str,
    engine: impl Engine + 'static,
    store: impl Into<StoreSource>,
) -> Result<(), BoxError> {
    let scheduler = Scheduler::builder().workers(1).node(node).start()?;
    let cluster = Cluster::builder()
        .cluster("shop")
        .cookie(secret)
        .engine(engine)
        .store(store)
        .lease(LEASE)
        .types(types)
        .join(&scheduler)?;
    for cart in 0..CARTS {
        let names = cluster.strong_names()?;
        let cluster = cluster.clone();
        scheduler.spawn(async move |cx: Cx| cart::keep(cx, cluster, names, cart).await)?;
    }
    std::io::stdin().read_to_end(&mut Vec::new())?;
    scheduler.stop(Duration::from_secs(5))?;
    Ok(())
}
