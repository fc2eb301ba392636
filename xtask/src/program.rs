//! Programs of the workspace that take this program's place when they are built.

use crate::root::Tree;
use std::env;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Returns the path of an optimised program. Cargo puts it into a folder next to this program's,
/// whatever the user's settings say.
pub(crate) fn path(name: &str) -> PathBuf {
    let own = env::current_exe().ok();
    let target = own.as_deref().and_then(|own| own.parent()?.parent());
    let folder = target.map_or_else(|| Tree::own().target, PathBuf::from);
    folder.join(format!("release/{name}{}", env::consts::EXE_SUFFIX))
}

/// Runs the command in the place of this program, so that Ctrl-C and the exit code are its own.
pub(crate) fn become_it(mut command: Command) -> ExitCode {
    #[cfg(unix)]
    let result = Err(std::os::unix::process::CommandExt::exec(&mut command));
    #[cfg(not(unix))]
    let result = command.status();
    match result {
        Ok(status) => {
            let status: std::process::ExitStatus = status;
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            code.map_or(ExitCode::FAILURE, ExitCode::from)
        }
        Err(error) => {
            let program = command.get_program().display();
            eprintln!("error: can't run {program}: {error}");
            ExitCode::FAILURE
        }
    }
}
