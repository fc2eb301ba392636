//! Whether the program's memory grows without an end.
//!
//! **Problem.** Rounds differ, an allocator keeps memory, and the largest round so far leaves a
//! step that stays. A fixed limit, or a comparison of the first sample with the last, would give
//! false alarms, or none.
//!
//! **Rule.** The first samples are warming up. The rest is cut into blocks, and each block has its
//! median. Memory grows without an end when three things hold: almost every block is above the one
//! before, the growth exceeds a tolerance, and a good part of it is in the second half. A single
//! step, however large, does not count.

use ganger::prelude::Scheduler;
use serde::Serialize;
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// How much of the samples, in 100, is warming up.
const WARM_UP: usize = 30;
const BLOCKS: usize = 8;
/// The fewest samples of a block.
const FEWEST: usize = 6;
/// A soak that was shorter is not judged: all of it is warming up.
const SHORTEST: Duration = Duration::from_secs(100);
/// How many of the blocks have to be above the ones before.
const RISES: usize = BLOCKS - 2;
/// Growth up to this, and up to this part of the first block in 100, is none.
const TOLERANCE: u64 = 8 * MIB;
const TOLERANCE_PART: u64 = 15;
/// The most samples that are kept. Beyond that, every second one is dropped.
const MOST: usize = 1 << 14;

/// What has been sampled.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    samples: Vec<(Duration, u64)>,
    /// One sample in that many is kept; a power of two.
    rarely: u32,
    seen: u64,
}

/// The judgement on the samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Growth {
    /// Megabytes of resident memory after the last round, where the system says so.
    pub last_mib: Option<f64>,
    /// Megabytes of resident memory: the medians of blocks of equal length, after warming up. None
    /// when the soak was too short, or the system gives no figure.
    pub blocks_mib: Vec<f64>,
    /// How much the last is above the first, by the time between them.
    pub kib_per_minute: Option<f64>,
    /// Whether it grows without an end; none when that was not judged.
    pub grows: Option<bool>,
}

impl Memory {
    /// Notes the program's memory at that time, after the allocator has given back what it can.
    pub(crate) fn sample(&mut self, time: Duration) {
        if let Ok(scheduler) = Scheduler::builder().workers(1).build() {
            scheduler.release_memory();
        }
        if let Some(bytes) = resident() {
            self.add(time, bytes);
        }
    }

    fn add(&mut self, time: Duration, bytes: u64) {
        self.seen += 1;
        if !self.seen.is_multiple_of(1 << self.rarely) {
            return;
        }
        self.samples.push((time, bytes));
        if self.samples.len() >= MOST {
            self.rarely += 1;
            let mut nth = 0;
            self.samples.retain(|_| {
                nth += 1;
                nth % 2 == 0
            });
        }
    }

    /// Judges them.
    pub(crate) fn growth(&self) -> Growth {
        let last_mib = self.samples.last().map(|&(_, bytes)| rounded(bytes));
        let warm = &self.samples[self.samples.len() * WARM_UP / 100..];
        let lasted = self.samples.last().map_or(Duration::ZERO, |last| last.0);
        if warm.len() < BLOCKS * FEWEST || lasted < SHORTEST {
            return Growth {
                last_mib,
                ..Growth::default()
            };
        }
        let blocks: Vec<&[(Duration, u64)]> = (0..BLOCKS)
            .map(|nth| &warm[nth * warm.len() / BLOCKS..(nth + 1) * warm.len() / BLOCKS])
            .collect();
        let medians: Vec<u64> = blocks.iter().map(|block| median(block)).collect();
        let middle = |block: &[(Duration, u64)]| block[block.len() / 2].0.as_secs_f64();
        let minutes = (middle(blocks[BLOCKS - 1]) - middle(blocks[0])) / 60.0;
        let difference = signed(medians[BLOCKS - 1]) - signed(medians[0]);
        Growth {
            last_mib,
            blocks_mib: medians.iter().map(|&bytes| rounded(bytes)).collect(),
            kib_per_minute: Some((difference / 1024.0 / minutes * 10.0).round() / 10.0),
            grows: Some(grows(&medians)),
        }
    }
}

