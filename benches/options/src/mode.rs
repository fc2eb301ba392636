//! The state of the machine during a run.
//!
//! A host gives a halted virtual processor to others, and the guest's kernel then takes that
//! processor for a busy one. A thread that is woken is queued behind its waker, although another
//! processor idles. So chance decides whether two workers share a processor.
//!
//! Loops of idle priority on all processors keep them from halting, and give way to every other
//! thread. With them the kernel places threads as it does on real hardware. Neither state is the
//! truth: so there are figures of both.

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
