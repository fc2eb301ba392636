//! The program of each peer.

use super::calm::Calm;
use super::child::{self, Ending};
use super::foreign::{self, Program, Unavailable};
use super::lines::Reason;
use super::loops::Loops;
use super::memory;
use super::plan::Contest;
use super::run::Runner;
use super::stop::Stop;
use crate::whole::catalog::{Kind, Peer};
use crate::whole::job::Job;
use ganger_bench_options::mode::Mode;
use std::collections::BTreeMap;
use std::env;
use std::env::consts::EXE_SUFFIX;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The programs of all peers of a plan, and how long a run of them may take.
#[derive(Debug)]
pub(super) struct Programs {
    workload: PathBuf,
    queues: PathBuf,
    cluster: PathBuf,
    foreign: BTreeMap<Peer, Result<Program, (Reason, String)>>,
    limit: Duration,
    stop: Stop,
    calm: Calm,
    loops: Option<Loops>,
}

impl Programs {
    /// Finds the programs, which are in this program's folder, and builds the programs in other
    /// languages.
    ///
    /// Blocks until they are built.
    ///
    /// # Errors
    /// If a program that is built together with this program is missing.
    pub(super) fn find(plan: &[Contest], limit: Duration, stop: &Stop) -> Result<Self, String> {
        let own =
            env::current_exe().map_err(|error| format!("can't find this program: {error}"))?;
        let mut folder = own.parent().unwrap_or(Path::new(""));
        if folder.ends_with("deps") {
            folder = folder.parent().unwrap_or(folder);
        }
        let beside = |name: &str| {
            let path = folder.join(format!("{name}{EXE_SUFFIX}"));
            match path.is_file() {
                true => Ok(path),
                false => Err(format!(
                    "{} is not there: `cargo xtask bench` builds it",
                    path.display()
                )),
            }
        };
        let mut peers: Vec<Peer> = plan
            .iter()
            .flat_map(|contest| contest.peers.clone())
            .collect();
        peers.sort_unstable();
        peers.dedup();
        let foreign = peers.into_iter().filter(|peer| peer.kind() != Kind::Rust);
        let foreign = foreign.map(|peer| (peer, foreign::find(peer).map_err(|e| reason(&e))));
        Ok(Self {
            workload: beside("ganger-workload")?,
            queues: beside("ganger-queues")?,
            cluster: beside("ganger-cluster-workload")?,
            foreign: foreign.collect(),
            limit,
            stop: stop.clone(),
            calm: Calm::default(),
            loops: None,
        })
    }

    /// Returns the versions of the installed languages.
    pub(super) fn versions(&self) -> Vec<(String, String)> {
        let found = self
            .foreign
            .iter()
            .filter_map(|(peer, found)| Some((peer, found.as_ref().ok()?)));
        found
            .map(|(peer, program)| (peer.to_string(), program.version().to_owned()))
            .collect()
    }

    /// Returns the foreign load before the runs, if the system says it.
    pub(super) fn calm(&self) -> Option<Calm> {
        Some(self.calm).filter(|calm| calm.runs > 0)
    }

    /// Returns the command of a job, and its time limit: a run of queues has all of their
    /// repetitions.
    fn command(&self, job: &Job) -> (Command, Duration) {
        let with_args = |program: &Path| {
            let mut command = Command::new(program);
            command.args(job.args());
            command
        };
        match self.foreign.get(&job.peer) {
            Some(Ok(program)) => (program.command(job), self.limit),
            _ if job.id.is_queue() => {
                let reps = u32::try_from(job.elements()).unwrap_or(u32::MAX);
                let limit = self.limit.saturating_mul(reps.saturating_add(1));
                (with_args(&self.queues), limit)
            }
            _ if job.id.is_of_cluster() => (with_args(&self.cluster), self.limit),
            _ => (with_args(&self.workload), self.limit),
        }
    }
}

impl Runner for Programs {
    fn prepare(&mut self, mode: Mode) -> Result<(), String> {
        match mode {
            Mode::AsIs => self.loops = None,
            Mode::Loops if self.loops.is_none() => self.loops = Some(Loops::start()?),
            Mode::Loops => {}
        }
        self.calm.wait(&self.stop);
        memory::warm();
        Ok(())
    }

    fn run(&mut self, job: &Job) -> Ending {
        let (command, limit) = self.command(job);
        child::run(command, limit, &self.stop)
    }

    fn refusal(&self, peer: Peer) -> Option<(Reason, String)> {
        self.foreign.get(&peer)?.as_ref().err().cloned()
    }

    fn memory(&self) -> Option<u64> {
        memory::available()
    }
}

fn reason(error: &Unavailable) -> (Reason, String) {
    let reason = match error {
        Unavailable::NotInstalled(_) => Reason::NotInstalled,
        _ => Reason::Crashed,
    };
    (reason, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::whole::catalog::Id;
    use crate::whole::job::Size;

    fn programs() -> Programs {
        let refusal = reason(&Unavailable::NotInstalled("go"));
        Programs {
            workload: "/programs/workload".into(),
            queues: "/programs/queues".into(),
            cluster: "/programs/cluster".into(),
            foreign: BTreeMap::from([(Peer::Go, Err(refusal))]),
            limit: Duration::from_secs(10),
            stop: Stop::default(),
            calm: Calm::default(),
            loops: None,
        }
    }

    #[test]
    fn queues_have_a_program_and_more_time() {
        let programs = programs();
        let (command, limit) = programs.command(&Job::new(Id::W1, Peer::Tokio, 2, Size::Quick));
        assert_eq!(command.get_program(), "/programs/workload");
        assert_eq!(limit, Duration::from_secs(10));
        let mut job = Job::new(Id::Mailbox, Peer::Ganger, 2, Size::Quick);
        job.rounds = Some(5);
        let (command, limit) = programs.command(&job);
        assert_eq!(command.get_program(), "/programs/queues");
        assert_eq!(limit, Duration::from_secs(60));
        let (command, _) = programs.command(&Job::new(Id::X1, Peer::Tcp, 2, Size::Quick));
        assert_eq!(command.get_program(), "/programs/cluster");
    }

    #[test]
    fn what_is_not_installed_is_refused_and_said_so() {
        let (reason, why) = programs().refusal(Peer::Go).unwrap();
        assert_eq!(reason, Reason::NotInstalled);
        assert!(why.contains("`go` is not on the PATH"), "{why}");
        assert_eq!(programs().refusal(Peer::Tokio), None);
        assert!(programs().versions().is_empty());
    }
}
