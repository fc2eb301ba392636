//! Queues from many threads to a single thread, side by side: a trait, an implementation for each,
//! and workloads that are generic over the trait and over the message.
//!
//! ```text
//! traits, payload           what a workload may ask of a queue, and what it sends
//! ganger, peers             the queues
//! one_thread, drain,        a workload each
//!   push_all, blocking, heap
//! bounded                   another one, with channels of its own
//! producers                 a workload, and the threads of those that have several
//! counting                  an allocator that counts
//! contest, group            the queues that take part, and the workloads
//! ```
//!
//! The program is `cargo bench -p ganger-benches --bench mpsc_peers`.

mod blocking;
mod bounded;
mod contest;
mod counting;
mod drain;
mod ganger;
mod group;
mod heap;
mod one_thread;
mod payload;
mod peers;
mod producers;
mod push_all;
mod traits;

pub use blocking::Blocking;
pub use bounded::Bounded;
pub use contest::{MAILBOXES, Workload, contest};
pub use counting::{Counting, Counts, counted};
pub use drain::Drain;
pub use ganger::{Ganger, Queued};
pub use group::Group;
pub use heap::Heap;
pub use one_thread::OneThread;
pub use payload::Payload;
pub use producers::Producers;
pub use push_all::PushAll;
pub use traits::{Drains, Mailbox, Waits};
