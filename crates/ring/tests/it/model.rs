//! Random pushes and copies, compared with a plain queue.

use ganger_ring::ring;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::VecDeque;

/// The expected records of a ring: the newest, for all slots but the next.
struct Plain {
    most: usize,
    lost: u64,
    records: VecDeque<[u64; 3]>,
}

impl Plain {
    fn push(&mut self, record: [u64; 3]) {
        self.records.push_back(record);
        if self.records.len() > self.most {
            self.records.pop_front();
            self.lost += 1;
        }
    }
}

proptest! {
    #[test]
    fn any_pushes_and_copies(
        bytes in 0_usize..1_000,
        runs in vec(vec(any::<[u64; 3]>(), 0..60), 0..8),
    ) {
        let (writer, reader) = ring::<3>(bytes);
        let mut plain = Plain { most: reader.slots() - 1, lost: 0, records: VecDeque::new() };
        prop_assert!(reader.slots() == 2 || reader.slots() * 24 <= bytes);
        prop_assert!(reader.slots() * 48 > bytes);
        for run in runs {
            for record in run {
                writer.push(record);
                plain.push(record);
            }
            let snapshot = reader.snapshot();
            prop_assert_eq!(snapshot.lost, plain.lost);
            prop_assert_eq!(&snapshot.records, plain.records.make_contiguous());
            prop_assert_eq!(reader.written(), plain.lost + plain.records.len() as u64);
        }
    }
}
