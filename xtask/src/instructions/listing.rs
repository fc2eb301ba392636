//! Finds the read-modify-writes and the fences of a program or a library, in the disassembly by
//! `objdump`. Knows x86-64 only: elsewhere a read-modify-write may be a loop of several
//! instructions.

use super::profile::Profile;
use crate::Failure;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::env::consts::ARCH;
use std::path::Path;
use std::process::Command;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Atomic {
    ReadModifyWrite,
    Fence,
}

/// The atomic instructions of a program and of its libraries.
pub(super) struct Listing {
    program: String,
    objects: HashMap<String, BTreeMap<u64, Atomic>>,
    /// Fences of the program that are free where the system has `membarrier`.
    light: BTreeSet<u64>,
}

/// How many were executed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Executed {
    pub(super) rmws: u64,
    /// Full ones.
    pub(super) fences: u64,
    pub(super) light_fences: u64,
    /// Read-modify-writes and fences of libraries.
    pub(super) foreign: u64,
}

impl Listing {
    /// Checks that the tools are there; the error says what is missing.
    pub(super) fn find() -> Result<(), String> {
        if ARCH != "x86_64" {
            return Err(format!(
                "read-modify-writes are not told from others on {ARCH}"
            ));
        }
        for tool in ["objdump", "addr2line"] {
            let output = Command::new(tool).arg("--version").output();
            output.map_err(|e| format!("can't start {tool}: {e} (its package is binutils)"))?;
        }
        Ok(())
    }

    /// Of a program, and of no library yet.
    pub(super) fn of(program: &Path) -> Result<Self, Failure> {
        let program = program.to_string_lossy().into_owned();
        let own = disassembled(&program)?;
        let fences = own.iter().filter(|&(_, &atomic)| atomic == Atomic::Fence);
        let mut addr2line = Command::new("addr2line");
        addr2line.args(["-a", "-i", "-f", "-s", "-e", &program]);
        addr2line.args(fences.map(|(address, _)| format!("{address:#x}")));
        let light = light_fences(&said(&mut addr2line)?);
        Ok(Self {
            objects: HashMap::from([(program.clone(), own)]),
            program,
            light,
        })
    }

    /// Adds the libraries in the profile.
    pub(super) fn add(&mut self, profile: &Profile) -> Result<(), Failure> {
        for object in profile.objects() {
            if !self.objects.contains_key(object) {
                let atomics = disassembled(object)?;
                self.objects.insert(object.to_owned(), atomics);
            }
        }
        Ok(())
    }

    /// Returns the number of executions of each kind.
    pub(super) fn executed(&self, profile: &Profile) -> Executed {
        let mut executed = Executed::default();
        for (object, atomics) in &self.objects {
            for (&address, atomic) in atomics {
                let is_own = *object == self.program;
                let count = match atomic {
                    _ if !is_own => &mut executed.foreign,
                    Atomic::ReadModifyWrite => &mut executed.rmws,
                    Atomic::Fence if self.light.contains(&address) => &mut executed.light_fences,
                    Atomic::Fence => &mut executed.fences,
                };
                *count += profile.executed(object, address);
            }
        }
        executed
    }
}

fn disassembled(object: &str) -> Result<BTreeMap<u64, Atomic>, Failure> {
    let text = said(Command::new("objdump").args(["-d", "--no-show-raw-insn", object]))?;
    Ok(atomics(&text))
}

