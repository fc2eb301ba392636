//! How many cache lines a round touches, the stack's included and the code's not: counted in a trace of
//! what the program reads and writes.
//!
//! A round begins where an instruction is executed that is executed once in each. Which one that is
//! the trace says: one that comes as often as there are rounds, and between two of which there are about as
//! many instructions as a round has. The median over the rounds counts, so that what comes now and then
//! does not.

use super::callgrind::tracing;
use crate::Failure;
use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, BufReader};
use std::path::Path;

const LINE_BITS: u32 = 6;

/// How many periods are traced: as many as take no more than [`ROUNDS`]. Primes, because little else
/// comes so often.
const PERIODS: [u64; 3] = [251, 31, 7];
const ROUNDS: u64 = 8_192;

/// How far, as a part, the instructions in the median period may be from those of the mean one.
const ALIKE: f64 = 0.2;

/// How many instructions are tried as the one that a round begins with.
const CANDIDATES: usize = 32;

/// A period's number of instructions, and that of lines.
type Period = (u64, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Instruction(u64),
    Line(u64),
}

/// Lines a round, if rounds can be told from one another.
pub(super) fn count(
    program: &Path,
    name: &str,
    period: u64,
    instructions: f64,
) -> Result<Option<f64>, Failure> {
    let periods = PERIODS
        .into_iter()
        .find(|periods| periods * period <= ROUNDS);
    let periods = periods.unwrap_or(PERIODS[2]);
    let rounds = (periods * period).to_string();
    let mut child = tracing(program, &[name, &rounds]).spawn()?;
    let mut trace = Vec::new();
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).lines() {
            trace.extend(accesses(&line?));
        }
    }
    let status = child.wait()?;
    if !status.success() {
        return Err(format!("`valgrind --tool=lackey … {name} {rounds}`: {status}").into());
    }
    let lines = lines_of_a_period(&trace, periods, instructions * period as f64);
    Ok(lines.map(|lines| lines as f64 / period as f64))
}

/// What a line of the trace says: nothing, an instruction, or the one or two lines that one touches.
fn accesses(line: &str) -> impl Iterator<Item = Access> {
    let read = || {
        let (kind, place) = line.split_at_checked(3)?;
        let (address, size) = place.split_once(',')?;
        let address = u64::from_str_radix(address, 16).ok()?;
        let last = address + size.parse::<u64>().ok()?.max(1) - 1;
        let (first, last) = (address >> LINE_BITS, last >> LINE_BITS);
        Some(match kind.trim() {
            "I" => [Some(Access::Instruction(address)), None],
            "L" | "S" | "M" => {
                let second = (first != last).then_some(Access::Line(last));
                [Some(Access::Line(first)), second]
            }
            _ => return None,
        })
    };
    read().into_iter().flatten().flatten()
}

fn lines_of_a_period(trace: &[Access], periods: u64, instructions: f64) -> Option<u64> {
    let mut times = BTreeMap::<u64, u64>::new();
    for access in trace {
        if let Access::Instruction(address) = access {
            *times.entry(*address).or_default() += 1;
        }
    }
    let markers = times.into_iter().filter(|&(_, times)| times == periods);
    let markers = markers.take(CANDIDATES);
    let medians = markers.map(|(marker, _)| median(between(trace, marker)));
    let is_round =
        |&(length, _): &Period| (length as f64 - instructions).abs() <= ALIKE * instructions;
    Some(medians.flatten().find(is_round)?.1)
}

/// What is between executions of the marker.
fn between(trace: &[Access], marker: u64) -> Vec<Period> {
    let mut periods = Vec::new();
    let mut instructions = 0;
    let mut lines: Option<HashSet<u64>> = None;
    for &access in trace {
        match access {
            Access::Instruction(address) => {
                if address == marker {
                    if let Some(lines) = &lines {
                        periods.push((instructions, lines.len() as u64));
                    }
                    lines = Some(HashSet::new());
                    instructions = 0;
                }
                instructions += 1;
            }
            Access::Line(line) => {
                if let Some(lines) = &mut lines {
                    lines.insert(line);
                }
            }
        }
    }
    periods
}

/// The median of each of the two.
fn median(periods: Vec<Period>) -> Option<Period> {
    let (mut lengths, mut lines): (Vec<_>, Vec<_>) = periods.into_iter().unzip();
    lengths.sort_unstable();
    lines.sort_unstable();
    let middle = lengths.len() / 2;
    Some((*lengths.get(middle)?, *lines.get(middle)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(text: &str) -> Vec<Access> {
        text.lines().flat_map(accesses).collect()
    }

    #[test]
    fn an_access_touches_the_lines_of_its_first_and_last_byte() {
        let text = "==7== Lackey, a tool\nI  0401ab70,3\n S 1fff0006f8,8\n L 1000003c,8\n M 40,4\n";
        let expected = [
            Access::Instruction(0x0401_ab70),
            Access::Line(0x1f_ff00_06f8 >> 6),
            Access::Line(0x40_0000),
            Access::Line(0x40_0001),
            Access::Line(1),
        ];
        assert_eq!(trace(text), expected);
        assert!(trace("==7==\n L x,8\n").is_empty());
    }

    #[test]
    fn the_lines_of_the_median_round_count() {
        // The instruction at 9 comes as often as the round, all at once.
        let mut text = "I  9,1\n".repeat(3);
        for lines in ["", " L 0,8\n L 40,8\n S 44,8\n", ""] {
            text += &format!("I  1,1\n L 0,8\nI  2,1\n{lines}I  2,1\nI  2,1\n");
        }
        let trace = trace(&text);
        assert_eq!(between(&trace, 1), [(4, 1), (4, 2)]);
        assert_eq!(lines_of_a_period(&trace, 3, 4.0), Some(2));
        assert_eq!(lines_of_a_period(&trace, 3, 400.0), None);
        assert_eq!(lines_of_a_period(&trace, 5, 4.0), None);
    }
}
