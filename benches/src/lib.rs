//! Benchmarks of Ganger's crates; see the `benches` folder.
