//! A shop on three programs, which are killed, restarted and paused under load; then the account.
//!
//! `cargo run -p ganger --release --features cluster --example shop`

mod shop;

use ganger::BoxError;
use ganger::cluster::Registrar;
use ganger::direct::Direct;
use shop::Carrier;
use std::env;
use std::path::Path;

struct ByTcp;

impl Carrier for ByTcp {
    type Engine = Direct;
    type Store = Registrar;

    fn desk(&self, secret: &str, folder: &Path) -> Result<(Direct, Registrar), BoxError> {
        let engine = Direct::listen("127.0.0.1:0").cookie(secret);
        Ok((engine, Registrar::file(folder.join("names"))))
    }

    fn address(&self, desk: &Direct) -> String {
        desk.local_addr()
            .map_or_else(String::new, |it| it.to_string())
    }

    fn node(&self, desk: &str, secret: &str) -> Result<(Direct, Registrar), BoxError> {
        let engine = Direct::listen("127.0.0.1:0").seeds([desk]).cookie(secret);
        Ok((engine, Registrar::at("desk")))
    }
}

pub(crate) fn main() -> Result<(), BoxError> {
    let args: Vec<_> = env::args().skip(1).collect();
    match args.join(" ").as_str() {
        "" | "--engine direct" => shop::main(&ByTcp),
        // Its client brings an async runtime and many crates, so it is in a workspace of its own.
        "--engine nats" => Err(
            "over NATS: cargo run --manifest-path engines/Cargo.toml --release \
                                --example shop"
                .into(),
        ),
        other => Err(format!(
            "{other:?}: the engines are \"--engine direct\" and \"--engine nats\""
        )
        .into()),
    }
}
