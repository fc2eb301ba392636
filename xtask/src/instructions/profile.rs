//! The counts of a run: of each instruction, and of each function's calls. They are read from
//! callgrind's output with `--dump-instr=yes` (its manual has the format, "Callgrind Format
//! Specification").

use std::collections::HashMap;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Profile {
    pub(super) instructions: u64,
    /// The number of executions of each instruction: by object, a program or a library, and by
    /// address.
    executed: HashMap<String, HashMap<u64, u64>>,
    calls: HashMap<String, u64>,
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
    pub(super) fn parse(text: &str) -> Option<Self> {
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
                continue;
            }
            if let Some(rest) = line.strip_prefix("summary: ") {
                profile.instructions = number(rest.split(' ').next()?)?;
                is_complete = true;
                continue;
            }
            if !line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
                continue;
            }
            let mut fields = line.split(' ');
            address = position(fields.next()?, address)?;
            let count = number(fields.nth(1)?)?;
            // The line after a call has the call's costs.
            if !std::mem::take(&mut is_inclusive) {
                let executed = profile.executed.entry(object.clone()).or_default();
                *executed.entry(address).or_default() += count;
            }
        }
        is_complete.then_some(profile)
    }

    /// Returns the executed objects that are files.
    pub(super) fn objects(&self) -> impl Iterator<Item = &str> {
        let objects = self.executed.keys().map(String::as_str);
        objects.filter(|object| object.starts_with('/'))
    }

    /// Returns the number of executions of the instruction at an address.
    pub(super) fn executed(&self, object: &str, address: u64) -> u64 {
        let executed = self.executed.get(object);
        executed
            .and_then(|it| it.get(&address))
            .map_or(0, |&count| count)
    }

    /// Returns the number of executed instructions of an object.
    pub(super) fn instructions_of(&self, object: &str) -> u64 {
        let executed = self.executed.get(object);
        executed.map_or(0, |executed| executed.values().sum())
    }

    /// How often functions of these names were called.
    pub(super) fn calls(&self, names: &[&str]) -> u64 {
        let calls = names.iter().filter_map(|&name| self.calls.get(name));
        calls.sum()
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
version: 1
cmd:  /bin/count send 2
part: 1

desc: Timerange: Basic block 0 - 357185

positions: instr line
events: Ir
summary: 41

ob=(2) /bin/count
fl=(5) ./a.rs
fn=(7) work
0x1000 12 2
+4 13 3
calls=2 0x98930 3281
* 13 20
fi=(6) ./b.rs
-4 12 5
cob=(3) /lib/libc.so.6
cfi=(9) ./malloc.c
cfn=(8) malloc
calls=4 0x98930 3281
+0x10 12 1000

ob=(3)
fl=(9)
fn=(8)
0x98930 3281 4

ob=(4) ???
fn=(10) 0x0000000004848340
0x4848340 0 1
cfn=(8)
calls=3 0x98930 3281
* 0 30
";

    #[test]
    fn instructions_and_calls_are_counted_without_what_calls_took() {
        let profile = Profile::parse(TEXT).unwrap();
        assert_eq!(profile.instructions, 41);
        let counts = [0x1000, 0x1004, 0x1010].map(|at| profile.executed("/bin/count", at));
        assert_eq!(counts, [7, 3, 0]);
        assert_eq!(profile.executed("/lib/libc.so.6", 0x98930), 4);
        assert_eq!(profile.executed("/lib/other.so", 0x98930), 0);
        assert_eq!(profile.instructions_of("/bin/count"), 10);
        assert_eq!(profile.instructions_of("/lib/other.so"), 0);
        assert_eq!(profile.calls(&["malloc"]), 7);
        assert_eq!(profile.calls(&["malloc", "work"]), 7);
        let mut objects: Vec<_> = profile.objects().collect();
        objects.sort_unstable();
        assert_eq!(objects, ["/bin/count", "/lib/libc.so.6"]);
    }

    #[test]
    fn what_is_cut_off_or_not_understood_is_no_profile() {
        assert_eq!(Profile::parse(""), None);
        assert_eq!(Profile::parse("summary: 7\n0x10 twelve"), None);
        assert_eq!(
            Profile::parse("summary: 7\nfn=(1)\n"),
            None,
            "no name for it"
        );
    }
}
