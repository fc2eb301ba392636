//! Whether the program's memory grows without an end.
//!
//! **Problem.** Rounds differ, caches fill, and the largest round so far leaves a lasting step.
//! Resident memory includes memory that the system's allocator keeps. So a small leak is lost in
//! it.
//!
//! **Rule.** The bytes in use are sampled after each round, when no process is alive and all caches
//! are empty. The first samples are warming up. The rest is cut into blocks, and each block has its
//! median. Memory grows when the slope of the medians exceeds `MOST_SLOPE` in the first half and
//! in the second half, and the whole growth exceeds `TOLERANCE`. A single step, however large,
//! does not count. Resident memory is only reported.

use crate::heap::live;
use serde::Serialize;
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// How much of the samples, in 100, is warming up.
const WARM_UP: usize = 30;
const BLOCKS: usize = 8;
/// The fewest samples of a block.
const FEWEST: usize = 6;
/// Growth up to this many bytes for each thousand processes is none.
const MOST_SLOPE: f64 = 50.0;
/// Growth up to this many bytes counts as none: caches differ by this much at two quiet points.
const TOLERANCE: f64 = 262_144.0;
/// The limit of kept samples. Beyond the limit, every second sample is dropped.
const MOST: usize = 1 << 12;

/// The samples, thinned out.
#[derive(Debug)]
pub(crate) struct Memory {
    samples: Vec<Sample>,
    /// Keeps each sample whose number is a multiple of this power of two.
    rarely: u32,
    seen: u64,
}

/// The program at a quiet point.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    time: Duration,
    /// Started so far.
    processes: u64,
    /// Bytes in use.
    live: u64,
}

/// The judgement on the samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Growth {
    /// Megabytes of resident memory after the last round, where the system says so.
    pub resident_mib: Option<f64>,
    /// Kilobytes in use: the medians of blocks of equal length, after warming up. None when the
    /// soak was too short.
    pub blocks_kib: Vec<f64>,
    /// How many bytes more are in use for each thousand processes.
    pub bytes_per_thousand: Option<f64>,
    /// How much the last block is above the first, by the time between them.
    pub kib_per_minute: Option<f64>,
    /// Whether memory grows without an end; none if not judged.
    pub grows: Option<bool>,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            // At once, because a sample counts it.
            samples: Vec::with_capacity(MOST),
            rarely: 0,
            seen: 0,
        }
    }
}

impl Memory {
    /// Notes the bytes in use, at a quiet point.
    pub(crate) fn sample(&mut self, time: Duration, processes: u64) {
        let live = live();
        self.add(Sample {
            time,
            processes,
            live,
        });
    }

    fn add(&mut self, sample: Sample) {
        self.seen += 1;
        if !self.seen.is_multiple_of(1 << self.rarely) {
            return;
        }
        self.samples.push(sample);
        if self.samples.len() >= MOST {
            self.rarely += 1;
            let mut nth = 0;
            self.samples.retain(|_| {
                nth += 1;
                nth % 2 == 0
            });
        }
    }

    /// Judges the growth by these samples.
    pub(crate) fn growth(&self) -> Growth {
        let resident_mib = resident().map(|bytes| rounded(bytes, MIB));
        let warm = &self.samples[self.samples.len() * WARM_UP / 100..];
        if warm.len() < BLOCKS * FEWEST {
            return Growth {
                resident_mib,
                ..Growth::default()
            };
        }
        let blocks: [Sample; BLOCKS] = std::array::from_fn(|nth| {
            median(&warm[nth * warm.len() / BLOCKS..(nth + 1) * warm.len() / BLOCKS])
        });
        let (first, last) = (blocks[0], blocks[BLOCKS - 1]);
        let minutes = (last.time - first.time).as_secs_f64() / 60.0;
        let difference = signed(last.live) - signed(first.live);
        let tenths = |number: f64| (number * 10.0).round() / 10.0;
        Growth {
            resident_mib,
            blocks_kib: blocks.iter().map(|it| rounded(it.live, 1024)).collect(),
            bytes_per_thousand: Some(tenths(slope(&blocks))),
            kib_per_minute: Some(tenths(difference / 1024.0 / minutes)),
            grows: Some(grows(&blocks)),
        }
    }
}

fn grows(blocks: &[Sample; BLOCKS]) -> bool {
    let (first, second) = blocks.split_at(BLOCKS / 2);
    let processes = signed(blocks[BLOCKS - 1].processes - blocks[0].processes);
    slope(first) > MOST_SLOPE
        && slope(second) > MOST_SLOPE
        && slope(blocks) * processes / 1000.0 > TOLERANCE
}

