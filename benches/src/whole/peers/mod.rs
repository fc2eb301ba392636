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
use super::job::{Error, Job};
use super::measure::measure;
use super::sample::Sample;

/// Sets the job's peer up and has it do the job.
///
/// # Errors
/// If the peer has no such workload, is no peer in Rust with processes, or the run goes wrong.
pub fn run(job: &Job) -> Result<Vec<Sample>, Error> {
    let (workers, has_timers) = (job.workers, job.id.needs_timers());
    let runtime = |has_timers| tokio::runtime(workers, has_timers);
    match job.peer {
        Peer::Ganger if job.id.is_async() => measure(&Tasks::new(workers)?, job),
        Peer::Ganger => measure(&Ganger::new(workers)?, job),
        Peer::Tokio => measure(&Tokio(runtime(has_timers)?), job),
        Peer::Actix => measure(&Actix::new(), job),
        Peer::Kameo => measure(&Kameo(runtime(false)?), job),
        Peer::Ractor => measure(&Ractor(runtime(has_timers)?), job),
        Peer::Rayon => measure(&Rayon::new(workers)?, job),
        Peer::Xtra => measure(&Xtra(runtime(false)?), job),
        other => {
            let why = format!("{other} has no processes, or is not run by this program");
            Err(Error::Missing(why))
        }
    }
}
