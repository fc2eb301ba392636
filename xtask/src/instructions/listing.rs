//! Finds the read-modify-writes and the fences of a program, in the disassembly by `objdump`. Knows
//! x86-64 only: elsewhere a read-modify-write may be a loop of several instructions.

use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::path::Path;
use std::process::Command;

/// The columns of the atomic instructions.
pub(super) const RMWS: &str = "rmws";
pub(super) const FENCES: &str = "fences";

/// The atomic instructions of a program, by address, each with its column.
pub(super) type Listing = BTreeMap<u64, &'static str>;

/// Returns the atomic instructions of a program; the error says what is missing.
pub(super) fn listing(program: &Path) -> Result<Listing, String> {
    if ARCH != "x86_64" {
        return Err(format!("{ARCH}'s read-modify-writes are not known"));
    }
    let mut objdump = Command::new("objdump");
    objdump.args(["-d", "--no-show-raw-insn"]).arg(program);
    let output = objdump.output();
    let output = output.map_err(|e| format!("can't start objdump: {e} (package binutils)"))?;
    match output.status.success() {
        true => Ok(parse(&String::from_utf8_lossy(&output.stdout))),
        false => Err(format!("objdump: {}", output.status)),
    }
}

fn parse(text: &str) -> Listing {
    let lines = text.lines().filter_map(|line| {
        let (address, instruction) = line.split_once(":\t")?;
        let address = u64::from_str_radix(address.trim(), 16).ok()?;
        Some((address, atomic(instruction)?))
    });
    lines.collect()
}

fn atomic(instruction: &str) -> Option<&'static str> {
    let mut words = instruction.split_whitespace();
    match words.next()? {
        "mfence" => Some(FENCES),
        "lock" => {
            let (operation, operands) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            // Compilers make a fence by adding zero to a place on the stack.
            let adds = operation.starts_with("or") || operation.starts_with("add");
            let is_fence = adds && operands.starts_with("$0x0,") && operands.ends_with("(%rsp)");
            Some(if is_fence { FENCES } else { RMWS })
        }
        // With memory it needs no prefix.
        first if first.starts_with("xchg") && instruction.contains('(') => Some(RMWS),
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
        let fences = [0x2fc90, 0x2fc96].map(|address| (address, FENCES));
        let rmws = [0x2fc81, 0x2fc8d, 0x2fc99, 0x2fc9f].map(|address| (address, RMWS));
        assert_eq!(parse(text), fences.into_iter().chain(rmws).collect());
    }
}
