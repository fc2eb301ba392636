//! Links, monitors, names and groups, compared with a specification of theirs.

mod play;
mod spec;

pub use play::play_ends;
pub use spec::{EndAct, Ends, NAMES, PROCESSES, Spawn};