fn grows(medians: &[u64]) -> bool {
    let (first, last) = (medians[0], medians[BLOCKS - 1]);
    let growth = last.saturating_sub(first);
    let lately = last.saturating_sub(medians[BLOCKS / 2]);
    let rises = medians.windows(2).filter(|two| two[1] > two[0]).count();
    growth > TOLERANCE.max(first / 100 * TOLERANCE_PART) && rises >= RISES && lately >= growth / 4
}

fn median(block: &[(Duration, u64)]) -> u64 {
    let mut bytes: Vec<u64> = block.iter().map(|&(_, bytes)| bytes).collect();
    bytes.sort_unstable();
    bytes[bytes.len() / 2]
}

/// Sizes have fewer bits than a float's fraction.
#[expect(clippy::cast_precision_loss, reason = "exact up to some petabytes")]
fn signed(bytes: u64) -> f64 {
    bytes as f64
}

fn rounded(bytes: u64) -> f64 {
    (signed(bytes) / signed(MIB) * 100.0).round() / 100.0
}

/// What the program has of the machine's memory, in bytes; none where the system does not say.
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

    /// A sample a second for that many seconds.
    fn memory(seconds: u64, mut bytes: impl FnMut(u64) -> u64) -> Memory {
        let mut memory = Memory::default();
        for second in 0..seconds {
            memory.add(Duration::from_secs(second), bytes(second));
        }
        memory
    }

    fn grows(seconds: u64, bytes: impl FnMut(u64) -> u64) -> Option<bool> {
        memory(seconds, bytes).growth().grows
    }

    #[test]
    fn noise_is_no_growth() {
        for seed in 0..200 {
            let mut random = Rng::with_seed(seed);
            let noise = |_| 40 * MIB + random.u64(0..60 * MIB);
            assert_eq!(grows(300, noise), Some(false), "seed {seed}");
        }
    }

    #[test]
    fn a_step_or_some_are_no_growth() {
        for at in 0..300 {
            let step = |second| (40 + if second < at { 0 } else { 100 }) * MIB;
            assert_eq!(grows(300, step), Some(false), "at {at}");
        }
        let steps = |second| (40 + second / 100 * 30) * MIB;
        assert_eq!(grows(300, steps), Some(false));
    }

    #[test]
    fn warming_up_is_no_growth() {
        let warms_up = |second: u64| 40 * MIB + 60 * MIB * second.min(80) / 80;
        assert_eq!(grows(300, warms_up), Some(false));
        let slower_and_slower = |second: u64| 100 * MIB - 60 * MIB * 50 / (50 + second * second);
        assert_eq!(grows(300, slower_and_slower), Some(false));
    }

    #[test]
    fn a_leak_is_found_below_the_noise() {
        for seed in 0..200 {
            let mut random = Rng::with_seed(seed);
            let leak = |second| 40 * MIB + second * MIB / 4 + random.u64(0..10 * MIB);
            assert_eq!(grows(300, leak), Some(true), "seed {seed}");
        }
        let growth = memory(600, |second| 40 * MIB + second * MIB / 4).growth();
        assert_eq!(growth.kib_per_minute, Some(15_360.0));
        assert_eq!(growth.blocks_mib.len(), BLOCKS);
    }

    #[test]
    fn a_short_soak_is_not_judged() {
        assert_eq!(grows(90, |second| second * 100 * MIB), None);
        assert_eq!(memory(0, |_| 0).growth(), Growth::default());
    }

    #[test]
    fn many_samples_are_thinned_out() {
        let memory = memory(100_000, |second| 40 * MIB + second * 1024);
        assert!(memory.samples.len() < MOST);
        assert_eq!(memory.growth().grows, Some(true));
        assert!(memory.growth().last_mib > Some(130.0));
    }

    #[test]
    fn the_system_says_what_the_program_has() {
        assert_eq!(resident().is_some(), cfg!(target_os = "linux"));
    }
}
