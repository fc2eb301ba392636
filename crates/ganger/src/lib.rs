#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
//! # The items by theme
//!
//! - **processes**: [`Actor`], [`Process`], [`actor_fn`], [`process_fn`], [`Context`],
//!   [`ContextExt`], [`StepOutput`]
//! - **the events of a step**: [`Events`], [`Event`], [`Completion`], [`ExitNotice`],
//!   [`CancelReason`]
//! - **running them**: [`Scheduler`], [`Builder`], [`Handle`], [`WeakHandle`], [`Runtime`],
//!   [`Spawner`], [`Lifecycle`]
//! - **sending**: [`Address`], [`Recipient`], [`Message`], [`Payload`], [`SendError`],
//!   [`SendAsync`]
//! - **asking a process**: [`Call`], [`Reply`], [`Answer`]
//! - **commands**: [`TypedCommand`], [`Asked`], [`Handler`], [`Completer`], [`Command`],
//!   [`CommandId`], [`CommandError`], [`commands`]
//! - **failures and refusals**: [`FailureReport`], [`Failure`], [`SendErrorKind`], [`EndKind`],
//!   [`CallRefused`], [`NotStarted`], [`StoppedProcess`]
//! - **the end of a process**: [`ProcessHandle`], [`ExitReason`], [`ExitCause`], [`StopReport`]
//! - **a replacement for a process**: [`UpgradeRequest`], [`Factory`], [`UpgradeError`]
//! - **names and places**: [`Pid`], [`HostName`], [`NodeName`], [`Symbol`], [`Envelope`]
//! - **several schedulers and nodes**: [`Router`], [`Node`], [`EnvelopeReceiver`], [`ChannelHost`],
//!   [`Inbox`]
//! - **looking at a running scheduler**: [`Stats`], [`WorkerStats`], [`ProcessInfo`], [`Dump`],
//!   [`LongStep`]
//! - **for crates that add to the scheduler**: [`SystemEvent`], [`ContextBackend`],
//!   [`CompletionSink`], [`EventQueue`]
//! - **libraries of their own**: [`deque`], [`mpsc`], [`sim`]
//!
//! [`prelude`] has the names for most programs. [`mpsc`] and [`deque`] know nothing of processes,
//! and use the usual names of such libraries: a [`mpsc::SendError`] is of a channel, and a
//! [`deque::Worker`] is the owner's end of a deque.

#[doc(inline)]
pub use ganger_proc_api::*;
#[cfg(feature = "relay")]
#[doc(inline)]
pub use ganger_relay::*;
#[cfg(all(feature = "sched", feature = "serde"))]
pub use ganger_sched::crossing;
#[cfg(feature = "sched")]
#[doc(hidden)]
pub use ganger_sched::internal;
#[cfg(feature = "sched")]
#[doc(inline)]
pub use ganger_sched::*;

/// Questions that are asked again, and done once.
#[cfg(feature = "again")]
#[doc(inline)]
pub use ganger_again as again;
/// Channels, select, watch and broadcast.
#[cfg(feature = "channel")]
#[doc(inline)]
pub use ganger_channel as channel;
/// A scheduler as a node of a cluster.
#[cfg(feature = "cluster")]
#[doc(inline)]
pub use ganger_cluster as cluster;
/// Nodes that connect to each other by TCP, with TLS or a cookie: an engine of [`cluster`].
#[cfg(feature = "cluster")]
#[doc(inline)]
pub use ganger_cluster_direct as direct;
/// The work-stealing deque: a library of its own.
#[cfg(feature = "deque")]
#[doc(inline)]
pub use ganger_deque as deque;
/// Processes by key, evicted when idle.
#[cfg(feature = "keyed")]
#[doc(inline)]
pub use ganger_keyed as keyed;
/// Links, monitors that can be taken back, names and groups.
#[cfg(feature = "link")]
#[doc(inline)]
pub use ganger_link as link;
/// Locks, semaphores and cancellation trees.
#[cfg(feature = "lock")]
#[doc(inline)]
pub use ganger_lock as lock;
/// The mailbox and the channel: a library of its own.
#[cfg(feature = "mpsc")]
#[doc(inline)]
pub use ganger_mpsc as mpsc;
/// Sockets in processes.
#[cfg(feature = "net")]
#[doc(inline)]
pub use ganger_net as net;
/// Looking into a running scheduler.
#[cfg(feature = "observe")]
#[doc(inline)]
pub use ganger_observe as observe;
/// Tests of processes in a deterministic simulation.
#[cfg(feature = "sim")]
#[doc(inline)]
pub use ganger_sim as sim;
/// Supervisors.
#[cfg(feature = "supervise")]
#[doc(inline)]
pub use ganger_supervise as supervise;
/// Async functions as processes.
#[cfg(feature = "task")]
#[doc(inline)]
pub use ganger_task as task;
/// Timers, intervals and time-outs of processes.
#[cfg(feature = "sched")]
#[doc(inline)]
pub use ganger_time as time;
/// tokio's sockets, timers and libraries in processes.
#[cfg(feature = "tokio")]
#[doc(inline)]
pub use ganger_tokio as tokio;

pub mod prelude;

#[cfg(all(feature = "sched", feature = "relay"))]
mod runtime;

#[cfg(all(feature = "sched", feature = "relay"))]
pub use runtime::{Runtime, RuntimeBuilder, RuntimeError};
