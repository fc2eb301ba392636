//! How the simulation picks the next actor.

/// How the simulation picks the next actor. The seed alone decides everything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Strategy {
    /// Any actor that can move, all equally likely.
    #[default]
    Random,
    /// The actor with the highest priority among the actors that can move. At `changes` points,
    /// somewhere among the first `moves` moves, the next actor falls behind all other actors.
    ///
    /// A bug that needs `changes` of these at the right places is found with a known probability
    /// (Burckhardt, Kothari, Musuvathi and Nagarakatte, "A Randomized Scheduler with Probabilistic
    /// Guarantees of Finding Bugs", ASPLOS 2010).
    Priorities {
        /// The number of points.
        changes: usize,
        /// Among how many moves.
        moves: u64,
    },
}