fn said(command: &mut Command) -> Result<String, Failure> {
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("{:?}: {}", command.get_program(), output.status).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the atomic instructions in the output of `objdump -d --no-show-raw-insn`.
fn atomics(text: &str) -> BTreeMap<u64, Atomic> {
    let lines = text.lines().filter_map(|line| {
        let (address, instruction) = line.split_once(":\t")?;
        let address = u64::from_str_radix(address.trim(), 16).ok()?;
        Some((address, atomic(instruction)?))
    });
    lines.collect()
}

fn atomic(instruction: &str) -> Option<Atomic> {
    let mut words = instruction.split_whitespace();
    let first = words.next()?;
    match first {
        "mfence" => Some(Atomic::Fence),
        "lock" => {
            let (operation, operands) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            // Compilers make a fence by adding zero to a place on the stack.
            let adds = operation.starts_with("or") || operation.starts_with("add");
            let is_fence = adds && operands.starts_with("$0x0,") && operands.ends_with("(%rsp)");
            Some(match is_fence {
                true => Atomic::Fence,
                false => Atomic::ReadModifyWrite,
            })
        }
        // With memory it needs no prefix.
        _ if first.starts_with("xchg") && instruction.contains('(') => {
            Some(Atomic::ReadModifyWrite)
        }
        _ => None,
    }
}

/// Returns the addresses in `light` of `fence.rs`, from the output of `addr2line -a -i -f -s`.
fn light_fences(text: &str) -> BTreeSet<u64> {
    let mut light = BTreeSet::new();
    let (mut address, mut function) = (None, "");
    for line in text.lines() {
        if let Some(digits) = line.strip_prefix("0x") {
            address = u64::from_str_radix(digits, 16).ok();
        } else if function == "light" && line.starts_with("fence.rs:") {
            light.extend(address);
        }
        function = line;
    }
    light
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locked_instructions_and_exchanges_with_memory_are_found() {
        let text = "
/bin/count:     file format elf64-x86-64

Disassembly of section .text:

000000000002fc80 <_ZN3one3twoE>:
   2fc80:\tpush   %rbp
   2fc81:\tlock cmpxchg %rcx,0x38(%r14)
   2fc87:\tlock incq (%r14)
   2fc8b:\txchg   %ax,%ax
   2fc8d:\txchg   %rdi,(%rax)
   2fc90:\tlock orl $0x0,-0x40(%rsp)
   2fc96:\tmfence
   2fc99:\tlock orl $0x1,-0x40(%rsp)
   2fc9f:\tlock orq $0x0,0x8(%r12)
   2fca5:\tcall   3c050 <block>
   2fcaa:\tlfence
";
        let found: Vec<_> = atomics(text).into_iter().collect();
        let expected = [
            (0x2fc81, Atomic::ReadModifyWrite),
            (0x2fc87, Atomic::ReadModifyWrite),
            (0x2fc8d, Atomic::ReadModifyWrite),
            (0x2fc90, Atomic::Fence),
            (0x2fc96, Atomic::Fence),
            (0x2fc99, Atomic::ReadModifyWrite),
            (0x2fc9f, Atomic::ReadModifyWrite),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn light_fences_are_told_by_the_function_that_they_are_inlined_from() {
        let text = "\
0x0000000000050adc
_ZN12ganger_sched6shared6Shared8scheduleE
atomic.rs:4376
full
fence.rs:61
light
fence.rs:53
defer
idle.rs:186
0x00000000000508c1
schedule
atomic.rs:4376
heavy
fence.rs:85
0x00000000000508d1
light
lamp.rs:4
";
        assert_eq!(light_fences(text), BTreeSet::from([0x50adc]));
    }

    #[test]
    fn what_was_executed_is_told_apart() {
        let profile = "summary: 9\nob=/bin/count\n0x10 0 2\n0x20 0 3\n0x30 0 5\n0x40 0 7\n\
                       ob=/lib/libc.so.6\n0x10 0 11\n0x20 0 13\n";
        let profile = Profile::parse(profile).unwrap();
        let own = [
            (0x10, Atomic::ReadModifyWrite),
            (0x20, Atomic::Fence),
            (0x30, Atomic::Fence),
            (0x50, Atomic::Fence),
        ];
        let foreign = [(0x20, Atomic::ReadModifyWrite)];
        let listing = Listing {
            program: "/bin/count".to_owned(),
            objects: HashMap::from([
                ("/bin/count".to_owned(), BTreeMap::from(own)),
                ("/lib/libc.so.6".to_owned(), BTreeMap::from(foreign)),
            ]),
            light: BTreeSet::from([0x30]),
        };
        let expected = Executed {
            rmws: 2,
            fences: 3,
            light_fences: 5,
            foreign: 13,
        };
        assert_eq!(listing.executed(&profile), expected);
    }
}
