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
    /// The calls of each function.
    pub(super) calls: HashMap<String, u64>,
}

/// Runs the program under callgrind. Runs with other arguments may happen at once: each leaves its
/// counts in a file of its own in `folder`, until they have been read.
pub(super) fn profile(folder: &Path, program: &Path, args: &[&str]) -> Result<Profile, Failure> {
    let out = folder.join(format!("callgrind.{}.out", args.join(".")));
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--dump-instr=yes"]);
    valgrind.arg(format!("--callgrind-out-file={}", out.display()));
    // All fences are full fences, whether the kernel has `membarrier` or not.
    valgrind.arg(program).args(args);
    valgrind.env("GANGER_MEMBARRIER", "off");
    let output = valgrind.output();
    let output = output.map_err(|error| format!("can't start valgrind: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().last().unwrap_or_default();
        return Err(format!("valgrind can't run {args:?}: {}: {last}", output.status).into());
    }
    let text = fs::read_to_string(&out)?;
    fs::remove_file(&out)?;
    let profile = parse(&text, &program.to_string_lossy());
    profile.ok_or_else(|| format!("callgrind does not say what {args:?} executes").into())
}

/// Returns the name in `name`, `(7) name` or `(7)`: it is written out once, and then has a number.
fn name(names: &mut HashMap<String, String>, text: &str) -> Option<String> {
    let Some((number, name)) = text.strip_prefix('(').and_then(|rest| rest.split_once(')')) else {
        return Some(text.to_owned());
    };
    if !name.trim().is_empty() {
        names.insert(number.to_owned(), name.trim().to_owned());
    }
    names.get(number).cloned()
}

fn parse(text: &str, program: &str) -> Option<Profile> {
    let mut profile = Profile::default();
    let (mut objects, mut functions) = (HashMap::new(), HashMap::new());
    let (mut object, mut called) = (String::new(), String::new());
    let (mut address, mut is_inclusive, mut is_complete) = (0_u64, false, false);
    for line in text.lines() {
        let first = line.split(' ').next()?;
        match line.split_once('=') {
            Some(("ob", value)) => object = name(&mut objects, value)?,
            // The object of a called function: its name may be written here alone.
            Some(("cob", value)) => drop(name(&mut objects, value)?),
            Some(("fn", value)) => drop(name(&mut functions, value)?),
            Some(("cfn", value)) => called = name(&mut functions, value)?,
            Some(("calls", value)) => {
                let count = number(value.split(' ').next()?)?;
                *profile.calls.entry(called.clone()).or_default() += count;
                is_inclusive = true;
            }
            Some(_) => {}
            None if first == "summary:" => {
                profile.instructions = number(line.split(' ').nth(1)?)?;
                is_complete = true;
            }
            None if first.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) => {
                address = position(first, address)?;
                let count = number(line.split(' ').nth(2)?)?;
                // The line after a call has the call's costs.
                if !std::mem::take(&mut is_inclusive) && object == program {
                    *profile.own.entry(address).or_default() += count;
                }
            }
            None => {}
        }
    }
    is_complete.then_some(profile)
}

/// Parses an address, or its distance from the address before.
fn position(text: &str, before: u64) -> Option<u64> {
    match (text.strip_prefix('+'), text.strip_prefix('-')) {
        (Some(more), _) => before.checked_add(number(more)?),
        (_, Some(less)) => before.checked_sub(number(less)?),
        _ if text == "*" => Some(before),
        _ => number(text),
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
        let profile = parse(TEXT, "/bin/count").unwrap();
        assert_eq!(profile.instructions, 41);
        assert_eq!(profile.own, HashMap::from([(0x1000, 7), (0x1004, 3)]));
        assert_eq!(profile.calls["malloc"], 7);
        for broken in ["", "summary: 7\n0x10 twelve", "summary: 7\nfn=(1)\n"] {
            assert_eq!(parse(broken, ""), None, "{broken}");
        }
    }
}
