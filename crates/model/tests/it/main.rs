//! The scheduler beside its specification: from random bytes, from the fuzzer's corpus, on threads.

mod corpus;
mod scheduler;
mod threads;
