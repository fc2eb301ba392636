//! How much a run does.

use clap::ValueEnum;

/// The amount of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
pub enum Size {
    /// Enough to say how fast.
    Full,
    /// Shows that it works.
    Quick,
}

impl Size {
    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Quick => "quick",
        }
    }
}
