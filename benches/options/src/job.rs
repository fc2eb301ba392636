//! The arguments of a run, and its errors.
//!
//! Every program that runs workloads takes these arguments, in any language: `--workload W4 --peer
//! tokio --workers 2 --size full [--processes N] [--producers N] [--rounds N]`. Exits with 0 when
//! all is measured, with 3 if the peer has no such workload, and with another code if it failed;
//! then a line on standard error says why.

use super::catalog::{Id, Peer, Spec};
pub use super::size::Size;
use std::process::ExitCode;

/// A run of a workload by a peer.
#[derive(Clone, Debug, PartialEq, Eq, clap::Parser)]
pub struct Job {
    /// The workload
    #[arg(long = "workload", value_name = "W")]
    pub id: Id,

    /// The peer that runs it
    #[arg(long, value_name = "PEER")]
    pub peer: Peer,

    /// How many threads run processes
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = parse_workers)]
    pub workers: usize,

    /// The amount of work
    #[arg(long, value_enum, default_value_t = Size::Full)]
    pub size: Size,

    /// Processes at the same time, in workloads with a variable number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub processes: Option<u64>,

    /// Producers, in workloads that have producers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub producers: Option<u64>,

    /// Elements, in place of the size's own number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub rounds: Option<u64>,
}

/// Why a run measured nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The peer has no such workload; with the reason.
    #[error("{0}")]
    Missing(String),
    /// The run went wrong.
    #[error("{0}")]
    Failed(String),
}

/// The exit code of a run whose peer has no such workload.
pub const MISSING: u8 = 3;

impl Job {
    /// Creates a job with the defaults.
    pub fn new(id: Id, peer: Peer, workers: usize, size: Size) -> Self {
        Self {
            id,
            peer,
            workers,
            size,
            processes: None,
            producers: None,
            rounds: None,
        }
    }

    /// Returns the catalogue's entry of the workload.
    pub fn spec(&self) -> &'static Spec {
        self.id.spec()
    }

    /// Returns whether the job shows only that it works.
    pub fn is_quick(&self) -> bool {
        self.size == Size::Quick
    }

    /// Returns the number of elements: `rounds` if given, or `processes` if the workload's elements
    /// are processes, or the catalogue's number for the size.
    pub fn elements(&self) -> u64 {
        let spec = self.spec();
        let processes = self.processes.filter(|_| spec.of == "processes");
        self.rounds
            .or(processes)
            .unwrap_or_else(|| spec.elements(self.size))
    }

    /// Returns the arguments for another program.
    pub fn args(&self) -> Vec<String> {
        let (id, peer, workers, size) = (self.id, self.peer, self.workers, self.size.name());
        let mut args = format!("--workload {id} --peer {peer} --workers {workers} --size {size}");
        let counts = [
            ("processes", self.processes),
            ("producers", self.producers),
            ("rounds", self.rounds),
        ];
        for (name, count) in counts {
            args += &count.map_or_else(String::new, |count| format!(" --{name} {count}"));
        }
        args.split(' ').map(str::to_owned).collect()
    }
}

impl Error {
    /// Returns the exit code of the program.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Missing(_) => MISSING.into(),
            Self::Failed(_) => ExitCode::FAILURE,
        }
    }
}

fn parse_workers(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(workers @ 1..=1024) => Ok(workers),
        _ => Err("a number from 1 to 1024 is needed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn arguments_say_the_same_to_another_program() {
        let mut job = Job::new(Id::W6, Peer::Erlang, 4, Size::Quick);
        (job.processes, job.producers, job.rounds) = (Some(10_000_000), Some(8), Some(7));
        for job in [Job::new(Id::W8, Peer::Go, 2, Size::Full), job] {
            let args = ["program".to_owned()].into_iter().chain(job.args());
            assert_eq!(Job::parse_from(args), job);
        }
    }

    #[test]
    fn elements_are_those_of_the_size_unless_told() {
        let mut job = Job::new(Id::W8, Peer::Go, 2, Size::Full);
        assert_eq!(job.elements(), 1_000_000);
        job.processes = Some(1_000);
        assert_eq!(job.elements(), 1_000);
        job.id = Id::W6;
        assert_eq!(job.elements(), 1_000_000, "its elements are messages");
        job.rounds = Some(10);
        assert_eq!(job.elements(), 10);
    }
}
