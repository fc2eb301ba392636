//! A thief that finds nothing.

use super::contest::Workload;
use super::traits::{Deque, Stealer};
use crate::contest::{Run, nanoseconds};
use std::hint::black_box;
use std::time::Instant;

/// The time of an attempt to steal from an empty deque.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// How many attempts.
    pub attempts: u64,
}

impl Workload for Probe {
    fn name(&self) -> String {
        "steal from an empty deque".to_owned()
    }

    fn metrics(&self) -> &'static [&'static str] {
        &["ns"]
    }

    fn prepare<D: Deque>(&self) -> Run {
        let Self { attempts } = *self;
        Box::new(move || {
            let (deque, own) = (D::with_room(64), D::with_room(64));
            let stealer = deque.stealer();
            let start = Instant::now();
            let stolen = probe(&stealer, &own, attempts);
            let time = start.elapsed();
            assert_eq!(stolen, 0);
            deque.push(7);
            assert_eq!(probe(&stealer, &own, 1), 7, "it looks at this deque");
            vec![nanoseconds(time, attempts)]
        })
    }
}

/// Returns the sum of the stolen items.
#[inline(never)]
fn probe<D: Deque>(stealer: &D::Stealer, own: &D, attempts: u64) -> u64 {
    let mut sum = 0;
    for _ in 0..attempts {
        sum += black_box(stealer).steal(own).unwrap_or(0);
    }
    sum
}
