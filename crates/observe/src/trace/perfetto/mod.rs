//! Files in Perfetto's format: protobuf messages of the schema in
//! <https://github.com/google/perfetto/tree/main/protos/perfetto/trace>, written and read by hand.
//!
//! The file is a `Trace`: packets in sequence. They come in this order, all on a single packet
//! sequence:
//! 1. the descriptor of the process, which is the scheduler;
//! 2. an instant on its track, with the version of this format, the window, and how many events are
//!    missing;
//! 3. the descriptors of the other tracks;
//! 4. the entries, by their time. A packet has its new texts.

mod fields;
mod read;
mod write;

pub use read::ReadTraceError;

pub(super) use read::{SHOWN, check_first, read};
pub(super) use write::write;
