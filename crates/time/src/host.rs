//! The calls of timers to their scheduler.
//!
//! **Problem.** The threads of the scheduler wait for timers and fire them. The timers are a crate
//! below the scheduler: they know it as a [`TimerHost`] alone.
//!
//! **Protocol.** Timers are in *shards*: each worker has a shard, and all other threads share a
//! shard, each behind a lock of its own.
//! 1. A thread adds a timer at its own shard ([`TimerHost::own_shard`]). Under the shard's lock the
//!    thread says when the shard's earliest timer is due ([`TimerHost::set_due`]). When the timer
//!    is earlier than before, the thread [announces](TimerHost::announce) it without the lock.
//! 2. Any thread may take a timer away at any shard. Under the lock the thread says when the
//!    shard's earliest timer is due from then on.
//! 3. A thread of the scheduler calls [`Shards::fire`] when a shard has a due timer. The call takes
//!    out the due timers, says under the lock when the next timer is due, and wakes processes
//!    without the lock.
//!
//! [`Shards::fire`]: crate::internal::Shards::fire

use ganger_proc_api::{BoxError, Command, Completer, Instant, Pid};
use std::any::Any;
use std::num::NonZeroU16;
use std::sync::Arc;

/// The cause of a message, which only the host understands.
pub type Cause = Arc<dyn Any + Send + Sync>;

/// A scheduler, as its timers see it.
///
/// The timers call all methods except [`carry_out`](Self::carry_out) and
/// [`send_held`](Self::send_held) under the lock of a shard or right after it. These methods call
/// no code of users.
pub trait TimerHost: Send + Sync {
    /// Returns the time.
    fn now(&self) -> Instant;

    /// Returns the shard of the calling thread.
    fn own_shard(&self) -> ShardId;

    /// Says when the shard's earliest timer is due. The caller holds the shard's lock. Returns
    /// whether `at` is earlier than before.
    ///
    /// A thread sets an earlier moment only at its own shard, and then [announces](Self::announce)
    /// it.
    #[must_use = "an earlier timer must be announced"]
    fn set_due(&self, shard: ShardId, at: Instant) -> bool;

    /// Announces that the caller's own shard has a timer that is due earlier than all before. The
    /// caller holds no lock.
    fn announce(&self, at: Instant);

    /// Announces a timer as [`announce`](Self::announce) does, in a turn that is about to end: the
    /// worker covers the timer before its next turn. So no thread is woken for a worker that is
    /// about to sleep until then.
    fn announce_in_turn(&self, at: Instant);

    /// Sends a message that the shard keeps under a number, and gives to the process that is about
    /// to be shown it: see [`Shards::take_envelope`]. Until then the shard may take the message
    /// back. Returns `false` when the message was refused: the shard then drops the message, if it
    /// still has it. Never blocks.
    ///
    /// [`Shards::take_envelope`]: crate::internal::Shards::take_envelope
    #[must_use = "a refused message is counted"]
    fn send_held(&self, target: Pid, ticket: Ticket) -> bool;

    /// Sends a message with its cause, as [`send_held`](Self::send_held) does without.
    #[must_use = "a refused message is counted"]
    fn send_caused(&self, target: Pid, ticket: Ticket, cause: Cause) -> bool {
        let _ = cause;
        self.send_held(target, ticket)
    }

    /// Has a command carried out whose answer the completer takes.
    ///
    /// # Errors
    /// The errors of the command's handler. Without a handler, the completer gets the error.
    fn carry_out(&self, command: Command, completer: Completer) -> Result<(), BoxError>;
}

/// Names a shard of a scheduler's timers: each worker has a shard, and all other threads share a
/// shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShardId(NonZeroU16);

impl ShardId {
    /// The shard of all threads other than the workers.
    pub const OUTSIDE: Self = Self(NonZeroU16::MIN);

    /// Returns the shard of the worker with this index.
    ///
    /// # Panics
    /// When the index is above the most workers.
    #[must_use]
    #[inline]
    pub fn of_worker(index: usize) -> Self {
        Self::from_index(index + 1)
    }

    /// Returns the shard at this place among all shards; place zero is [`OUTSIDE`](Self::OUTSIDE).
    ///
    /// # Panics
    /// When the index is above the most shards.
    #[must_use]
    #[inline]
    pub fn from_index(index: usize) -> Self {
        let number = u16::try_from(index + 1).ok().and_then(NonZeroU16::new);
        Self(number.expect("a scheduler has at most 8,193 shards"))
    }

    /// Returns the shard's place among all shards.
    #[must_use]
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0.get()) - 1
    }
}

/// Names an entry that a shard keeps for a process: the completer of a yield, or a sent message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// The shard.
    pub shard: ShardId,
    /// The shard's key of the entry.
    pub key: u64,
}
