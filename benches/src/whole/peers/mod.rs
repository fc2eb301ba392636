//! The peers: crates of actors, whose workloads are in `actors`; `ganger`, with `tasks` for its
//! async functions, and `tokio`, each with workloads of its own; and `rayon`, a pool without
//! processes.

mod actix;
mod actors;
mod ganger;
mod kameo;
mod ractor;
mod rayon;
mod tasks;
mod tokio;
mod xtra;

pub use ganger::Ganger;

use self::actix::Actix;
use self::actors::Of;
use self::kameo::Kameo;
use self::ractor::Ractor;
use self::rayon::Rayon;
use self::tasks::Tasks;
use self::tokio::Tokio;
use self::xtra::Xtra;
use super::catalog::Peer;
use super::gate::Gate;
use super::job::{Error, Job};
use super::measure::measure;
use super::sample::Sample;

/// Sets the job's peer up and has it do the job.
///
/// # Errors
/// If the peer has no such workload, is no peer in Rust that has processes, or something goes
/// wrong.
pub fn run(job: &Job) -> Result<Vec<Sample>, Error> {
    let gate = Gate::new();
    match job.peer {
        Peer::Ganger if job.id.is_async() => measure(&Tasks::new(job.workers, gate)?, gate, job),
        Peer::Ganger => measure(&Ganger::new(job.workers, gate)?, gate, job),
        Peer::Tokio if job.id.needs_timers() => {
            measure(&Tokio::with_timers(job.workers, gate)?, gate, job)
        }
        Peer::Tokio => measure(&Tokio::new(job.workers, gate)?, gate, job),
        Peer::Actix => measure(&Of(Actix::new(gate)), gate, job),
        Peer::Kameo => measure(&Of(Kameo::new(job.workers, gate)?), gate, job),
        Peer::Ractor => {
            let has_timers = job.id.needs_timers();
            measure(&Of(Ractor::new(job.workers, has_timers, gate)?), gate, job)
        }
        Peer::Rayon => measure(&Rayon::new(job.workers, gate)?, gate, job),
        Peer::Xtra => measure(&Of(Xtra::new(job.workers, gate)?), gate, job),
        other => {
            let why = format!("{other} has no processes, or is not run by this program");
            Err(Error::Missing(why))
        }
    }
}
