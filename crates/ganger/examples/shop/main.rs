//! A shop on three programs, which are killed, restarted and paused under load; then the account.
//!
//! `cargo run -p ganger --release --features cluster --example shop`

mod shop;

use ganger::BoxError;
use ganger::direct::Direct;
use shop::Carrier;

struct ByTcp;

impl Carrier for ByTcp {
    type Engine = Direct;

    fn desk(&self, secret: &str) -> Direct {
        Direct::listen("127.0.0.1:0").cookie(secret)
    }

    fn address(&self, desk: &Direct) -> String {
        desk.local_addr()
            .map_or_else(String::new, |it| it.to_string())
    }

    fn node(&self, desk: &str, secret: &str) -> Direct {
        Direct::listen("127.0.0.1:0").seeds([desk]).cookie(secret)
    }
}

pub(crate) fn main() -> Result<(), BoxError> {
    shop::main(&ByTcp)
}
