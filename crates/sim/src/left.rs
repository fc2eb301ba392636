//! The remains of a stuck run.

use ganger_sched::Dump;
use ganger_wait::watch::{self, Watching};

/// Lists the remaining processes, and their waits for locks or channels.
pub(crate) fn what_is_left(dumps: impl Iterator<Item = Dump>, watching: &Watching) -> String {
    let dumps: Vec<_> = dumps.map(|dump| dump.to_string()).collect();
    let mut left = dumps.join("\n\n");
    let waits = watching.own_waits();
    for cycle in watch::cycles(&waits) {
        left += "\n\nThese wait for each other:";
        cycle.iter().for_each(|it| left += &format!("\n  {it}"));
    }
    if !waits.is_empty() {
        left += "\n\nWaits:";
        waits.iter().for_each(|it| left += &format!("\n  {it}"));
    }
    left
}
