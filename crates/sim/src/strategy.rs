//! How it is decided who moves next.

/// Who moves next. Everything else that is left to chance is decided by the seed alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Strategy {
    /// Anybody who can, each as likely as the others.
    #[default]
    Random,
    /// Whoever has the highest priority of those who can. At so many points, somewhere among the first so
    /// many moves, the one who would move falls behind all others: a bug that takes `changes` of those at
    /// the right places is found with a known probability (Burckhardt, Kothari, Musuvathi and Nagarakatte,
    /// "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs", ASPLOS 2010).
    Priorities {
        /// How many points there are.
        changes: usize,
        /// Among how many moves.
        moves: u64,
    },
}
