//! The views on all processes: groups, the tree, waits for other processes, alarms.

use super::state::State;
use serde::{Deserialize, Serialize};

/// The answer of `/api/v1/groups`: processes that are alike, and how many they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Groups {
    /// [`VERSION`](super::VERSION).
    pub version: u32,
    /// The groups, the largest first, at most 1,000.
    pub groups: Vec<Group>,
    /// The processes in further groups.
    pub others: u64,
}

/// Processes of the same type, method, label and state, in a wait for the same kind of command. A
/// leak shows in a group that only grows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// The number of their scheduler.
    pub scheduler: u64,
    /// The name of their type.
    pub type_name: String,
    /// Their entry point.
    pub method: String,
    /// Their label.
    pub label: Option<String>,
    /// The state of their lives.
    pub state: State,
    /// The name of the handler of the first command that each waits for.
    pub waits_for: Option<String>,
    /// How many they are.
    pub count: u64,
    /// The messages and events in their mailboxes together.
    pub waiting: u64,
}

/// The answer of `/api/v1/tree`: supervisors with their children, and below each process the
/// processes that it has started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    /// [`VERSION`](super::VERSION).
    pub version: u32,
    /// The nodes, a parent before its children and at most 10,000: so a viewer builds the tree in
    /// one pass.
    pub nodes: Vec<TreeNode>,
    /// The live processes without a node.
    pub others: u64,
}

/// A process in the tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeNode {
    /// The number of its scheduler.
    pub scheduler: u64,
    /// Its PID; none for a child of a supervisor that is not running at the moment.
    pub pid: Option<String>,
    /// The place of its parent in [`Tree::nodes`]; none at the top.
    pub parent: Option<u64>,
    /// Its name as a child of its supervisor, or the first of its names.
    pub name: Option<String>,
    /// The name of its type; of a supervisor its strategy.
    pub kind: String,
    /// Whether it is a supervisor.
    pub is_supervisor: bool,
    /// The state of its life; none where it is not running.
    pub state: Option<State>,
    /// How often its supervisor has started it again.
    pub restarts: u64,
    /// Why it ended the last time, where its supervisor has started it again.
    pub last_cause: Option<String>,
}

/// The answer of `/api/v1/waits`: waits of processes and threads for each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// [`VERSION`](super::VERSION).
    pub version: u32,
    /// The waits, the longest first, at most 10,000.
    pub waits: Vec<WaitFor>,
    /// The cycles: of each the places in `waits`, in the order of the cycle. None of their waits
    /// ends by itself.
    pub cycles: Vec<Vec<u64>>,
    /// The parties with waiters that wait for no party themselves: the most waiters first, at most
    /// 100.
    pub heads: Vec<Head>,
    /// The waits without a place in `waits`.
    pub others: u64,
    /// The time since the program registers the parties of waits: the parties of older waits are
    /// not known.
    #[serde(default)]
    pub watched_ns: u64,
}

/// A wait of a process, or of a thread, for other parties.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitFor {
    /// The number of the waiter's scheduler; none for a thread, or for an unknown scheduler.
    pub scheduler: Option<u64>,
    /// The waiter: a PID, or a thread.
    pub waiter: String,
    /// The name or type of the waiter.
    pub waiter_name: Option<String>,
    /// The kind of the wait, such as `answer`, `mutex`, `channel`, `mailbox`, `exit`, or the name
    /// of a command's handler.
    pub kind: String,
    /// The parties that can end the wait; none where they are not known.
    pub parties: Vec<String>,
    /// The numbers of the schedulers of `parties`, in the same order; none for a thread, or for a
    /// unknown scheduler. Two schedulers may use the same PID.
    #[serde(default)]
    pub party_schedulers: Vec<Option<u64>>,
    /// The time since the begin of the wait.
    pub since_ns: u64,
}

/// A party with waiters, directly or behind other parties, that waits for no party itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The party.
    pub party: String,
    /// The number of its scheduler; none for a thread, or for an unknown scheduler.
    #[serde(default)]
    pub scheduler: Option<u64>,
    /// The name or type of the party.
    pub party_name: Option<String>,
    /// How many wait for it, directly or behind others.
    pub waiters: u64,
    /// The longest of these waits.
    pub longest_ns: u64,
}

/// A raised alarm. The same alarm is raised once, until it ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alarm {
    /// A number for it: an alarm raised again has a new number.
    pub number: u64,
    /// The kind, such as `mailbox`, `long_step`, `workers_busy` or `deadlock`.
    pub kind: String,
    /// Whether the program should get no new work meanwhile.
    pub is_severe: bool,
    /// The process, if the alarm belongs to a process.
    pub pid: Option<String>,
    /// A sentence for people.
    pub text: String,
    /// The value that is beyond the limit, in the unit of the kind.
    pub value: u64,
    /// The limit of the raised alarm.
    pub limit: u64,
    /// The time since it was raised.
    pub since_ns: u64,
}
