//! A run of a workload between two programs and a broker, which the first starts.

mod bare;
mod broker;

use broker::Broker;
use ganger::BoxError;
use ganger_bench_cluster::{Carrier, Place, execute, run};
use ganger_bench_options::catalog::Peer;
use ganger_cluster_nats::Nats;
use std::process::ExitCode;

#[derive(Clone, Copy)]
struct OverNats<'a> {
    url: &'a str,
}

impl Carrier for OverNats<'_> {
    type Engine = Nats;

    fn engine(self, _: &Place) -> Nats {
        Nats::new(self.url)
    }

    fn seed(self, _: &Nats) -> Result<String, BoxError> {
        Ok(self.url.to_owned())
    }
}

fn main() -> ExitCode {
    execute(|job| {
        let place = Place::of_second();
        let seed = place.as_ref().and_then(|it| it.seed.clone());
        // Ends with the first program.
        let broker = seed.is_none().then(Broker::start).transpose()?;
        let url = seed.or(broker.as_ref().map(|it| it.url.clone()));
        let url = url.ok_or("there is no broker")?;
        match job.peer {
            Peer::Nats => bare::run(job, &url),
            _ => run(job, OverNats { url: &url }),
        }
    })
}
