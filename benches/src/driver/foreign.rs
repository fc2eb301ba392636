//! Finds the tools for workloads in other languages, and builds their programs. Peers in Rust that
//! have a workspace of their own are built too.
//!
//! The sources are in `benches/foreign`, a folder for each language or workspace. Programs and
//! caches go to the folder `foreign` of the target directory; nothing else is written. Environment
//! variables that would change the build or the run are removed.

use super::machine::locked;
use crate::whole::catalog::{Kind, Peer};
use crate::whole::job::Job;
use std::env::{self, consts::EXE_SUFFIX};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program that runs the workloads of a peer in another language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    version: String,
    start: Start,
}

/// The reason for a missing program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(super) enum Unavailable {
    /// A required program is not on the PATH.
    #[error("`{0}` is not on the PATH: install it to have this peer measured")]
    NotInstalled(&'static str),
    /// The program is installed, but its build or its output failed.
    #[error("`{command}` failed: {why}")]
    Failed {
        /// What was run.
        command: String,
        /// What it said.
        why: String,
    },
    /// The peer is written in Rust: `ganger-workload` runs it.
    #[error("{0} needs no program of its own: ganger-workload runs it")]
    NotForeign(Peer),
}

/// How to start it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Start {
    /// A program by itself.
    Go { program: PathBuf },
    /// The same.
    Apart { program: PathBuf },
    /// Modules in a folder, for `erl`.
    Erlang { erl: PathBuf, modules: PathBuf },
}

/// How many Erlang processes there may be at once, in most workloads: `+P` rounds it up to a power
/// of two, and the largest of them has 1,111,111.
const ERLANG_PROCESSES: u64 = 2_000_000;

/// The limit of `+P`.
const ERLANG_PROCESSES_AT_MOST: u64 = 134_217_727;

/// Variables that change the build or the run of a Go program.
const GO_SETTINGS: &[&str] = &[
    "GOARCH",
    "GODEBUG",
    "GOEXPERIMENT",
    "GOFLAGS",
    "GOGC",
    "GOMAXPROCS",
    "GOMEMLIMIT",
    "GOOS",
];

/// Variables that change Erlang's compiler or runs.
const ERLANG_SETTINGS: &[&str] = &[
    "ERL_AFLAGS",
    "ERL_COMPILER_OPTIONS",
    "ERL_FLAGS",
    "ERL_LIBS",
    "ERL_ZFLAGS",
];

/// Variables by which cargo builds into another folder.
const CARGO_SETTINGS: &[&str] = &["CARGO_BUILD_TARGET"];

/// Finds a peer's language on the PATH, and builds its program.
///
/// Blocks until it is built: for some seconds the first time, less when a build is there already. A
/// peer with a workspace of its own takes minutes the first time, and needs the registry.
///
/// # Errors
/// When the language is not installed, its build fails, or the peer is written in Rust.
pub(super) fn find(peer: Peer) -> Result<Program, Unavailable> {
    let path = env::var_os("PATH").unwrap_or_default();
    find_on(&path, peer, &target_folder())
}

impl Program {
    /// The version of its language.
    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// Returns the command that runs a job once.
    pub(super) fn command(&self, job: &Job) -> Command {
        let mut command = match &self.start {
            Start::Go { program } => clean(program, GO_SETTINGS),
            Start::Apart { program } => Command::new(program),
            Start::Erlang { erl, modules } => {
                let mut command = clean(erl, ERLANG_SETTINGS);
                let schedulers = format!("{0}:{0}", job.workers);
                let processes = job.processes.or(job.rounds).unwrap_or_default();
                let processes = processes.saturating_mul(2);
                let limit = processes.clamp(ERLANG_PROCESSES, ERLANG_PROCESSES_AT_MOST);
                command.args(["-noshell", "-noinput", "+S", &schedulers]);
                command.args(["+P", &limit.to_string(), "-pa"]).arg(modules);
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
            }
        };
        command.args(job.args());
        command
    }
}

fn find_on(path: &OsStr, peer: Peer, target: &Path) -> Result<Program, Unavailable> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign");
    match peer.kind() {
        Kind::Rust => Err(Unavailable::NotForeign(peer)),
        Kind::Go => build_go(path, &sources.join("go"), &target.join("go")),
        Kind::Erlang => build_erlang(path, &sources.join("erlang"), &target.join("erlang")),
        Kind::Apart => build_apart(
            path,
            peer,
            &sources.join("remotes"),
            &target.join("remotes"),
        ),
    }
}

