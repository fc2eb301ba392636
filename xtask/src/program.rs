//! Programs of the workspace that take this one's place when they are built.

use crate::root::Tree;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Where cargo has put the program of that name, optimised.
pub(crate) fn path(name: &str) -> PathBuf {
    let folder = Tree::own().target.join("release");
    folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

/// Runs it in the place of this program, so that Ctrl-C and the exit code are its own.
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
