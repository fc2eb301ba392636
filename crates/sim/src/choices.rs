//! The decisions of a run: made by chance or given beforehand, and written down.

use crate::plan::{Entry, Plan, Reader};
use crate::strategy::Strategy;
use fastrand::Rng;
use ganger_proc_api::Pid;

/// A decision: the choice of an alternative among `of`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) of: u32,
    pub(crate) chose: u32,
}

/// Where decisions come from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Seed(u64),
    /// After these every decision takes the first alternative.
    Given(Vec<u32>),
    /// With a seed, the plan decides only the choices of the test between two moves. In every
    /// second of these runs chance mostly takes the first alternative for the actor.
    Plan(Plan, Option<u64>),
}

/// If chance mostly takes the first alternative, one in this many picks of an actor is by chance.
const SELDOM: u32 = 8;

pub(crate) struct Choices {
    rng: Option<Rng>,
    given: Vec<u32>,
    plan: Option<Reader>,
    made: Vec<Decision>,
    /// The same decisions, by moves.
    done: Plan,
    order: Order,
    /// Chance takes the first alternative for the actor mostly.
    is_lazy: bool,
    /// A move goes on.
    is_moving: bool,
    /// How many moves of other actors nest in the middle of a move.
    depth: u32,
    /// The actor of the last move, and for how many moves in a row.
    last: Option<(usize, u32)>,
    /// From here on nothing goes wrong.
    is_calm: bool,
}

/// The pick of the next actor.
const PICK: &str = "actor";

/// The most moves in a row for which the first alternative is the actor of the last move. Then the
/// first alternative is another actor, so a process without a wait keeps no actor from its moves.
const IN_A_ROW: u32 = 100;

/// Priorities begin above this number; fallen priorities are below.
const HIGH: u64 = u64::MAX / 2;

/// How chance picks the next actor.
enum Order {
    Any,
    /// The actor with the highest priority moves. At each of the `falls`, the first actor falls
    /// behind all other actors.
    Priorities {
        of: Vec<u64>,
        falls: Vec<u64>,
        lowest: u64,
    },
}

impl Choices {
    /// Makes the decisions for `actors` actors.
    pub(crate) fn new(source: Source, strategy: Strategy, actors: usize) -> Self {
        let mut is_lazy = false;
        let (rng, given, plan) = match source {
            Source::Seed(seed) => (Some(Rng::with_seed(seed)), Vec::new(), None),
            Source::Given(given) => (None, given, None),
            Source::Plan(plan, seed) => {
                is_lazy = seed.is_some_and(|seed| seed % 2 > 0);
                (
                    seed.map(Rng::with_seed),
                    Vec::new(),
                    Some(Reader::new(plan)),
                )
            }
        };
        let mut choices = Self {
            rng,
            given,
            plan,
            made: Vec::new(),
            done: Plan::default(),
            order: Order::Any,
            is_lazy,
            is_moving: false,
            depth: 0,
            last: None,
            is_calm: false,
        };
        if let (Some(rng), Strategy::Priorities { changes, moves }) = (&mut choices.rng, strategy) {
            choices.order = Order::Priorities {
                of: (0..actors).map(|_| rng.u64(HIGH..)).collect(),
                falls: (0..changes).map(|_| rng.u64(..moves.max(1))).collect(),
                lowest: HIGH,
            };
        }
        choices
    }

    /// Begins a move: the decisions from here on are a part of it.
    pub(crate) fn begin_move(&mut self) {
        self.is_moving = true;
        self.done.begin_move();
        if let Some(plan) = &mut self.plan {
            plan.begin_move();
        }
    }

    /// Ends a move, of a process if `of` names it. The decisions from here on are between two
    /// moves.
    pub(crate) fn end_move(&mut self, of: Option<Pid>) {
        self.is_moving = false;
        self.done.end_move(of);
    }

    /// Lets other actors move in the middle of a move.
    pub(crate) fn enter(&mut self) {
        self.depth += 1;
    }

    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Chooses among `of` alternatives, all equally likely.
    pub(crate) fn choose(&mut self, what: &'static str, of: usize) -> usize {
        self.decide(what, of, |rng, of| rng.u32(..of))
    }

    /// Decides whether an event happens that happens `per_mille` times in a thousand.
    pub(crate) fn happens(&mut self, what: &'static str, per_mille: u32) -> bool {
        if per_mille == 0 || self.is_calm {
            return false;
        }
        let by_chance = |rng: &mut Rng, _| u32::from(rng.u32(..1_000) < per_mille);
        self.decide(what, 2, by_chance) == 1
    }

    /// Picks the actor for move `nth`; returns its place in `actors`.
    ///
    /// The first alternative is the actor of the last move. So the fewer decisions take another
    /// alternative, the fewer actors are in the middle of something.
    pub(crate) fn actor(&mut self, actors: &[usize], nth: u64) -> usize {
        let first = self.first_of(actors);
        let is_own = self.depth == 0;
        let turn = |place: usize| (place + actors.len() - first) % actors.len();
        let is_planned = is_own && self.rng.is_none();
        let planned = self.plan.as_mut().filter(|_| is_planned).map(|plan| {
            let actor = plan.pick();
            actors
                .iter()
                .position(|&it| Some(it) == actor)
                .map_or(0, turn)
        });
        let wanted = planned.or_else(|| self.highest(actors, nth).map(turn));
        let wanted = wanted.map(|place| u32::try_from(place).unwrap_or(u32::MAX));
        let chose = match wanted {
            Some(place) => self.note(PICK, actors.len(), |_| place),
            None => {
                let is_lazy = self.is_lazy;
                self.decide(PICK, actors.len(), |rng, of| {
                    if is_lazy && rng.u32(..SELDOM) > 0 {
                        return 0;
                    }
                    let place = turn(rng.u32(..of) as usize);
                    u32::try_from(place).unwrap_or(0)
                })
            }
        };
        let place = (chose + first) % actors.len();
        if is_own {
            let actor = actors[place];
            self.done.add_pick(actor, chose > 0);
            let in_a_row = match self.last {
                Some((last, times)) if last == actor => times + 1,
                _ => 1,
            };
            self.last = Some((actor, in_a_row));
        }
        place
    }

