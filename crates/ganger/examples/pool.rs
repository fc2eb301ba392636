//! A supervised pool: callers on threads, panicking workers, second tries of jobs.
//! `cargo run -p ganger --example pool`

use ganger::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

fn main() -> Result<(), BoxError> {
    println!("the sum of all squares: {}", sum_of_squares(8, 1_000)?);
    Ok(())
}

/// Has `callers` callers square the numbers up to `most`, by a pool of unreliable workers.
pub(crate) fn sum_of_squares(callers: u64, most: u64) -> Result<u64, BoxError> {
    let scheduler = Scheduler::start_default()?;
    let square = || {
        let mut left = 90;
        move |number: u64| {
            left -= 1;
            assert!(left > 0, "this worker is worn out");
            Ok(number * number)
        }
    };
    let pool = Pool::new(4, square)
        .retries(3)
        .intensity(1_000, Duration::from_secs(1));
    let pool = pool.start(&scheduler)?;
    let sum = AtomicU64::new(0);
    thread::scope(|scope| {
        for caller in 0..callers {
            let (squares, sum) = (pool.remote(), &sum);
            scope.spawn(move || {
                for number in (1..=most).filter(|number| number % callers == caller) {
                    let square = squares.call(number).wait().unwrap_or(0);
                    sum.fetch_add(square, Ordering::Relaxed);
                }
            });
        }
    });
    println!("{}\n{:?}", pool.tree(), pool.stats());
    pool.stop();
    Ok(sum.into_inner())
}
