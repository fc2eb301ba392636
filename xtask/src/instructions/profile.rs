//! Valgrind's callgrind, which counts the instructions of a run. Only user code counts, so the same
//! program gives nearly the same counts again, but for the few steps at which threads meet.
//!
//! The counts are read from the output with `--dump-instr=yes` (callgrind's manual has the format,
//! "Callgrind Format Specification").

use crate::Failure;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The counts of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Profile {
    /// Of all code.
    pub(super) instructions: u64,
    /// The executions of each instruction of the program itself, by address.
    pub(super) own: HashMap<u64, u64>,
    pub(super) calls: HashMap<String, u64>,
}

/// Names that are written out once, and then have a number.
#[derive(Default)]
struct Names(HashMap<String, String>);

impl Names {
    /// The name in `name`, `(7) name` or `(7)`.
    fn read(&mut self, text: &str) -> Option<String> {
        let Some((number, name)) = text.strip_prefix('(').and_then(|rest| rest.split_once(')'))
        else {
            return Some(text.to_owned());
        };
        if !name.trim().is_empty() {
            self.0.insert(number.to_owned(), name.trim().to_owned());
        }
        self.0.get(number).cloned()
    }
}

impl Profile {
    /// Runs the program under callgrind. Runs with other arguments may happen at once: each
    /// leaves its counts in a file of its own in `folder`, until they have been read.
    pub(super) fn of_run(folder: &Path, program: &Path, args: &[&str]) -> Result<Self, Failure> {
        let out = folder.join(format!("callgrind.{}.out", args.join(".")));
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--tool=callgrind", "--dump-instr=yes"]);
        valgrind.arg(format!("--callgrind-out-file={}", out.display()));
        // All fences are full fences, whether the kernel has `membarrier` or not.
        valgrind
            .arg(program)
            .args(args)
            .env("GANGER_MEMBARRIER", "off");
        let output = valgrind.output().map_err(|error| {
            format!("can't start valgrind: {error} (its package is called valgrind)")
        })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().last().unwrap_or_default();
            return Err(format!("valgrind can't run {args:?}: {}: {last}", output.status).into());
        }
        let text = fs::read_to_string(&out)?;
        fs::remove_file(&out)?;
        let profile = Self::parse(&text, &program.to_string_lossy());
        profile.ok_or_else(|| format!("callgrind does not say what {args:?} executes").into())
    }

    fn parse(text: &str, program: &str) -> Option<Self> {
        let mut profile = Self::default();
        let (mut objects, mut functions) = (Names::default(), Names::default());
        let (mut object, mut called) = (String::new(), String::new());
        let mut address = 0_u64;
        let mut is_inclusive = false;
        let mut is_complete = false;
        for line in text.lines() {
            if let Some((key, value)) = line.split_once('=') {
                match key {
                    "ob" => object = objects.read(value)?,
                    // The object of a called function: its name may be written here alone.
                    "cob" => drop(objects.read(value)?),
                    "fn" => drop(functions.read(value)?),
                    "cfn" => called = functions.read(value)?,
                    "calls" => {
                        let count = number(value.split(' ').next()?)?;
                        *profile.calls.entry(called.clone()).or_default() += count;
                        is_inclusive = true;
                    }
                    _ => {}
                }
            } else if let Some(rest) = line.strip_prefix("summary: ") {
                profile.instructions = number(rest.split(' ').next()?)?;
                is_complete = true;
            } else if line
                .starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first))
            {
                let mut fields = line.split(' ');
                address = position(fields.next()?, address)?;
                let count = number(fields.nth(1)?)?;
                // The line after a call has the call's costs.
                if !std::mem::take(&mut is_inclusive) && object == program {
                    *profile.own.entry(address).or_default() += count;
                }
            }
        }
        is_complete.then_some(profile)
    }

    /// How often functions of these names were called.
    pub(super) fn calls(&self, names: &[&str]) -> u64 {
        names.iter().filter_map(|&name| self.calls.get(name)).sum()
    }
}

/// Parses an address, or its distance from the address before.
fn position(text: &str, before: u64) -> Option<u64> {
    if text == "*" {
        Some(before)
    } else if let Some(more) = text.strip_prefix('+') {
        before.checked_add(number(more)?)
    } else if let Some(less) = text.strip_prefix('-') {
        before.checked_sub(number(less)?)
    } else {
        number(text)
    }
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# callgrind format
cmd:  /bin/count send 2
events: Ir
summary: 41

ob=(2) /bin/count
fl=(5) ./a.rs
fn=(7) work
0x1000 12 2
+4 13 3
calls=2 0x98930 3281
* 13 20
-4 12 5
cob=(3) /lib/libc.so.6
cfn=(8) malloc
calls=4 0x98930 3281
+0x10 12 1000

ob=(3)
fn=(8)
0x98930 3281 4
cfn=(8)
calls=3 0x98930 3281
* 0 30
";

    #[test]
    fn instructions_and_calls_are_counted_without_what_calls_took() {
        let profile = Profile::parse(TEXT, "/bin/count").unwrap();
        assert_eq!(profile.instructions, 41);
        assert_eq!(profile.own, HashMap::from([(0x1000, 7), (0x1004, 3)]));
        assert_eq!(profile.calls(&["malloc", "calloc"]), 7);
        for broken in ["", "summary: 7\n0x10 twelve", "summary: 7\nfn=(1)\n"] {
            assert_eq!(Profile::parse(broken, ""), None, "{broken}");
        }
    }
}
