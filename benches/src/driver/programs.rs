//! The program of each peer.
//!
//! Peers in other languages have their sources in `benches/foreign`, a folder for each language;
//! peers in Rust with many dependencies have a workspace there. Their programs, and all that their
//! builds leave, go to the folder `foreign` of the target directory. Environment variables that
//! would change the build or the run are removed.

use super::calm::Calm;
use super::child::{self, Ending};
use super::lines::Reason;
use super::loops::Loops;
use super::machine::locked;
use super::memory;
use super::plan::Contest;
use super::run::Runner;
use super::stop::Stop;
use crate::whole::catalog::{Kind, Peer};
use crate::whole::job::Job;
use ganger_bench_options::mode::Mode;
use std::collections::BTreeMap;
use std::env::{self, consts::EXE_SUFFIX};
use std::ffi::OsStr;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The programs of all peers of a plan, and how long a run of them may take.
pub(super) struct Programs {
    /// Where the programs in Rust are.
    folder: PathBuf,
    foreign: BTreeMap<Peer, Found>,
    limit: Duration,
    stop: Stop,
    calm: Calm,
    loops: Option<Loops>,
}

/// A program that runs the workloads of a peer in another language, or in another workspace.
struct Program {
    version: String,
    /// Returns the command that runs a job once, but for the job's arguments.
    command: Box<dyn Fn(&Job) -> Command>,
}

type Found = Result<Program, (Reason, String)>;

const WORKLOAD: &str = "ganger-workload";
const QUEUES: &str = "ganger-queues";
const CLUSTER: &str = "ganger-cluster-workload";

/// How many Erlang processes there may be at once, in most workloads: `+P` rounds it up to a power
/// of two, and the largest of them has 1,111,111.
const ERLANG_PROCESSES: u64 = 2_000_000;

/// The limit of `+P`.
const ERLANG_PROCESSES_AT_MOST: u64 = 134_217_727;

/// Variables that change the build or the run of a program in Go or in Erlang, or the folder into
/// which cargo builds.
const SETTINGS: &str = "GOARCH GODEBUG GOEXPERIMENT GOFLAGS GOGC GOMAXPROCS GOMEMLIMIT GOOS \
                        ERL_AFLAGS ERL_COMPILER_OPTIONS ERL_FLAGS ERL_LIBS ERL_ZFLAGS \
                        CARGO_BUILD_TARGET";

impl Programs {
    /// Finds the programs, which are in this program's folder, and builds the programs in other
    /// languages.
    ///
    /// Blocks until they are built: for seconds, or with a workspace of its own for minutes.
    ///
    /// # Errors
    /// If a program that is built together with this program is missing.
    pub(super) fn find(plan: &[Contest], limit: Duration, stop: &Stop) -> Result<Self, String> {
        let folder = folder();
        for name in [WORKLOAD, QUEUES, CLUSTER] {
            let path = program_in(&folder, name);
            if !path.is_file() {
                let path = path.display();
                return Err(format!(
                    "{path} is not there: `cargo xtask bench` builds it"
                ));
            }
        }
        let path = env::var_os("PATH").unwrap_or_default();
        let built = folder.parent().unwrap_or(&folder).join("foreign");
        let peers = plan.iter().flat_map(|contest| &contest.peers).copied();
        let foreign = peers.filter(|peer| peer.kind() != Kind::Rust);
        let found = foreign.map(|peer| (peer, find_on(&path, peer, &built)));
        Ok(Self {
            foreign: found.collect(),
            folder,
            limit,
            stop: stop.clone(),
            calm: Calm::default(),
            loops: None,
        })
    }

    /// Returns the versions of the installed languages.
    pub(super) fn versions(&self) -> Vec<(String, String)> {
        let found = self.foreign.iter();
        let found = found.filter_map(|(peer, found)| Some((peer, found.as_ref().ok()?)));
        found
            .map(|(peer, it)| (peer.to_string(), it.version.clone()))
            .collect()
    }

    /// Returns the foreign load before the runs, if the system says it.
    pub(super) fn calm(&self) -> Option<Calm> {
        Some(self.calm).filter(|calm| calm.runs > 0)
    }

