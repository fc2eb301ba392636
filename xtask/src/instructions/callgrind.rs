//! Valgrind's callgrind, which counts the instructions of a program. Only user code counts. So the
//! same program gives nearly the same counts again, but for the few steps at which threads meet.

use super::profile::Profile;
use crate::Failure;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) struct Callgrind {
    /// The folder of the files with the runs' counts.
    folder: PathBuf,
}

impl Callgrind {
    /// Checks that valgrind is there; the error says what is missing. A run leaves its counts in
    /// a file in the folder, until they have been read.
    pub(super) fn find(folder: PathBuf) -> Result<Self, String> {
        let output = Command::new("valgrind").arg("--version").output();
        let output = output.map_err(|error| {
            format!(
                "can't start valgrind: {error} (its package is called valgrind in most systems)"
            )
        })?;
        match output.status.success() {
            true => Ok(Self { folder }),
            false => Err(format!("`valgrind --version`: {}", output.status)),
        }
    }

    /// Checks that valgrind can run the program: processors have instructions that an older
    /// valgrind does not know. The error has valgrind's complaint.
    pub(super) fn try_out(&self, program: &Path) -> Result<(), String> {
        let out = self.folder.join("callgrind.list.out");
        let output = self.command(&out, program, &["--list"]).output();
        let output = output.map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(()),
            false => {
                let said = String::from_utf8_lossy(&output.stderr);
                let last = said.lines().last().unwrap_or_default();
                Err(format!(
                    "valgrind can't run programs here: {}: {last}",
                    output.status
                ))
            }
        }
    }

    /// Returns the instructions that a run executes. Runs with other arguments may happen at the
    /// same time.
    pub(super) fn profile(&self, program: &Path, args: &[&str]) -> Result<Profile, Failure> {
        let out = self
            .folder
            .join(format!("callgrind.{}.out", args.join(".")));
        let output = self.command(&out, program, args).output()?;
        let args = args.join(" ");
        if !output.status.success() {
            let (status, program) = (output.status, program.display());
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("`valgrind … {program} {args}`: {status}\n{said}").into());
        }
        let text =
            fs::read_to_string(&out).map_err(|e| format!("can't read {}: {e}", out.display()))?;
        fs::remove_file(&out)?;
        let profile = Profile::parse(&text);
        profile.ok_or_else(|| format!("callgrind does not say what {args} executes").into())
    }

    fn command(&self, file: &Path, program: &Path, args: &[&str]) -> Command {
        let mut out = std::ffi::OsString::from("--callgrind-out-file=");
        out.push(file);
        let mut valgrind = Command::new("valgrind");
        valgrind
            .args(["--tool=callgrind", "--dump-instr=yes"])
            .arg(out);
        // All fences are full fences, whether the kernel has `membarrier` or not.
        valgrind
            .arg(program)
            .args(args)
            .env("GANGER_MEMBARRIER", "off");
        valgrind
    }
}
