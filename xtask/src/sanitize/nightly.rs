//! The toolchain with sanitizers, and its installed parts.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A nightly toolchain.
pub(super) struct Nightly {
    /// The version that the toolchain prints.
    pub(super) version: String,
    /// The target triple of this machine.
    pub(super) host: String,
    /// Whether the standard library can be built with a sanitizer: its sources are there.
    pub(super) has_sources: bool,
    /// The folder of the libraries for this machine.
    libraries: PathBuf,
}

impl Nightly {
    /// Asks rustup. The error says what is missing and how to get it.
    pub(super) fn find() -> Result<Self, String> {
        let about = rustc(&["-vV"])?;
        let (version, host) = version_and_host(&about).ok_or("nightly's rustc has no host")?;
        let sysroot = PathBuf::from(rustc(&["--print", "sysroot"])?.trim_end());
        let rustlib = sysroot.join("lib").join("rustlib");
        let sources = rustlib.join("src").join("rust").join("library");
        Ok(Self {
            version: version.to_owned(),
            host: host.to_owned(),
            has_sources: sources.join("std").is_dir(),
            libraries: rustlib.join(host).join("lib"),
        })
    }

    /// Why the sanitizer with that title and library cannot run on this machine, if so.
    pub(super) fn lacks(&self, title: &str, runtime: &str) -> Option<String> {
        let files = fs::read_dir(&self.libraries).into_iter().flatten();
        let mut names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
        let is_there = names.any(|name| name.contains(runtime));
        (!is_there).then(|| format!("nightly has no {title} for {}", self.host))
    }
}

/// Returns the output of nightly's rustc, without installing a missing toolchain.
fn rustc(args: &[&str]) -> Result<String, String> {
    let mut rustup = Command::new("rustup");
    let output = rustup
        .args(["run", "nightly", "rustc"])
        .args(args)
        .env("RUSTUP_AUTO_INSTALL", "0")
        .output();
    match output {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(_) => Err("no nightly toolchain: `rustup toolchain install nightly`".into()),
        Err(error) => Err(format!("no rustup to ask for a nightly toolchain: {error}")),
    }
}

/// Returns the first line, and the triple, of the output of `rustc -vV`.
fn version_and_host(about: &str) -> Option<(&str, &str)> {
    let host = about.lines().find_map(|line| line.strip_prefix("host: "))?;
    Some((about.lines().next()?, host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_found() {
        let about = "rustc 1.97.0-nightly (0 2026-05-15)\nbinary: rustc\nhost: a-b-c\nrelease: 1\n";
        let version = "rustc 1.97.0-nightly (0 2026-05-15)";
        assert_eq!(version_and_host(about), Some((version, "a-b-c")));
        assert_eq!(version_and_host("rustc 1.97.0\n"), None);
    }
}
