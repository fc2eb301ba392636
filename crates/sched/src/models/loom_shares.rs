//! A worker that goes from one thing to the next, and a reader beside it.
//!
//! The worker's times are chosen so that each moment is spent on one thing, and the sum is the
//! moment. So a reader that sees a part of a change sees a wrong sum, or more than the next read.

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
        // The reader's clock is behind all that the worker does: no time is added.
        let (first, second) = (shares.times(0), shares.times(0));
        let of = |it: &crate::base::shares::WorkerTimes| (it.busy.as_nanos(), it.asleep.as_nanos());
        for seen in [of(&first), of(&second)] {
            assert!([(0, 0), (3, 0), (3, 2)].contains(&seen), "{seen:?}");
        }
        assert!(of(&first) <= of(&second), "time goes back");
        worker.join().unwrap();
        assert_eq!(of(&shares.times(5)), (3, 2));
        assert_eq!(of(&shares.times(9)), (7, 2));
    });
}
