//! The context of the figures: the processor, the system, the versions, the commit, the day.

use super::lines::Machine;
use super::outputs::root;
use crate::whole::catalog::{Kind, Peer};
use std::fs;
use std::process::Command;

/// Describes this machine; `others` are the versions of peers outside of this program's build.
pub fn machine(quick: bool, command: String, others: Vec<(String, String)>) -> Machine {
    let rust = Peer::ALL.iter().filter(|peer| peer.kind() == Kind::Rust);
    let versions = rust.filter_map(|&peer| {
        let found = version(package(peer)?).unwrap_or("?");
        Some((peer.to_string(), found.to_owned()))
    });
    let known = |it: Option<String>| it.unwrap_or_else(|| "?".to_owned());
    Machine {
        cpu: cpu_model().unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
        cores: ganger_bench_options::options::cores(),
        kernel: system(),
        governor: known(governor()),
        rustc: known(rustc()),
        versions: versions.chain(others).collect(),
        allocator: allocator().to_owned(),
        commit: known(commit()),
        date: known(said(Command::new("date").args(["-u", "+%F %H:%M"]))),
        command,
        quick,
        ..Machine::default()
    }
}

/// Returns the package of a peer; the standard library is the compiler's.
fn package(peer: Peer) -> Option<&'static str> {
    match peer {
        Peer::Ganger => Some("ganger-sched"),
        Peer::Std => None,
        floor if floor.is_floor() => None,
        other => Some(other.name()),
    }
}

pub(super) fn allocator() -> &'static str {
    if cfg!(feature = "mimalloc") {
        "mimalloc"
    } else {
        "the system's"
    }
}

fn governor() -> Option<String> {
    let path = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    let governor = fs::read_to_string(path).ok()?;
    Some(governor.trim().to_owned())
}

fn commit() -> Option<String> {
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let is_changed = git(&["status", "--porcelain"]).is_none_or(|changes| !changes.is_empty());
    Some(format!("{commit}{}", if is_changed { "+" } else { "" }))
}

fn git(args: &[&str]) -> Option<String> {
    said(Command::new("git").args(args).current_dir(root()))
}

/// Returns the output of a command; `None` if the command fails.
fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// Returns the model of the processor, where the system says it.
fn cpu_model() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let model = info.lines().find(|line| line.starts_with("model name"))?;
    let (_, model) = model.split_once(':')?;
    Some(model.trim().to_owned())
}

/// Returns the system and its version.
fn system() -> String {
    match fs::read_to_string("/proc/sys/kernel/osrelease") {
        Ok(release) => format!("Linux {}", release.trim()),
        Err(_) => std::env::consts::OS.to_owned(),
    }
}

/// Returns the compiler that cargo finds, and so builds with.
fn rustc() -> Option<String> {
    let version = said(Command::new("rustc").arg("--version"))?;
    let mut words = version.split_whitespace();
    Some(format!("{} {}", words.next()?, words.next()?))
}

/// Returns the version of a package in the lock file with which this program was built.
fn version(package: &str) -> Option<&'static str> {
    locked(include_str!("../../../Cargo.lock"), package)
}

/// Returns the version of a package in a lock file.
pub(super) fn locked<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name);
    lines
        .nth(1)?
        .strip_prefix("version = \"")?
        .strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_described_in_full() {
        let go = ("go".to_owned(), "1.26".to_owned());
        let machine = machine(true, "bench --quick".to_owned(), vec![go.clone()]);
        assert!(machine.cores > 0 && !machine.cpu.is_empty());
        assert!(machine.rustc.starts_with("rustc 1."), "{}", machine.rustc);
        assert!(machine.versions.contains(&go));
        let unknown: Vec<_> = machine.versions.iter().filter(|(_, v)| v == "?").collect();
        assert_eq!(unknown, Vec::<&(String, String)>::new());
        assert!(
            machine
                .versions
                .iter()
                .any(|(name, _)| name == "crossbeam-deque")
        );
        assert_eq!(
            machine.date.len(),
            "2026-11-20 12:34".len(),
            "{}",
            machine.date
        );
    }
}
