//! What a contest does.

/// Senders send the values to receivers, by a single channel. With no receivers, each of four
/// senders has a channel of its own, and a single process receives by a select of these.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    pub(super) senders: u64,
    pub(super) receivers: usize,
    pub(super) capacity: usize,
    pub(super) values: u64,
}
