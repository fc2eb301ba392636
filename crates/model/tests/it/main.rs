//! The scheduler, compared with its specification: from random bytes, from the fuzzer's corpus, on
//! threads; the report in the guide to the simulation; and the crates above the scheduler, compared
//! with specifications of their own.

mod corpus;
mod counts;
mod ends;
mod guide;
mod incarnations;
mod jobs;
mod scheduler;
mod threads;
mod trees;

/// Returns the number of cases, more for longer test runs.
fn cases(count: u32) -> u32 {
    let factor = std::env::var("GANGER_STRESS").map_or(1, |text| text.parse().unwrap());
    count * factor
}
