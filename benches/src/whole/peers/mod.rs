//! The peers: crates of actors; `ganger`, with `tasks` for its async functions, and `tokio`; and
//! `rayon`, a pool without processes.

mod actix;
mod ganger;
mod kameo;
mod ractor;
mod rayon;
mod tasks;
mod tokio;
mod xtra;

use self::actix::Actix;
use self::ganger::Ganger;
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
    let (gate, workers) = (Gate::new(), job.workers);
    let has_timers = job.id.needs_timers();
    match job.peer {
        Peer::Ganger if job.id.is_async() => measure(&Tasks::new(workers, gate)?, job),
        Peer::Ganger => measure(&Ganger::new(workers, gate)?, job),
        Peer::Tokio => measure(&Tokio::new(workers, has_timers, gate)?, job),
        Peer::Actix => measure(&Actix::new(gate), job),
        Peer::Kameo => measure(&Kameo::new(workers, gate)?, job),
        Peer::Ractor => measure(&Ractor::new(workers, has_timers, gate)?, job),
        Peer::Rayon => measure(&Rayon::new(workers, gate)?, job),
        Peer::Xtra => measure(&Xtra::new(workers, gate)?, job),
        other => {
            let why = format!("{other} has no processes, or is not run by this program");
            Err(Error::Missing(why))
        }
    }
}
