//! How many cache lines of data a round touches, the stack's included, and how many of its loads
//! wait for stores. Both are counted in a trace of the program's reads and writes.
//!
//! A round begins at an instruction that is executed once in each round. The trace shows this
//! instruction: it occurs as often as the rounds, and its distance is about the instructions of a
//! round. The median over the rounds counts, so that rare events do not.

use super::callgrind::tracing;
use super::waits::Stores;
use crate::Failure;
use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, BufReader};
use std::path::Path;

const LINE_BITS: u32 = 6;

/// How many periods are traced: as many as take no more than [`ROUNDS`]. Primes, because little
/// else has such a period.
const PERIODS: [u64; 3] = [251, 31, 7];
const ROUNDS: u64 = 8_192;

/// The limit of the difference between the instructions of the median period and of the mean
/// period, as a fraction.
const ALIKE: f64 = 0.2;

/// The number of instructions that are tried as the beginning of a round.
const CANDIDATES: usize = 128;

/// The costs of a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Period {
    instructions: u64,
    lines: u64,
    waits: u64,
}

/// The cache lines and waits of a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Touched {
    pub(super) lines: f64,
    /// Loads that wait for stores.
    pub(super) waits: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Instruction(u64),
    Line(u64),
    /// A load that waits for a store.
    Wait,
}

/// Returns the cache lines and waits of a round, if rounds can be told from each other.
pub(super) fn count(
    program: &Path,
    name: &str,
    period: u64,
    instructions: f64,
) -> Result<Option<Touched>, Failure> {
    let periods = PERIODS
        .into_iter()
        .find(|periods| periods * period <= ROUNDS);
    let periods = periods.unwrap_or(PERIODS[2]);
    let rounds = (periods * period).to_string();
    let mut child = tracing(program, &[name, &rounds]).spawn()?;
    let mut trace = Trace::default();
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).lines() {
            trace.add(&line?);
        }
    }
    let status = child.wait()?;
    if !status.success() {
        return Err(format!("`valgrind --tool=lackey … {name} {rounds}`: {status}").into());
    }
    let median = median_period(&trace.accesses, periods, instructions * period as f64);
    Ok(median.map(|median| Touched {
        lines: median.lines as f64 / period as f64,
        waits: median.waits as f64 / period as f64,
    }))
}

/// The trace so far.
#[derive(Default)]
struct Trace {
    accesses: Vec<Access>,
    stores: Stores,
}

impl Trace {
    /// Adds the content of a line: nothing, an instruction, or an access to a cache line or two.
    fn add(&mut self, line: &str) {
        let Some((kind, first, last)) = read(line) else {
            return;
        };
        if kind == "I" {
            self.stores.advance();
            self.accesses.push(Access::Instruction(first));
            return;
        }
        if kind != "S" && self.stores.has_to_wait(first, last) {
            self.accesses.push(Access::Wait);
        }
        if kind != "L" {
            self.stores.store(first, last);
        }
        let (first, last) = (first >> LINE_BITS, last >> LINE_BITS);
        self.accesses.push(Access::Line(first));
        if first != last {
            self.accesses.push(Access::Line(last));
        }
    }
}

/// Parses the kind of an access, and its first and last byte.
fn read(line: &str) -> Option<(&str, u64, u64)> {
    let (kind, place) = line.split_at_checked(3)?;
    let (address, size) = place.split_once(',')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let last = address + size.parse::<u64>().ok()?.max(1) - 1;
    let kind = kind.trim();
    matches!(kind, "I" | "L" | "S" | "M").then_some((kind, address, last))
}

fn median_period(trace: &[Access], periods: u64, instructions: f64) -> Option<Period> {
    let mut times = BTreeMap::<u64, u64>::new();
    for access in trace {
        if let Access::Instruction(address) = access {
            *times.entry(*address).or_default() += 1;
        }
    }
    let markers = times.into_iter().filter(|&(_, times)| times == periods);
    let markers = markers.take(CANDIDATES);
    let medians = markers.map(|(marker, _)| median(&between(trace, marker)));
    let is_round = |period: &Period| {
        let length = period.instructions as f64;
        (length - instructions).abs() <= ALIKE * instructions
    };
    medians.flatten().find(is_round)
}

/// Returns the periods between executions of the marker.
fn between(trace: &[Access], marker: u64) -> Vec<Period> {
    let mut periods = Vec::new();
    let mut lines = HashSet::new();
    let mut period: Option<Period> = None;
    for &access in trace {
        if access == Access::Instruction(marker) {
            periods.extend(period.map(|period| Period {
                lines: lines.len() as u64,
                ..period
            }));
            period = Some(Period::default());
            lines.clear();
        }
        let Some(period) = &mut period else {
            continue;
        };
        match access {
            Access::Instruction(_) => period.instructions += 1,
            Access::Wait => period.waits += 1,
            Access::Line(line) => {
                lines.insert(line);
            }
        }
    }
    periods
}

/// The median of each number.
fn median(periods: &[Period]) -> Option<Period> {
    let of = |number: fn(&Period) -> u64| {
        let mut numbers: Vec<u64> = periods.iter().map(number).collect();
        numbers.sort_unstable();
        numbers.get(numbers.len() / 2).copied()
    };
    Some(Period {
        instructions: of(|period| period.instructions)?,
        lines: of(|period| period.lines)?,
        waits: of(|period| period.waits)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(text: &str) -> Vec<Access> {
        let mut trace = Trace::default();
        text.lines().for_each(|line| trace.add(line));
        trace.accesses
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
    fn a_load_of_two_stores_waits() {
        let text = "I  1,1\n S 80,8\nI  2,1\n M 88,8\nI  3,1\n L 80,16\nI  4,1\n L 88,8\n";
        let waits = trace(text).into_iter().filter(|&it| it == Access::Wait);
        assert_eq!(waits.count(), 1);
    }

    #[test]
    fn the_median_round_counts() {
        // The instruction at 9 comes as often as the round, all at once.
        let mut text = "I  9,1\n".repeat(3);
        for more in ["", " S 0,4\n L 0,8\n L 40,8\n S 44,8\n", ""] {
            text += &format!("I  1,1\n L 0,8\nI  2,1\n{more}I  2,1\nI  2,1\n");
        }
        let trace = trace(&text);
        let period = |lines: u64, waits: u64| Period {
            instructions: 4,
            lines,
            waits,
        };
        assert_eq!(between(&trace, 1), [period(1, 0), period(2, 1)]);
        assert_eq!(median_period(&trace, 3, 4.0), Some(period(2, 1)));
        assert_eq!(median_period(&trace, 3, 400.0), None);
        assert_eq!(median_period(&trace, 5, 4.0), None);
    }
}