    /// Returns the command of a job, and its time limit: a run of queues has all of their
    /// repetitions.
    fn command(&self, job: &Job) -> (Command, Duration) {
        if let Some(Ok(program)) = self.foreign.get(&job.peer) {
            let mut command = (program.command)(job);
            command.args(job.args());
            return (command, self.limit);
        }
        let reps = u32::try_from(job.elements()).unwrap_or(u32::MAX);
        let (name, times) = match job.id {
            id if id.is_queue() => (QUEUES, reps.saturating_add(1)),
            id if id.is_of_cluster() => (CLUSTER, 1),
            _ => (WORKLOAD, 1),
        };
        let mut command = Command::new(program_in(&self.folder, name));
        command.args(job.args());
        (command, self.limit.saturating_mul(times))
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

/// Returns the folder of this program, or with a test the folder above.
fn folder() -> PathBuf {
    let program = env::current_exe().unwrap_or_default();
    let folder = program.parent().unwrap_or(Path::new(""));
    let above = folder.parent().filter(|_| folder.ends_with("deps"));
    above.unwrap_or(folder).to_owned()
}

fn program_in(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}{EXE_SUFFIX}"))
}

/// Finds a peer's language on the PATH, and builds its program.
fn find_on(path: &OsStr, peer: Peer, built: &Path) -> Found {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign");
    let make = |folder: &str| {
        let folder = built.join(folder);
        let made = fs::create_dir_all(&folder);
        let failed = |error| format!("can't make {}: {error}", folder.display());
        let made = made.map_err(|error| (Reason::Crashed, failed(error)));
        made.map(|()| folder.clone())
    };
    match peer.kind() {
        Kind::Go => {
            let go = on_path(path, "go")?;
            build_go(&go, &sources.join("go"), &make("go")?)
        }
        Kind::Erlang => {
            let (erl, erlc) = (on_path(path, "erl")?, on_path(path, "erlc")?);
            build_erlang(&erl, &erlc, &sources.join("erlang"), &make("erlang")?)
        }
        Kind::Apart => {
            let cargo = on_path(path, "cargo")?;
            build_apart(&cargo, peer, &sources.join("remotes"), &make("remotes")?)
        }
        Kind::Rust => Err((Reason::Crashed, format!("{WORKLOAD} runs {peer}"))),
    }
}

fn build_go(go: &Path, sources: &Path, built: &Path) -> Found {
    let go = || {
        let mut command = clean(go);
        command.current_dir(sources);
        command.env("GOCACHE", built.join("cache"));
        // The program needs nothing from elsewhere: neither modules, nor another Go, nor C.
        command.env("GOPROXY", "off").env("GOTOOLCHAIN", "local");
        command.env("GOWORK", "off").env("CGO_ENABLED", "0");
        command
    };
    let version = output(go().args(["env", "GOVERSION"]))?;
    let program = program_in(built, WORKLOAD);
    // Git may refuse to look at another user's files.
    let mut build = go();
    build.args(["build", "-buildvcs=false", "-o"]).arg(&program);
    output(build.arg("."))?;
    Ok(Program {
        version: version.trim_start_matches("go").to_owned(),
        command: Box::new(move |_| clean(&program)),
    })
}

fn build_erlang(erl: &Path, erlc: &Path, sources: &Path, modules: &Path) -> Found {
    let listed = fs::read_dir(sources).map_err(|error| (Reason::Crashed, error.to_string()))?;
    let files = listed.filter_map(|entry| Some(entry.ok()?.path()));
    let files = files.filter(|file| file.extension().is_some_and(|it| it == "erl"));
    let mut compile = clean(erlc);
    output(compile.args(["-Werror", "-o"]).arg(modules).args(files))?;
    let release = "io:put_chars(erlang:system_info(otp_release)), halt().";
    let version = output(clean(erl).args(["-noshell", "-noinput", "-eval", release]))?;
    let (erl, modules) = (erl.to_owned(), modules.to_owned());
    Ok(Program {
        version: format!("OTP {version}"),
        command: Box::new(move |job| {
            let schedulers = format!("{0}:{0}", job.workers);
            let processes = job.processes.or(job.rounds).unwrap_or_default();
            let processes = processes.saturating_mul(2);
            let limit = processes.clamp(ERLANG_PROCESSES, ERLANG_PROCESSES_AT_MOST);
            let mut command = clean(&erl);
            command.args(["-noshell", "-noinput", "+S", &schedulers]);
            command
                .args(["+P", &limit.to_string(), "-pa"])
                .arg(&modules);
            if job.id.is_of_cluster() {
                // Nodes find each other at a port, without a daemon that stays.
                let listener = TcpListener::bind("127.0.0.1:0");
                let port = listener.and_then(|it| it.local_addr());
                let port = port.map_or(0, |it| it.port()).to_string();
                command.args(["-start_epmd", "false", "-erl_epmd_port", &port]);
            }
            command.args(["-run", "ganger_workload", "main", "-extra"]);
            // A crash is reported by its message; a dump would take gigabytes.
            command.env("ERL_CRASH_DUMP_SECONDS", "0");
            command
        }),
    })
}

fn build_apart(cargo: &Path, peer: Peer, sources: &Path, built: &Path) -> Found {
    let package = match peer {
        Peer::KameoRemote => "kameo",
        _ => "ractor",
    };
    let name = format!("ganger-remote-{package}");
    let mut build = clean(cargo);
    build.args(["build", "--release", "--locked", "-p", &name]);
    build.arg("--manifest-path").arg(sources.join("Cargo.toml"));
    eprintln!("Building {peer}: minutes the first time");
    output(build.arg("--target-dir").arg(built))?;
    let lock = fs::read_to_string(sources.join("Cargo.lock")).unwrap_or_default();
    let program = program_in(&built.join("release"), &name);
    Ok(Program {
        version: locked(&lock, package).unwrap_or("?").to_owned(),
        command: Box::new(move |_| Command::new(&program)),
    })
}

/// Returns the file a shell would run. Relative folders are skipped: elsewhere they would be other
/// folders.
fn on_path(path: &OsStr, program: &str) -> Result<PathBuf, (Reason, String)> {
    let is_program = |file: &PathBuf| fs::metadata(file).is_ok_and(|it| it.is_file());
    env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| program_in(&folder, program))
        .find(is_program)
        .ok_or_else(|| {
            let why = "is not on the PATH: install it to have this peer measured";
            (Reason::NotInstalled, format!("`{program}` {why}"))
        })
}

