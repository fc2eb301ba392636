//! A run of a workload between two programs. See `ganger_bench_cluster`.

use ganger::BoxError;
use ganger::direct::Direct;
use ganger_bench_cluster::{Carrier, How, Place, execute, run, tcp};
use ganger_bench_options::catalog::Peer;
use std::process::ExitCode;

#[derive(Clone, Copy)]
struct OverTcp;

impl Carrier for OverTcp {
    type Engine = Direct;

    fn engine(self, place: &Place) -> Direct {
        let direct = Direct::listen("127.0.0.1:0").seeds(place.seed.clone());
        match place.how {
            How::OverTls => direct.keys(place.folder.join(&place.node)),
            _ => direct.cookie(&place.secret),
        }
    }

    fn seed(self, engine: &Direct) -> Result<String, BoxError> {
        let address = engine.local_addr().ok_or("the engine does not listen")?;
        Ok(address.to_string())
    }
}

fn main() -> ExitCode {
    execute(|job| match job.peer {
        Peer::Tcp => tcp::run(job),
        _ => run(job, OverTcp),
    })
}
