//! The known actions on a process, and the questions before them.

use crate::fault::Fault;
use crate::measure::Key;
use ganger_observe::api::Acted;

/// An action with its key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Action {
    /// As in the snapshots.
    pub(super) name: &'static str,
    pub(super) key: char,
    /// Whether the process may end by it.
    pub(super) ends: bool,
}

const fn action(name: &'static str, key: char, ends: bool) -> Action {
    Action { name, key, ends }
}

pub(super) const ACTIONS: [Action; 5] = [
    action("suspend", 's', false),
    action("resume", 'u', false),
    action("restart", 'r', true),
    action("cancel", 'c', true),
    action("terminate", 't', true),
];

/// A question in the line at the bottom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asking {
    /// For an action on the process.
    Which(Key),
    /// Whether the action is meant.
    Sure(Key, &'static Action),
}

/// An action chosen by a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) action: &'static str,
    pub(crate) process: Key,
}

/// Returns the message about an action that was asked for.
pub(crate) fn sentence(wanted: &Wanted, acted: &Result<Acted, Fault>) -> String {
    let action = wanted.action;
    match acted {
        Ok(Acted {
            successor: Some(pid),
            ..
        }) => format!("{action}: {pid} is in its place"),
        Ok(Acted {
            stands: Some(false),
            ..
        }) => format!("{action}: the process stands still when its turn is over"),
        Ok(acted) => format!("{action}: asked of {}", acted.pid),
        Err(Fault::NotHere(why)) => format!("{action}: {why}"),
        Err(fault) => format!("{action}: {fault}"),
    }
}
