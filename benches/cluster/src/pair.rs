//! The second program: how it is started, found and ended.

// Makes the keys of `cargo xtask cluster-keys`.
#[path = "../../../xtask/src/cluster_keys/issue.rs"]
mod issue;

use crate::far;
use ganger::cluster::{Cluster, Engine, Registrar, Store};
use ganger::net::Net;
use ganger::{BoxError, NodeName, Pid, Scheduler};
use ganger_bench_options::job::Job;
use std::env;
use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The limit of acts that should end at once.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Makes the engines of nodes.
pub trait Carrier: Copy {
    /// Its engines.
    type Engine: Engine + Clone + 'static;

    /// Creates the engine of a node.
    fn engine(self, place: &Place) -> Self::Engine;

    /// Returns where other nodes find the engine, once it runs.
    ///
    /// # Errors
    /// The engine does not run.
    fn seed(self, engine: &Self::Engine) -> Result<String, BoxError>;

    /// Returns whether the carrier has TLS here.
    fn has_tls(self) -> bool {
        true
    }

    /// Returns the store of the engine. Without a store, the second node has a registrar where
    /// names are taken.
    ///
    /// # Errors
    /// The engine lacks its store.
    fn store(self, _engine: &Self::Engine) -> Result<Option<Arc<dyn Store>>, BoxError> {
        Ok(None)
    }
}

/// A node of a run.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its name.
    pub node: String,
    /// Where it finds the first node.
    pub seed: Option<String>,
    /// The secret of the cluster.
    pub secret: String,
    /// The folder of the run.
    pub folder: PathBuf,
    /// The equipment of the nodes.
    pub how: How,
}

/// The equipment of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum How {
    /// The common equipment alone.
    #[default]
    Plain,
    /// TLS, with a folder of keys for each node.
    OverTls,
    /// A driver for sockets in each scheduler.
    OwnSockets,
    /// A registrar at the second node, and its file.
    Registrar,
}

impl How {
    const ALL: [Self; 4] = [
        Self::Plain,
        Self::OverTls,
        Self::OwnSockets,
        Self::Registrar,
    ];
}

impl Place {
    /// Returns the node of this program; `None` for the first program.
    pub fn of_second() -> Option<Self> {
        let told = |name| env::var(name).unwrap_or_default();
        let mut all = How::ALL.into_iter();
        let how = all.find(|how| format!("{how:?}") == told("HOW"));
        Some(Self {
            node: env::var("NODE").ok()?,
            seed: Some(env::var("SEED").ok()?),
            secret: told("SECRET"),
            folder: told("FOLDER").into(),
            how: how.unwrap_or_default(),
        })
    }
}

/// Starts this program again, as a node with this name, which finds the first node at `seed`. The
/// second program has the same arguments, and ends with its standard input.
///
/// # Errors
/// The program can't be started.
pub fn second(node: &str, seed: &str, first: Option<&Place>) -> Result<Second, BoxError> {
    let mut command = Command::new(env::current_exe()?);
    command.args(env::args_os().skip(1)).stdin(Stdio::piped());
    command.env("NODE", node).env("SEED", seed);
    if let Some(first) = first {
        command
            .env("SECRET", &first.secret)
            .env("FOLDER", &first.folder);
        command.env("HOW", format!("{:?}", first.how));
    }
    Ok(Second(command.spawn()?))
}

/// A second program, until this is dropped.
#[derive(Debug)]
pub struct Second(pub(crate) Child);

impl Second {
    /// Has the system stop the program, until it [goes on](Self::go_on).
    pub(crate) fn stop(&self) -> Result<(), BoxError> {
        self.signal("-STOP")
    }

    pub(crate) fn go_on(&self) -> Result<(), BoxError> {
        self.signal("-CONT")
    }

    fn signal(&self, signal: &str) -> Result<(), BoxError> {
        let id = self.0.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status()?;
        sent.success()
            .then_some(())
            .ok_or("no signal was sent".into())
    }

