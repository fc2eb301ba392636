//! Work-stealing deques side by side: a trait, an implementation for each, and workloads that are
//! generic over the trait.
//!
//! ```text
//! traits                    what a workload may ask of a deque
//! ganger, crossbeam, st3    the deques
//! push_pop, steal, probe,   a workload each
//!   owner, fork_join
//! contest, group            the deques that take part, and the workloads
//! ```
//!
//! The program is `cargo bench -p ganger-benches --bench deque_peers`.

mod contest;
mod crossbeam;
mod fork_join;
mod ganger;
mod group;
mod owner;
mod probe;
mod push_pop;
mod st3;
mod steal;
mod traits;

pub use contest::{DEQUES, Workload, contest};
pub use crossbeam::Crossbeam;
pub use fork_join::{Fib, ForkJoin, Job, Tree};
pub use ganger::Ganger;
pub use group::Group;
pub use owner::{Owner, Prowl};
pub use probe::Probe;
pub use push_pop::PushPop;
pub use st3::St3;
pub use steal::{Filled, StealHalf};
pub use traits::{BATCH, Deque, Stealer};