/// Returns by how many bytes they rise for each thousand processes: the least squares' line.
fn slope(blocks: &[Sample]) -> f64 {
    let count = signed(blocks.len() as u64);
    let mean = |of: fn(&Sample) -> u64| blocks.iter().map(|it| signed(of(it))).sum::<f64>() / count;
    let (processes, live) = (mean(|it| it.processes), mean(|it| it.live));
    let (mut products, mut squares) = (0.0, 0.0);
    for block in blocks {
        let from_mean = signed(block.processes) - processes;
        products += from_mean * (signed(block.live) - live);
        squares += from_mean * from_mean;
    }
    if squares > 0.0 {
        1000.0 * products / squares
    } else {
        0.0
    }
}

/// Returns the middle of a block, with the median of the bytes.
fn median(block: &[Sample]) -> Sample {
    let mut live: Vec<u64> = block.iter().map(|it| it.live).collect();
    live.sort_unstable();
    Sample {
        live: live[live.len() / 2],
        ..block[block.len() / 2]
    }
}

/// Returns the number as a float. Sizes have fewer bits than a float's fraction.
#[expect(clippy::cast_precision_loss, reason = "exact up to some petabytes")]
fn signed(bytes: u64) -> f64 {
    bytes as f64
}

fn rounded(bytes: u64, unit: u64) -> f64 {
    (signed(bytes) / signed(unit) * 100.0).round() / 100.0
}

/// Returns the program's resident memory, in bytes; none if the system does not say.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    const KIB: u64 = 1024;

    /// Makes a sample for each round, with `thousands` thousand processes each.
    fn memory(rounds: u64, thousands: u64, mut live: impl FnMut(u64) -> u64) -> Memory {
        let mut memory = Memory::default();
        for round in 0..rounds {
            memory.add(Sample {
                time: Duration::from_secs(round),
                processes: round * thousands * 1000,
                live: live(round),
            });
        }
        memory
    }

    fn grows(rounds: u64, live: impl FnMut(u64) -> u64) -> Option<bool> {
        memory(rounds, 10, live).growth().grows
    }

    #[test]
    fn noise_is_no_growth() {
        for seed in 0..200 {
            let mut random = Rng::with_seed(seed);
            let noise = |_| 400 * KIB + random.u64(0..600 * KIB);
            assert_eq!(grows(300, noise), Some(false), "seed {seed}");
        }
    }

    #[test]
    fn a_step_is_no_growth() {
        for at in 0..300 {
            let step = |round| (40 + if round < at { 0 } else { 100 }) * MIB;
            assert_eq!(grows(300, step), Some(false), "at {at}");
        }
    }

    #[test]
    fn warming_up_is_no_growth() {
        let warms_up = |round: u64| MIB + 6 * MIB * round.min(80) / 80;
        assert_eq!(grows(300, warms_up), Some(false));
        let slower_and_slower = |round: u64| 10 * MIB - 6 * MIB * 50 / (50 + round * round);
        assert_eq!(grows(300, slower_and_slower), Some(false));
    }

    #[test]
    fn a_hundred_bytes_a_thousand_processes_are_found_below_the_noise() {
        for seed in 0..200 {
            let mut random = Rng::with_seed(seed);
            let leak = |round| 400 * KIB + round * 10 * 100 + random.u64(0..600 * KIB);
            assert_eq!(grows(2_000, leak), Some(true), "seed {seed}");
        }
        let growth = memory(600, 10, |round| round * 10 * 100).growth();
        assert_eq!(growth.bytes_per_thousand, Some(100.0));
        assert_eq!(growth.kib_per_minute, Some(58.6));
        assert_eq!(growth.blocks_kib.len(), BLOCKS);
    }

    #[test]
    fn a_growth_of_less_than_caches_differ_by_is_none() {
        assert_eq!(grows(300, |round| round * KIB), Some(false));
        assert_eq!(grows(600, |round| round * KIB), Some(true));
        // Less than 50 bytes a thousand processes.
        assert_eq!(grows(100_000, |round| round * 400), Some(false));
    }

    #[test]
    fn a_short_soak_is_not_judged() {
        assert_eq!(grows(60, |round| round * 100 * MIB), None);
        assert_eq!(memory(0, 1, |_| 0).growth().grows, None);
    }

    #[test]
    fn many_samples_are_thinned_out() {
        let memory = memory(100_000, 10, |round| 40 * MIB + round * KIB);
        assert!(memory.samples.len() < MOST && memory.samples.capacity() == MOST);
        assert_eq!(memory.growth().grows, Some(true));
    }

    #[test]
    fn the_system_says_what_the_program_has() {
        assert_eq!(resident().is_some(), cfg!(target_os = "linux"));
        assert_eq!(
            Memory::default().growth().resident_mib.is_some(),
            cfg!(target_os = "linux")
        );
    }
}