    /// Ends the program at once.
    pub(crate) fn kill(&mut self) {
        // The program may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Second {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The first node, and the programs of the other nodes.
pub(crate) struct Nodes {
    pub(crate) scheduler: Scheduler,
    pub(crate) cluster: Cluster,
    pub(crate) others: Vec<Second>,
    _folder: TempDir,
}

const OTHERS: [&str; 2] = ["beta", "gamma"];

impl Nodes {
    /// Starts the first node and `others` more, and waits until all are connected.
    pub(crate) fn start<C: Carrier>(
        job: &Job,
        carrier: C,
        how: How,
        others: usize,
    ) -> Result<Self, BoxError> {
        let folder = tempfile::tempdir()?;
        if how == How::OverTls {
            let names = ["alpha", OTHERS[0], OTHERS[1]];
            let issued = issue::issue(folder.path(), &names, [2020, 2100]);
            issued.map_err(|error| error.to_string())?;
        }
        let place = Place {
            node: "alpha".to_owned(),
            seed: None,
            secret: format!("{:x}", RandomState::new().hash_one("a secret")),
            folder: folder.path().to_owned(),
            how,
        };
        let (scheduler, cluster, engine) = join(job, carrier, &place)?;
        let seed = carrier.seed(&engine)?;
        let others = OTHERS[..others].iter();
        let others = others.map(|node| second(node, &seed, Some(&place)));
        let nodes = Self {
            scheduler,
            cluster,
            others: others.collect::<Result<_, _>>()?,
            _folder: folder,
        };
        let begin = Instant::now();
        while nodes.cluster.nodes().len() < nodes.others.len() {
            if begin.elapsed() > PATIENCE {
                return Err("the other nodes do not come".into());
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(nodes)
    }

    /// Finds the boss of the second node: the process that starts receivers and members there.
    pub(crate) fn boss(&self) -> Result<Pid, BoxError> {
        self.boss_of(OTHERS[0])
    }

    /// Finds the bosses of all other nodes.
    pub(crate) fn bosses(&self) -> Result<Vec<Pid>, BoxError> {
        let nodes = OTHERS[..self.others.len()].iter();
        nodes.map(|node| self.boss_of(node)).collect()
    }

    fn boss_of(&self, node: &str) -> Result<Pid, BoxError> {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            let boss = self.cluster.whereis(NodeName::new(node)?, far::BOSS);
            if let Some(boss) = boss.wait_timeout(PATIENCE)? {
                return Ok(boss);
            }
        }
        Err(format!("{node} has no boss").into())
    }

    /// Returns the program of the second node.
    pub(crate) fn second(&mut self) -> &mut Second {
        &mut self.others[0]
    }
}

fn join<C: Carrier>(
    job: &Job,
    carrier: C,
    place: &Place,
) -> Result<(Scheduler, Cluster, C::Engine), BoxError> {
    let mut builder = Scheduler::builder().workers(job.workers).node(&place.node);
    if place.how == How::OwnSockets {
        builder = builder.driver(Net::new()?);
    }
    let scheduler = builder.start()?;
    let engine = carrier.engine(place);
    let mut builder = Cluster::builder();
    if place.how == How::Registrar {
        builder = match (carrier.store(&engine)?, &place.seed) {
            (Some(store), _) => builder.store(store),
            (None, None) => builder.store(Registrar::at(OTHERS[0])),
            (None, Some(_)) => builder.store(Registrar::file(place.folder.join("registrar"))),
        };
    }
    let cluster = builder
        .cookie(&place.secret)
        .engine(engine.clone())
        .types(|types| {
            types.add::<Vec<Pid>>("pids").add::<Vec<u64>>("numbers");
        })
        .join(&scheduler)?;
    Ok((scheduler, cluster, engine))
}

/// Runs the processes of another node until the standard input ends.
pub(crate) fn serve<C: Carrier>(job: &Job, carrier: C, place: &Place) -> Result<(), BoxError> {
    let (scheduler, cluster, _engine) = join(job, carrier, place)?;
    let boss = far::boss(scheduler.handle(), cluster.clone());
    let _boss = scheduler.named(far::BOSS).spawn(boss)?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
