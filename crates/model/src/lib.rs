#![doc = include_str!("../README.md")]

mod actor;
mod calls;
mod counted;
mod ends;
mod far;
mod handlers;
mod jobs;
mod notes;
mod pid_text;
mod plan;
mod play;
mod spec;
mod starts;
mod threads;
mod trees;
mod waiting;
mod waits;
mod world;

pub use ends::{EndAct, Ends, NAMES, PROCESSES, Spawn, play_ends};
pub use jobs::{Job, PoolAct, PoolPlan, play_pool};
pub use pid_text::check_pid_text;
pub use plan::{
    Act, Answer, Far, KINDS, Kind, MOST, Manners, Nature, Next, Op, Passed, Place, Plan, Start,
    Target, Way,
};
pub use play::{Played, play, play_bytes, play_observed};
pub use threads::play_on_threads;
pub use trees::{ChildPlan, How, TreeAct, TreePlan, play_tree};

/// The quickstart of the project's README, so that it compiles. The README is in no package.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct ReadMe;

/// The pages of the guide, so that their blocks are run.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../../../docs/guide/processes.md")]
    struct Processes;
    #[doc = include_str!("../../../docs/guide/messages.md")]
    struct Messages;
    #[doc = include_str!("../../../docs/guide/asking.md")]
    struct Asking;
    #[doc = include_str!("../../../docs/guide/links.md")]
    struct Links;
    #[doc = include_str!("../../../docs/guide/functions.md")]
    struct Services;
    #[doc = include_str!("../../../docs/guide/timers.md")]
    struct Timers;
    #[doc = include_str!("../../../docs/guide/async.md")]
    struct Async;
    #[doc = include_str!("../../../docs/guide/channels.md")]
    struct Channels;
    #[doc = include_str!("../../../docs/guide/supervision.md")]
    struct Supervision;
    #[doc = include_str!("../../../docs/guide/pools.md")]
    struct Pools;
    #[doc = include_str!("../../../docs/guide/keyed.md")]
    struct Keyed;
    #[doc = include_str!("../../../docs/guide/too-much.md")]
    struct TooMuch;
    #[doc = include_str!("../../../docs/guide/seeing.md")]
    struct Seeing;
    #[doc = include_str!("../../../docs/guide/slow.md")]
    struct Slow;
    #[doc = include_str!("../../../docs/guide/testing.md")]
    struct Testing;
    #[doc = include_str!("../../../docs/guide/tokio.md")]
    struct Tokio;
    #[doc = include_str!("../../../docs/guide/net.md")]
    struct Net;
    #[doc = include_str!("../../../docs/guide/signals.md")]
    struct Signals;
    #[doc = include_str!("../../../docs/guide/two-nodes.md")]
    struct TwoNodes;
    #[doc = include_str!("../../../docs/guide/locks.md")]
    struct Locks;
}
