//! The state of the machine during a run.
//!
//! A host gives a halted virtual processor to other guests, and the guest's kernel then takes that
//! processor for a busy processor. A woken thread is queued behind its waker, although another
//! processor idles. So chance decides whether two workers share a processor.
//!
//! Loops of idle priority on all processors keep them from halting, and give way to every other
//! thread. With them the kernel places threads as it does on real hardware. Neither state is the
//! truth: so the report has figures of both.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The other load during a measurement.
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

/// The modes of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Modes {
    /// The machine as it is
    AsIs,
    /// With an idle-priority loop on every processor (Linux)
    Loops,
    /// First as is, then with loops
    Both,
}

impl Mode {
    /// Returns whether the mode is the usual mode, which needs no mention.
    pub fn is_as_is(&self) -> bool {
        *self == Self::AsIs
    }

    /// Returns the mode in words, for people.
    pub fn text(self) -> &'static str {
        match self {
            Self::AsIs => "as the machine is",
            Self::Loops => "with idle loops",
        }
    }
}

impl Modes {
    /// Returns the modes in the order of the measurements.
    pub fn all(self) -> &'static [Mode] {
        match self {
            Self::AsIs => &[Mode::AsIs],
            Self::Loops => &[Mode::Loops],
            Self::Both => &[Mode::AsIs, Mode::Loops],
        }
    }
}