fn build_go(path: &OsStr, sources: &Path, built: &Path) -> Result<Program, Unavailable> {
    let go = on_path(path, "go")?;
    let go = || {
        let mut command = clean(&go, GO_SETTINGS);
        command
            .current_dir(sources)
            .env("GOCACHE", built.join("cache"));
        // The program needs nothing from elsewhere: neither modules, nor another Go, nor C.
        command.env("GOPROXY", "off").env("GOTOOLCHAIN", "local");
        command.env("GOWORK", "off").env("CGO_ENABLED", "0");
        command
    };
    make_folder(built)?;
    let version = output(go().args(["env", "GOVERSION"]))?;
    let program = built.join(format!("ganger-workload{EXE_SUFFIX}"));
    // Git may refuse to look at another user's files.
    output(
        go().args(["build", "-buildvcs=false", "-o"])
            .arg(&program)
            .arg("."),
    )?;
    Ok(Program {
        version: version.trim_start_matches("go").to_owned(),
        start: Start::Go { program },
    })
}

fn build_erlang(path: &OsStr, sources: &Path, modules: &Path) -> Result<Program, Unavailable> {
    let (erl, erlc) = (on_path(path, "erl")?, on_path(path, "erlc")?);
    make_folder(modules)?;
    let mut compile = clean(&erlc, ERLANG_SETTINGS);
    compile
        .args(["-Werror", "-o"])
        .arg(modules)
        .args(files(sources, "erl")?);
    output(&mut compile)?;
    let release = "io:put_chars(erlang:system_info(otp_release)), halt().";
    let mut version = clean(&erl, ERLANG_SETTINGS);
    let version = output(version.args(["-noshell", "-noinput", "-eval", release]))?;
    let modules = modules.to_owned();
    Ok(Program {
        version: format!("OTP {version}"),
        start: Start::Erlang { erl, modules },
    })
}

fn build_apart(
    path: &OsStr,
    peer: Peer,
    sources: &Path,
    built: &Path,
) -> Result<Program, Unavailable> {
    let cargo = on_path(path, "cargo")?;
    let package = match peer {
        Peer::KameoRemote => "kameo",
        Peer::RactorCluster => "ractor",
        other => return Err(Unavailable::NotForeign(other)),
    };
    make_folder(built)?;
    let name = format!("ganger-remote-{package}");
    let mut build = clean(&cargo, CARGO_SETTINGS);
    build.args(["build", "--release", "--locked", "-p", &name]);
    build.arg("--manifest-path").arg(sources.join("Cargo.toml"));
    build.arg("--target-dir").arg(built);
    eprintln!("Building {peer}: minutes the first time");
    output(&mut build)?;
    let lock = fs::read_to_string(sources.join("Cargo.lock")).unwrap_or_default();
    Ok(Program {
        version: locked(&lock, package).unwrap_or("?").to_owned(),
        start: Start::Apart {
            program: built.join("release").join(format!("{name}{EXE_SUFFIX}")),
        },
    })
}

/// Returns the folder `foreign` of the target directory. The target directory has a folder for each
/// profile, with this program in it, or with a test a folder below.
fn target_folder() -> PathBuf {
    let program = env::current_exe().unwrap_or_default();
    let mut folder = program.parent().unwrap_or(Path::new(""));
    if folder.ends_with("deps") {
        folder = folder.parent().unwrap_or(folder);
    }
    folder.parent().unwrap_or(folder).join("foreign")
}

/// Returns the file that a shell would run. Relative folders are skipped: elsewhere they would be
/// other folders.
fn on_path(path: &OsStr, program: &'static str) -> Result<PathBuf, Unavailable> {
    env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(format!("{program}{EXE_SUFFIX}")))
        .find(|file| is_program(file))
        .ok_or(Unavailable::NotInstalled(program))
}

#[cfg(unix)]
fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(file).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(file: &Path) -> bool {
    file.is_file()
}

/// Runs it without these settings.
fn clean(program: &Path, settings: &[&str]) -> Command {
    let mut command = Command::new(program);
    for setting in settings {
        command.env_remove(setting);
    }
    command
}

/// Returns the standard output of a successful command.
fn output(command: &mut Command) -> Result<String, Unavailable> {
    let ended = command.stdin(Stdio::null()).output();
    let failed = |why| Unavailable::Failed {
        command: line(command),
        why,
    };
    let ended = ended.map_err(|error| failed(error.to_string()))?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if ended.status.success() {
        return Ok(said(&ended.stdout));
    }
    // Some programs print errors on standard output.
    let all = format!("{}\n{}", said(&ended.stdout), said(&ended.stderr));
    Err(failed(format!("{}\n{}", ended.status, all.trim())))
}

