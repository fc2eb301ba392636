//! Finds the read-modify-writes and the fences of a program, in the disassembly by `objdump`. Knows
//! x86-64 only: elsewhere a read-modify-write may be a loop of several instructions.

use super::profile::Profile;
use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::path::Path;
use std::process::Command;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Atomic {
    ReadModifyWrite,
    Fence,
}

/// The atomic instructions of a program, by address.
pub(super) struct Listing(BTreeMap<u64, Atomic>);

impl Listing {
    /// The error says what is missing.
    pub(super) fn of(program: &Path) -> Result<Self, String> {
        if ARCH != "x86_64" {
            return Err(format!(
                "read-modify-writes are not told from others on {ARCH}"
            ));
        }
        let mut objdump = Command::new("objdump");
        let output = objdump
            .args(["-d", "--no-show-raw-insn"])
            .arg(program)
            .output();
        let output = output.map_err(|e| format!("can't start objdump: {e} (package binutils)"))?;
        if !output.status.success() {
            return Err(format!("objdump: {}", output.status));
        }
        Ok(Self::parse(&String::from_utf8_lossy(&output.stdout)))
    }

    fn parse(text: &str) -> Self {
        let lines = text.lines().filter_map(|line| {
            let (address, instruction) = line.split_once(":\t")?;
            let address = u64::from_str_radix(address.trim(), 16).ok()?;
            Some((address, atomic(instruction)?))
        });
        Self(lines.collect())
    }

    /// Returns the number of executions.
    pub(super) fn executed(&self, profile: &Profile, kind: Atomic) -> u64 {
        let these = self.0.iter().filter(|(_, it)| **it == kind);
        these
            .filter_map(|(address, _)| profile.own.get(address))
            .sum()
    }
}

fn atomic(instruction: &str) -> Option<Atomic> {
    let mut words = instruction.split_whitespace();
    match words.next()? {
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
        first if first.starts_with("xchg") && instruction.contains('(') => {
            Some(Atomic::ReadModifyWrite)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locked_instructions_and_exchanges_with_memory_are_found() {
        let text = "
000000000002fc80 <_ZN3one3twoE>:
   2fc80:\tpush   %rbp
   2fc81:\tlock cmpxchg %rcx,0x38(%r14)
   2fc8b:\txchg   %ax,%ax
   2fc8d:\txchg   %rdi,(%rax)
   2fc90:\tlock orl $0x0,-0x40(%rsp)
   2fc96:\tmfence
   2fc99:\tlock orl $0x1,-0x40(%rsp)
   2fc9f:\tlock orq $0x0,0x8(%r12)
   2fcaa:\tlfence
";
        let listing = Listing::parse(text);
        let expected = [
            (0x2fc81, Atomic::ReadModifyWrite),
            (0x2fc8d, Atomic::ReadModifyWrite),
            (0x2fc90, Atomic::Fence),
            (0x2fc96, Atomic::Fence),
            (0x2fc99, Atomic::ReadModifyWrite),
            (0x2fc9f, Atomic::ReadModifyWrite),
        ];
        assert_eq!(listing.0, BTreeMap::from(expected));
        let own = [(0x2fc80, 1), (0x2fc81, 2), (0x2fc90, 3), (0x2fc96, 4)];
        let profile = Profile {
            own: own.into(),
            ..Profile::default()
        };
        assert_eq!(listing.executed(&profile, Atomic::Fence), 7);
        assert_eq!(listing.executed(&profile, Atomic::ReadModifyWrite), 2);
    }
}
