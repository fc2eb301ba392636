//! The options of `cargo xtask bench`, and the catalogue of its workloads.
//!
//! ```text
//! options          the command line
//! size, mode,      what it chooses from
//! threshold
//! job              the arguments of a run, and its errors
//! sample           what a run answers: a line of JSON for each figure
//! catalog          what there is: workloads, peers, units, sizes, targets
//! specs,           the workloads, one by one
//! cluster_specs,
//! depend_specs,
//! task_specs,
//! wake_specs
//! queue_figures,   what some of them measure
//! time_figures
//! ```
//!
//! The crate is separate from the driver because peers take minutes to build: help, the list, and
//! mistakes on the command line need none of them.

pub mod catalog;
mod cluster_specs;
mod depend_specs;
pub mod job;
pub mod mode;
pub mod options;
mod queue_figures;
pub mod sample;
pub mod size;
mod specs;
mod task_specs;
pub mod threshold;
mod time_figures;
mod wake_specs;
