//! In which state the machine is while something runs.
//!
//! A virtual processor that halts is given to others by its host, and the kernel takes it for one that
//! is in use: whom a thread wakes it queues behind itself although another processor idles. Whether two
//! workers share a processor is then up to chance. Processors that never idle do not halt, and with
//! loops of idle priority on them, which give way to whatever else wants to run, the kernel places
//! threads as it does on a machine of one's own. Neither is the truth: so there are figures of both.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// What else runs while something is measured.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Nothing of this program's.
    #[default]
    AsIs,
    /// A loop of idle priority on every processor.
    Loops,
}

/// What the command line can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Modes {
    /// The machine as it is
    AsIs,
    /// With an idle-priority loop on every processor (Linux)
    Loops,
    /// Both, one after the other
    Both,
}

impl Mode {
    /// Whether it is the usual one, of which nothing need be said.
    #[must_use]
    pub fn is_as_is(&self) -> bool {
        *self == Self::AsIs
    }

    /// For people.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::AsIs => "as the machine is",
            Self::Loops => "with idle loops",
        }
    }
}

impl Modes {
    /// Each of them, in the order in which they are measured.
    #[must_use]
    pub fn all(self) -> &'static [Mode] {
        match self {
            Self::AsIs => &[Mode::AsIs],
            Self::Loops => &[Mode::Loops],
            Self::Both => &[Mode::AsIs, Mode::Loops],
        }
    }
}
