//! The account of a receiver.

use std::time::SystemTime;

/// The number of the last message: the receiver answers with its account.
pub const LAST: u64 = u64::MAX;

/// Creates a message: its number, the time of its sending if it counts, and zeros.
pub fn block(number: u64, sent: u64, size: usize) -> Vec<u8> {
    let mut block = vec![0; size];
    block[..8].copy_from_slice(&number.to_le_bytes());
    block[8..16].copy_from_slice(&sent.to_le_bytes());
    block
}

/// Returns the time, in nanoseconds, the same in all programs of a machine.
///
/// # Panics
/// Before 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::UNIX_EPOCH.elapsed();
    let nanos = since.map(|since| u64::try_from(since.as_nanos()));
    nanos.expect("it is later than 1970").expect("and soon")
}

/// The messages of a receiver so far.
#[derive(Debug, Default)]
pub struct Tally {
    count: u64,
    is_wrong: bool,
    late: Vec<u64>,
}

impl Tally {
    /// Notes a message. Returns the account at the last message of a series: the number of
    /// messages, 0 if a message was missing or out of order, and the 50th and 99th percentile of
    /// the times from send to receipt. The next message begins a new series.
    pub fn note(&mut self, block: &[u8]) -> Option<[u64; 3]> {
        let field =
            |at: usize| u64::from_le_bytes(block[at..at + 8].try_into().unwrap_or_default());
        let (number, sent) = (field(0), field(8));
        if number == LAST {
            return Some(std::mem::take(self).account());
        }
        self.is_wrong |= number != self.count;
        self.count += 1;
        if sent > 0 {
            self.late.push(now().saturating_sub(sent));
        }
        None
    }

    /// Returns whether all messages so far have come in their order.
    pub(crate) fn is_right(&self) -> bool {
        !self.is_wrong
    }

    fn account(mut self) -> [u64; 3] {
        let [p50, p99] = percentiles(&mut self.late);
        [if self.is_wrong { 0 } else { self.count }, p50, p99]
    }
}

/// Returns the 50th and the 99th percentile; 0 of nothing.
pub fn percentiles(times: &mut [u64]) -> [u64; 2] {
    times.sort_unstable();
    [50, 99].map(|percent| times.get(times.len() * percent / 100).copied().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_or_late_message_is_noticed() {
        let account = |numbers: &[u64]| {
            let mut tally = Tally::default();
            for &number in numbers {
                assert_eq!(tally.note(&block(number, 0, 64)), None);
            }
            tally.note(&block(LAST, 0, 64)).unwrap()[0]
        };
        assert_eq!(account(&[0, 1, 2]), 3);
        assert_eq!(account(&[0, 2]), 0);
        assert_eq!(account(&[1, 0]), 0);
        assert_eq!(account(&[0, 0, 1]), 0);
    }

    #[test]
    fn percentiles_are_of_the_sorted_times() {
        let mut times: Vec<_> = (0..1_000).rev().collect();
        assert_eq!(percentiles(&mut times), [500, 990]);
        assert_eq!(percentiles(&mut []), [0, 0]);
    }
}
