//! The scheduler beside its specification: from random bytes, from the fuzzer's corpus, on threads;
//! and what the guide to the simulation shows.

mod corpus;
mod guide;
mod scheduler;
mod threads;