    /// Returns the place of the actor with the highest priority, if the actors have priorities.
    fn highest(&mut self, actors: &[usize], nth: u64) -> Option<usize> {
        let Order::Priorities { of, falls, lowest } = &mut self.order else {
            return None;
        };
        // A machine that starts in the middle of a run brings further actors.
        if let Some(rng) = &mut self.rng {
            let most = actors.iter().max().map_or(0, |most| most + 1);
            (of.len()..most).for_each(|_| of.push(rng.u64(HIGH..)));
        }
        let first = |of: &[u64]| {
            (0..actors.len())
                .max_by_key(|&place| of[actors[place]])
                .unwrap_or(0)
        };
        let mut place = first(of);
        // Each fall counts once, even if a single move asks for several actors.
        while let Some(fall) = falls.iter().position(|&fall| fall == nth) {
            falls.swap_remove(fall);
            *lowest -= 1;
            of[actors[place]] = *lowest;
            place = first(of);
        }
        Some(place)
    }

    /// Returns the place of the actor in the first alternative.
    fn first_of(&self, actors: &[usize]) -> usize {
        let Some((last, times)) = self.last.filter(|_| self.depth == 0) else {
            return 0;
        };
        let is_next = |&actor: &usize| actor > last || actor == last && times < IN_A_ROW;
        actors.iter().position(is_next).unwrap_or(0)
    }

    /// Decides. Without chance and without a given decision, takes the first alternative.
    fn decide(
        &mut self,
        what: &'static str,
        of: usize,
        by_chance: impl FnOnce(&mut Rng, u32) -> u32,
    ) -> usize {
        let is_moving = self.is_moving;
        self.note(what, of, |choices| {
            let of = u32::try_from(of).unwrap_or(u32::MAX);
            match (&mut choices.rng, &mut choices.plan) {
                (Some(rng), plan) if is_moving || plan.is_none() => by_chance(rng, of),
                (_, Some(plan)) => plan.next(is_moving, what),
                (_, None) => choices.given.get(choices.made.len()).copied().unwrap_or(0),
            }
        })
    }

    /// Decides among several alternatives, and writes the decision down.
    fn note(
        &mut self,
        what: &'static str,
        of: usize,
        decide: impl FnOnce(&mut Self) -> u32,
    ) -> usize {
        let of = u32::try_from(of).unwrap_or(u32::MAX);
        if of <= 1 {
            return 0;
        }
        let chose = decide(self).min(of - 1);
        self.made.push(Decision { of, chose });
        if what != PICK || self.depth > 0 {
            let depth = self.depth;
            self.done.add(self.is_moving, Entry { what, chose, depth });
        }
        chose as usize
    }

    /// Lets nothing go wrong from here on.
    pub(crate) fn calm_down(&mut self) {
        self.is_calm = true;
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.is_calm
    }

    pub(crate) fn made(&self) -> &[Decision] {
        &self.made
    }

    /// Returns the decisions by moves.
    pub(crate) fn done(&self) -> &Plan {
        &self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(choices: &mut Choices) -> Vec<usize> {
        (1..100).map(|of| choices.choose("test", of)).collect()
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
        // The choice passes over an actor without a move.
        assert_eq!(choices.actor(&[2], 50), 0);
    }

    fn picks(choices: &mut Choices, moves: usize) -> Vec<usize> {
        let pick = |_| [3, 5, 7][choices.actor(&[3, 5, 7], 0)];
        (0..moves).map(pick).collect()
    }

    #[test]
    fn without_a_decision_the_last_actor_goes_on_but_not_for_ever() {
        let mut choices = Choices::new(Source::Given(vec![1]), Strategy::Random, 3);
        let picks = picks(&mut choices, 250);
        assert!(picks[..100].iter().all(|&it| it == 5), "{picks:?}");
        assert!(picks[100..200].iter().all(|&it| it == 7), "{picks:?}");
        assert_eq!(picks[200], 3, "{picks:?}");
    }

    #[test]
    fn a_plan_of_a_run_makes_the_same_decisions() {
        let run = |choices: &mut Choices| {
            let mut all = Vec::new();
            for nth in 0..50 {
                choices.begin_move();
                let actor = [2, 4, 9][choices.actor(&[2, 4, 9], nth)];
                let happens = choices.happens("others move", 500);
                if happens {
                    choices.enter();
                    all.push(choices.actor(&[1, 2], nth));
                    choices.leave();
                }
                choices.end_move(None);
                all.extend([actor, usize::from(happens), choices.choose("test", 10)]);
            }
            all
        };
        let mut first = Choices::new(Source::Seed(3), Strategy::Random, 10);
        let all = run(&mut first);
        let plan = Source::Plan(first.done().clone(), None);
        let mut again = Choices::new(plan, Strategy::Random, 10);
        assert_eq!(run(&mut again), all);
        assert_eq!(again.made(), first.made());
        assert_eq!(again.done(), first.done());
        // With a seed, the choices of the test stay, and the moves change.
        let plan = Source::Plan(first.done().clone(), Some(1));
        let mut anew = Choices::new(plan, Strategy::Random, 10);
        assert_ne!(run(&mut anew), all);
        assert_eq!(anew.done().between, first.done().between);
    }
}
