//! How the simulation picks the actor that moves next.

/// How the actor that moves next is picked. The seed alone decides everything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Strategy {
    /// Any actor that can move, each as likely as the others.
    #[default]
    Random,
    /// Of the actors that can move, the one with the highest priority. At `changes` points,
    /// somewhere among the first `moves` moves, the next actor falls behind all others.
    ///
    /// A bug that takes `changes` of these at the right places is found with a known probability
    /// (Burckhardt, Kothari, Musuvathi and Nagarakatte, "A Randomized Scheduler with Probabilistic
    /// Guarantees of Finding Bugs", ASPLOS 2010).
    Priorities {
        /// How many points there are.
        changes: usize,
        /// Among how many moves.
        moves: u64,
    },
}
