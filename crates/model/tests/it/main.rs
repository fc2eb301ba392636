//! The scheduler beside its specification: from random bytes, from the fuzzer's corpus, on threads;
//! what the guide to the simulation shows; and what stands above the scheduler beside
//! specifications of its own.

mod corpus;
mod ends;
mod guide;
mod incarnations;
mod jobs;
mod scheduler;
mod threads;
mod trees;

/// So many cases, and more where the tests are to run for longer.
fn cases(count: u32) -> u32 {
    let factor = std::env::var("GANGER_STRESS").map_or(1, |text| text.parse().unwrap());
    count * factor
}