/// Returns the command as typed.
fn line(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy()];
    words.extend(command.get_args().map(OsStr::to_string_lossy));
    words.join(" ")
}

fn make_folder(folder: &Path) -> Result<(), Unavailable> {
    fs::create_dir_all(folder).map_err(|error| Unavailable::Failed {
        command: format!("mkdir {}", folder.display()),
        why: error.to_string(),
    })
}

/// Returns the files with an extension, in order.
fn files(folder: &Path, extension: &str) -> Result<Vec<OsString>, Unavailable> {
    let listed = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let listed = listed.map_err(|error| Unavailable::Failed {
        command: format!("ls {}", folder.display()),
        why: error.to_string(),
    })?;
    let paths = listed.into_iter().map(|entry| entry.path());
    let is_one = |path: &PathBuf| path.extension().is_some_and(|it| it == extension);
    let mut files: Vec<_> = paths.filter(is_one).map(PathBuf::into_os_string).collect();
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::whole::catalog::Id;

    #[test]
    fn what_is_not_on_the_path_is_not_installed() {
        let nowhere = tempfile::tempdir().unwrap();
        let path = nowhere.path().as_os_str();
        let languages = [(Peer::Go, "go"), (Peer::Erlang, "erl")];
        let apart = [Peer::KameoRemote, Peer::RactorCluster].map(|peer| (peer, "cargo"));
        for (peer, program) in languages.into_iter().chain(apart) {
            for path in [path, OsStr::new("")] {
                let error = find_on(path, peer, nowhere.path()).unwrap_err();
                assert_eq!(error, Unavailable::NotInstalled(program));
                assert!(
                    error
                        .to_string()
                        .contains(&format!("`{program}` is not on the PATH"))
                );
            }
        }
        assert_eq!(fs::read_dir(nowhere.path()).unwrap().count(), 0);
    }

    #[test]
    fn peers_in_rust_need_no_program() {
        let error = find(Peer::Tokio).unwrap_err();
        assert_eq!(error, Unavailable::NotForeign(Peer::Tokio));
    }

    /// A script of the shell is cargo: another process writes it, so that none here has it open.
    #[cfg(unix)]
    #[test]
    fn a_workspace_apart_is_built_by_cargo_for_one_peer() {
        // build --release --locked -p NAME --manifest-path FILE --target-dir FOLDER
        let cargo = "#!/bin/sh\n\
                     case $1 in\n\
                     build) test $2 = --release && test $3 = --locked && test -f \"$7\" && \
                     mkdir \"$9/release\" && cp \"$0\" \"$9/release/$5\" ;;\n\
                     *) echo \"$@\" ;;\n\
                     esac";
        for (peer, name) in [
            (Peer::KameoRemote, "ganger-remote-kameo"),
            (Peer::RactorCluster, "ganger-remote-ractor"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let write = "printf '%s\\n' \"$1\" >\"$0\" && chmod 755 \"$0\"";
            let mut shell = Command::new("sh");
            shell.args(["-c", write]).arg(folder.path().join("cargo"));
            output(shell.arg(cargo)).unwrap();
            let path = folder.path().as_os_str();
            let target = folder.path().join("target");
            let program = find_on(path, peer, &target).unwrap();
            assert!(program.version().starts_with("0."), "{program:?}");
            let job = Job::new(Id::X1, peer, 3, crate::whole::job::Size::Quick);
            let mut command = program.command(&job);
            assert!(Path::new(command.get_program()).ends_with(name));
            assert_eq!(output(&mut command).unwrap(), job.args().join(" "));
        }
    }

    /// The sources have the sizes of the catalogue: with other sizes a run is another workload.
    #[test]
    fn sources_have_the_workloads_of_the_catalog_with_their_sizes() {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign");
        let go = fs::read_to_string(sources.join("go/measure.go")).unwrap();
        let erlang = fs::read_to_string(sources.join("erlang/measure.erl")).unwrap();
        for spec in Id::ALL
            .iter()
            .filter(|id| !id.is_queue())
            .map(|id| id.spec())
        {
            let entry = format!("{{\"{}\", {}, {}, ", spec.id, spec.full, spec.quick);
            for (peer, text) in [(Peer::Go, &go), (Peer::Erlang, &erlang)] {
                let entries = text.replace('_', "").matches(&entry).count();
                let runs = spec.peers.contains(&peer);
                assert!(entries == 1 || entries == 0 && !runs, "{peer:?} {entry}");
            }
        }
    }
}
