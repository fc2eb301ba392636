//! The decisions of a run: made by chance or given beforehand, and written down.

use crate::strategy::Strategy;
use fastrand::Rng;

/// A decision that has been made: which of `of` alternatives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) of: u32,
    pub(crate) chose: u32,
}

/// Where decisions come from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Seed(u64),
    /// After these the actors move in turn, and every other decision takes the first alternative.
    Given(Vec<u32>),
    /// After these every decision takes the first alternative: the first of the runs that begin so.
    FirstAfter(Vec<u32>),
}

pub(crate) struct Choices {
    rng: Option<Rng>,
    given: Vec<u32>,
    made: Vec<Decision>,
    order: Order,
    /// Beyond the given decisions the actors move in turn.
    in_turn: bool,
    /// From here on nothing goes wrong.
    is_calm: bool,
}

/// How chance picks the actor that moves next.
enum Order {
    Any,
    /// The actor with the highest priority moves; the first one falls behind the others at each of
    /// the `falls`.
    Priorities {
        of: Vec<u64>,
        falls: Vec<u64>,
        lowest: u64,
    },
}

impl Choices {
    /// Decisions for that many actors.
    pub(crate) fn new(source: Source, strategy: Strategy, actors: usize) -> Self {
        let in_turn = matches!(source, Source::Given(_));
        let (rng, given) = match source {
            Source::Seed(seed) => (Some(Rng::with_seed(seed)), Vec::new()),
            Source::Given(given) | Source::FirstAfter(given) => (None, given),
        };
        let mut choices = Self {
            rng,
            given,
            made: Vec::new(),
            order: Order::Any,
            in_turn,
            is_calm: false,
        };
        if let (Some(rng), Strategy::Priorities { changes, moves }) = (&mut choices.rng, strategy) {
            let high = u64::MAX / 2;
            choices.order = Order::Priorities {
                of: (0..actors).map(|_| rng.u64(high..)).collect(),
                falls: (0..changes).map(|_| rng.u64(..moves.max(1))).collect(),
                lowest: high,
            };
        }
        choices
    }

    /// One of `of` alternatives, each as likely as the others.
    pub(crate) fn choose(&mut self, of: usize) -> usize {
        self.decide(of, 0, |rng, of| rng.u32(..of))
    }

    /// Decides whether a thing happens that happens `per_mille` times in a thousand.
    pub(crate) fn happens(&mut self, per_mille: u32) -> bool {
        if per_mille == 0 || self.is_calm {
            return false;
        }
        self.decide(2, 0, |rng, _| u32::from(rng.u32(..1_000) < per_mille)) == 1
    }

    /// Picks the actor for move `nth`; returns its place in `actors`.
    pub(crate) fn actor(&mut self, actors: &[usize], nth: u64) -> usize {
        let Order::Priorities { of, falls, lowest } = &mut self.order else {
            return self.decide(actors.len(), nth, |rng, of| rng.u32(..of));
        };
        let first = |of: &[u64]| {
            (0..actors.len())
                .max_by_key(|&place| of[actors[place]])
                .unwrap_or(0)
        };
        let mut place = first(of);
        // Each fall counts once, even if one move asks for several actors.
        while let Some(fall) = falls.iter().position(|&fall| fall == nth) {
            falls.swap_remove(fall);
            *lowest -= 1;
            of[actors[place]] = *lowest;
            place = first(of);
        }
        let place = u32::try_from(place).unwrap_or(u32::MAX);
        self.decide(actors.len(), nth, |_, _| place)
    }

    /// Without chance and without a given decision, the result is `beyond` modulo `of`, or 0.
    fn decide(
        &mut self,
        of: usize,
        beyond: u64,
        by_chance: impl FnOnce(&mut Rng, u32) -> u32,
    ) -> usize {
        let of = u32::try_from(of).unwrap_or(u32::MAX);
        if of <= 1 {
            return 0;
        }
        let chose = match &mut self.rng {
            Some(rng) => by_chance(rng, of),
            None => match self.given.get(self.made.len()) {
                Some(&given) => given.min(of - 1),
                None if self.in_turn => u32::try_from(beyond % u64::from(of)).unwrap_or(0),
                None => 0,
            },
        };
        self.made.push(Decision { of, chose });
        chose as usize
    }

    /// From here on nothing goes wrong.
    pub(crate) fn calm_down(&mut self) {
        self.is_calm = true;
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.is_calm
    }

    pub(crate) fn made(&self) -> &[Decision] {
        &self.made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(choices: &mut Choices) -> Vec<usize> {
        (1..100).map(|of| choices.choose(of)).collect()
    }

    #[test]
    fn what_was_written_down_can_be_done_again() {
        let mut first = Choices::new(Source::Seed(7), Strategy::Random, 3);
        let seen = numbers(&mut first);
        let given = first.made().iter().map(|it| it.chose).collect();
        let mut again = Choices::new(Source::Given(given), Strategy::Random, 3);
        assert_eq!(numbers(&mut again), seen);
        assert_eq!(again.made(), first.made());
        assert_ne!(
            numbers(&mut Choices::new(Source::Seed(8), Strategy::Random, 3)),
            seen
        );
    }

    #[test]
    fn the_one_with_the_highest_priority_moves_until_it_falls() {
        let strategy = Strategy::Priorities {
            changes: 2,
            moves: 50,
        };
        let mut choices = Choices::new(Source::Seed(1), strategy, 3);
        let moves: Vec<_> = (0..50).map(|nth| choices.actor(&[0, 1, 2], nth)).collect();
        let changes = moves.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert_eq!(changes, 2, "{moves:?}");
        // An actor that can't move is passed over.
        assert_eq!(choices.actor(&[2], 50), 0);
    }
}
