//! Programs of the workspace that take this program's place when they are built.

use crate::root::Tree;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Returns the path of an optimised program. Cargo puts it into a folder next to this program's,
/// whatever the user's settings say.
pub(crate) fn path(name: &str) -> PathBuf {
    let own = env::current_exe().ok();
    let target = own.as_deref().and_then(built_in).map(Path::to_owned);
    let folder = target.unwrap_or_else(|| Tree::own().target).join("release");
    folder.join(format!("{name}{}", env::consts::EXE_SUFFIX))
}

/// Returns the target folder, which has a folder for each profile. `program` is in a profile's
/// folder, or is a test in its `deps`.
fn built_in(program: &Path) -> Option<&Path> {
    let folder = program.parent()?;
    let is_test = folder.file_name().is_some_and(|name| name == "deps");
    let profile = if is_test { folder.parent()? } else { folder };
    profile.parent()
}

/// Runs the command in the place of this program, so that Ctrl-C and the exit code are its own.
#[cfg(unix)]
pub(crate) fn become_it(mut command: Command) -> ExitCode {
    use std::os::unix::process::CommandExt;
    let error = command.exec();
    failed(&command, &error)
}

#[cfg(not(unix))]
pub(crate) fn become_it(mut command: Command) -> ExitCode {
    match command.status() {
        Ok(status) => {
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            code.map_or(ExitCode::FAILURE, ExitCode::from)
        }
        Err(error) => failed(&command, &error),
    }
}

fn failed(command: &Command, error: &std::io::Error) -> ExitCode {
    let program = command.get_program().display();
    eprintln!("error: can't run {program}: {error}");
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_lie_beside_this_one() {
        for (own, folder) in [
            ("/a/target/debug/xtask", "/a/target"),
            ("/a/target/debug/deps/xtask-1", "/a/target"),
            (
                "/b/x86_64-unknown-linux-gnu/debug/xtask",
                "/b/x86_64-unknown-linux-gnu",
            ),
        ] {
            assert_eq!(built_in(Path::new(own)), Some(Path::new(folder)), "{own}");
        }
    }
}
