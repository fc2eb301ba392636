//! A process forced by a stop, or stuck.

use ganger_proc_api::{Pid, Symbol};
use std::fmt;
use std::time::Duration;

/// How many are named in the log line.
pub(super) const LOGGED: usize = 8;

/// A process forced by a stop, or stuck. Its text is a line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoppedProcess {
    /// Its PID.
    pub pid: Pid,
    /// Its names, in the order of their texts.
    pub names: Vec<Box<str>>,
    /// The name of its type; for an actor, of the actor's type. `None` when its PID is gone
    /// already: it is stuck in a hook.
    pub type_name: Option<&'static str>,
    /// The entry point. `None` as for the type.
    pub method: Option<Symbol>,
    /// How long its last turn had lasted, if it is stuck; otherwise how long ago the turn began.
    /// Exact to about ten milliseconds. `None` without a turn, and as for the type.
    pub since: Option<Duration>,
}

/// Some processes, as text: the first of them, and the number of the rest.
pub(crate) struct Named<'a>(pub(crate) &'a [StoppedProcess]);

impl StoppedProcess {
    /// Describes a process known only by its PID.
    #[must_use]
    pub fn unknown(pid: Pid) -> Self {
        Self {
            pid,
            names: Vec::new(),
            type_name: None,
            method: None,
            since: None,
        }
    }
}

impl fmt::Display for StoppedProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.pid)?;
        if let Some(name) = self.names.first() {
            write!(f, " {name:?}")?;
        }
        match (self.method, self.type_name) {
            (Some(method), Some(type_name)) => write!(f, " {method} ({type_name})")?,
            _ => f.write_str(" in a hook at its end")?,
        }
        match self.since {
            Some(since) => write!(f, " since {since:.1?}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, process) in self.0.iter().take(LOGGED).enumerate() {
            let comma = if nth > 0 { ", " } else { "" };
            write!(f, "{comma}{process}")?;
        }
        match self.0.len().saturating_sub(LOGGED) {
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
}
