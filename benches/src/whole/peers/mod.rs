//! The peers, each in a folder of its own, nearly all with the same files, in `tasks` Ganger's
//! async functions, and in `rayon` a pool without processes:
//!
//! ```text
//! mod       the runtime, with its workers
//! alone     processes that send no messages: spawn, yield, block, race
//! tree      skynet
//! pair      ping-pong
//! ring      tokens
//! fan       in and out
//! crowd     processes that wait: memory, wake-up, lateness
//! ask       commands
//! depend    processes that are told of ends, or restarted; groups; pools
//! timers    processes that set timers, and sleep
//! typed     pairs, rings and fans with an enum of 40 bytes as the message
//! ```

mod actix;
mod ganger;
mod kameo;
mod ractor;
mod rayon;
mod tasks;
mod tokio;
mod xtra;

pub use ganger::Ganger;

use self::actix::Actix;
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
        Peer::Ganger if job.id.needs_timers() => {
            measure(&Ganger::with_timers(job.workers, gate)?, gate, job)
        }
        Peer::Ganger => measure(&Ganger::new(job.workers, gate)?, gate, job),
        Peer::Tokio if job.id.needs_timers() => {
            measure(&Tokio::with_timers(job.workers, gate)?, gate, job)
        }
        Peer::Tokio => measure(&Tokio::new(job.workers, gate)?, gate, job),
        Peer::Actix => measure(&Actix::new(gate), gate, job),
        Peer::Kameo => measure(&Kameo::new(job.workers, gate)?, gate, job),
        Peer::Ractor if job.id.needs_timers() => {
            measure(&Ractor::with_timers(job.workers, gate)?, gate, job)
        }
        Peer::Ractor => measure(&Ractor::new(job.workers, gate)?, gate, job),
        Peer::Rayon => measure(&Rayon::new(job.workers, gate)?, gate, job),
        Peer::Xtra => measure(&Xtra::new(job.workers, gate)?, gate, job),
        other => {
            let why = format!("{other} has no processes, or is not run by this program");
            Err(Error::Missing(why))
        }
    }
}