/// Runs it without the settings.
fn clean(program: &Path) -> Command {
    let mut command = Command::new(program);
    for setting in SETTINGS.split(' ') {
        command.env_remove(setting);
    }
    command
}

/// Returns the standard output of a successful command.
fn output(command: &mut Command) -> Result<String, (Reason, String)> {
    let ended = command.stdin(Stdio::null()).output();
    let failed = |why: &str| (Reason::Crashed, format!("{command:?} failed: {why}"));
    let ended = ended.map_err(|error| failed(&error.to_string()))?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    // Some programs print errors on standard output.
    let (out, error) = (said(&ended.stdout), said(&ended.stderr));
    match ended.status.success() {
        true => Ok(out),
        false => Err(failed(&format!("{}\n{out}\n{error}", ended.status))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::whole::catalog::Id;

    #[test]
    fn what_is_not_on_the_path_is_not_installed() {
        let nowhere = tempfile::tempdir().unwrap();
        let apart = (Peer::KameoRemote, "cargo");
        for (peer, program) in [(Peer::Go, "go"), (Peer::Erlang, "erl"), apart] {
            let found = find_on(nowhere.path().as_os_str(), peer, nowhere.path());
            let (reason, why) = found.err().unwrap();
            assert_eq!(reason, Reason::NotInstalled);
            assert!(
                why.contains(&format!("`{program}` is not on the PATH")),
                "{why}"
            );
        }
    }

    /// Compares the sources with the sizes of the catalogue: with other sizes a run is another
    /// workload.
    #[test]
    fn sources_have_the_workloads_of_the_catalog_with_their_sizes() {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign");
        let read = |file: &str| fs::read_to_string(sources.join(file)).unwrap();
        let texts = [
            (Peer::Go, read("go/measure.go")),
            (Peer::Erlang, read("erlang/measure.erl")),
        ];
        for spec in Id::ALL
            .iter()
            .filter(|id| !id.is_queue())
            .map(|id| id.spec())
        {
            let entry = format!("{{\"{}\", {}, {}, ", spec.id, spec.full, spec.quick);
            for (peer, text) in &texts {
                let entries = text.replace('_', "").matches(&entry).count();
                let runs = spec.peers.contains(peer);
                assert!(entries == 1 || entries == 0 && !runs, "{peer:?} {entry}");
            }
        }
    }
}
