//! A worker in several activities after one another, and a concurrent reader.
//!
//! The reader's clock stands at the last of the worker's moments. So the times have this sum at any
//! time, and a reader of half a change sees another sum.

use crate::base::shares::{Shares, Spends};
use ganger_sync::sync::Arc;
use ganger_sync::{model, thread};

#[test]
fn a_reader_sees_each_moment_once() {
    model::check(3, || {
        let shares = Arc::new(Shares::new());
        shares.spend(Spends::Work, 0);
        let worker = {
            let shares = Arc::clone(&shares);
            thread::spawn(move || {
                shares.spend(Spends::Sleep, 3);
                shares.spend(Spends::Work, 5);
            })
        };
        let of = |it: &crate::base::shares::WorkerTimes| (it.busy.as_nanos(), it.asleep.as_nanos());
        let (first, second) = (of(&shares.times(5)), of(&shares.times(5)));
        for seen in [first, second] {
            assert!([(5, 0), (3, 2)].contains(&seen), "{seen:?}");
        }
        assert!(first >= second, "a sleep that was seen is forgotten");
        worker.join().unwrap();
        assert_eq!(of(&shares.times(5)), (3, 2));
        assert_eq!(of(&shares.times(9)), (7, 2));
    });
}
