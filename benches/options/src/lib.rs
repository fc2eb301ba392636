//! The options of `cargo xtask bench`, and the catalogue of its workloads.
//!
//! ```text
//! options          the command line
//! size, mode       what it chooses from
//! job              the arguments of a run, and its errors
//! sample           what a run answers: a line of JSON for each figure
//! catalog          what there is: workloads, peers, units, sizes, targets
//! specs            the workloads, a row each
//! ```
//!
//! The crate is separate from the driver because peers take minutes to build: help, the list, and
//! mistakes on the command line need none of them.

pub mod catalog;
pub mod job;
pub mod mode;
pub mod options;
pub mod sample;
pub mod size;
mod specs;
