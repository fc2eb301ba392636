//! The decisions of a run by moves, for the search for a simpler run.
//!
//! Decisions in a single list of numbers do not survive when some of them are left out: the rest
//! moves up, and each number is then the answer to another question. So a plan knows the question
//! of each decision. A move that is left out takes its own decisions with it. Within a move, the
//! third fault of a kind is the third of its kind again. An actor is picked by its number, and not
//! by its place among the actors that can move. The decisions of the test between two moves are a
//! list of their own.

use ganger_proc_api::Pid;
use std::collections::HashMap;

/// A decision other than the pick of an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) what: &'static str,
    pub(crate) chose: u32,
    /// How many moves of other actors were around the decision.
    pub(crate) depth: u32,
}

/// The pick of an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pick {
    /// None: the first alternative.
    actor: Option<usize>,
    /// Whether the pick was another than the first alternative.
    deviates: bool,
}

/// The decisions for a move.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// Several if picked actors stand still. The last pick moves.
    picks: Vec<Pick>,
    entries: Vec<Entry>,
    /// The process of the move.
    of: Option<Pid>,
}

/// The decisions of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The decisions of the test between two moves.
    pub(crate) between: Vec<Entry>,
    pub(crate) moves: Vec<Part>,
}

impl Plan {
    pub(crate) fn begin_move(&mut self) {
        self.moves.push(Part::default());
    }

    pub(crate) fn end_move(&mut self, of: Option<Pid>) {
        if let Some(part) = self.moves.last_mut() {
            part.of = of;
        }
    }

    pub(crate) fn add_pick(&mut self, actor: usize, deviates: bool) {
        if let Some(part) = self.moves.last_mut() {
            let actor = Some(actor);
            part.picks.push(Pick { actor, deviates });
        }
    }

    pub(crate) fn add(&mut self, is_moving: bool, entry: Entry) {
        match self.moves.last_mut() {
            Some(part) if is_moving => part.entries.push(entry),
            _ => self.between.push(entry),
        }
    }

    /// Leaves out decisions without effect: the last decisions of each move, and the last moves of
    /// all, if they take the first alternatives.
    pub(crate) fn trim(&mut self) {
        // The first alternative depends on actors that stand still.
        let entries = self.moves.iter().flat_map(|it| &it.entries);
        let stands_still = entries.clone().any(|it| it.what == STALLS && it.chose > 0);
        for part in &mut self.moves {
            trim(&mut part.entries, |it| it.chose == 0);
            if !stands_still {
                let first = part.picks.iter_mut().filter(|it| !it.deviates);
                first.for_each(|it| it.actor = None);
                trim(&mut part.picks, |it| it.actor.is_none());
            }
        }
        trim(&mut self.moves, |it| {
            it.picks.is_empty() && it.entries.is_empty()
        });
        trim(&mut self.between, |it| it.chose == 0);
    }

    /// Returns the number of decisions off the first alternative.
    pub(crate) fn deviations(&self) -> usize {
        let own = self.between.iter().filter(|it| it.chose > 0).count();
        own + self.moves.iter().map(Part::deviations).sum::<usize>()
    }

    /// Returns the processes of the moves, from the last move on.
    pub(crate) fn processes(&self) -> Vec<Pid> {
        let mut processes = Vec::new();
        for pid in self.moves.iter().rev().filter_map(|it| it.of) {
            if !processes.contains(&pid) {
                processes.push(pid);
            }
        }
        processes
    }

    /// Returns the kinds of decisions off the first alternative.
    pub(crate) fn kinds(&self) -> Vec<&'static str> {
        let mut kinds = Vec::new();
        for entry in self.moves.iter().flat_map(|it| &it.entries) {
            if entry.chose > 0 && !kinds.contains(&entry.what) {
                kinds.push(entry.what);
            }
        }
        kinds
    }
}

fn trim<T>(list: &mut Vec<T>, says_nothing: impl Fn(&T) -> bool) {
    while list.last().is_some_and(&says_nothing) {
        list.pop();
    }
}

impl Part {
    pub(crate) fn deviations(&self) -> usize {
        let entries = self.entries.iter().filter(|it| it.chose > 0).count();
        entries + self.picks.iter().filter(|it| it.deviates).count()
    }

    pub(crate) fn is_of(&self, pid: Pid) -> bool {
        self.of == Some(pid)
    }

    /// Resets all decisions to the first alternative.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.picks.clear();
    }

    /// Resets all picks: the first alternative moves.
    pub(crate) fn clear_picks(&mut self) {
        self.picks.clear();
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Resets these entries to the first alternative, and leaves out the decisions within them.
    pub(crate) fn reset(&mut self, resets: impl Fn(usize, &Entry) -> bool) {
        let mut within = None;
        let mut nth = 0;
        let stalls = |entry: &Entry| entry.what == STALLS;
        let mut stands_still = false;
        self.entries.retain_mut(|entry| {
            let place = nth;
            nth += 1;
            if within.is_some_and(|depth| entry.depth > depth) {
                return false;
            }
            within = None;
            if entry.chose > 0 && resets(place, entry) {
                stands_still |= stalls(entry);
                entry.chose = 0;
                within = Some(entry.depth);
            }
            true
        });
        if stands_still && self.picks.len() > 1 {
            let last = self.picks.len() - 1;
            self.picks.drain(..last);
        }
    }

    pub(crate) fn set(&mut self, place: usize, chose: u32) {
        self.entries[place].chose = chose;
    }
}

/// The decision whether the picked actor stands still.
pub(crate) const STALLS: &str = "worker stalls";

/// Reads a plan in the order of a run's questions.
pub(crate) struct Reader {
    plan: Plan,
    /// How many moves have begun.
    moves: usize,
    picks: usize,
    /// How many decisions of each kind the present move has taken.
    taken: HashMap<&'static str, usize>,
    /// As `taken`, for decisions between two moves.
    between: HashMap<&'static str, usize>,
}

impl Reader {
    pub(crate) fn new(plan: Plan) -> Self {
        Self {
            plan,
            moves: 0,
            picks: 0,
            taken: HashMap::new(),
            between: HashMap::new(),
        }
    }

    pub(crate) fn begin_move(&mut self) {
        self.moves += 1;
        self.picks = 0;
        self.taken.clear();
    }

    /// Takes the actor of the present move, unless the first alternative moves.
    pub(crate) fn pick(&mut self) -> Option<usize> {
        let nth = self.picks;
        self.picks += 1;
        let part = self.plan.moves.get(self.moves.checked_sub(1)?)?;
        part.picks.get(nth)?.actor
    }

    /// Takes the next decision of this kind.
    pub(crate) fn next(&mut self, is_moving: bool, what: &'static str) -> u32 {
        let (entries, taken) = if is_moving {
            let part = self.plan.moves.get(self.moves.saturating_sub(1));
            (part.map_or(&[][..], |it| &it.entries), &mut self.taken)
        } else {
            (&self.plan.between[..], &mut self.between)
        };
        let taken = taken.entry(what).or_insert(0);
        let mut same = entries.iter().filter(|it| it.what == what);
        let chose = same.nth(*taken).map_or(0, |it| it.chose);
        *taken += 1;
        chose
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_decided_within_a_decision_goes_with_it() {
        let entries = [
            ("a", 1, 0),
            ("b", 0, 1),
            ("c", 1, 2),
            ("b", 1, 0),
            ("a", 1, 0),
        ];
        let mut plan = Plan::default();
        plan.begin_move();
        for (what, chose, depth) in entries {
            plan.add(true, Entry { what, chose, depth });
        }
        plan.moves[0].reset(|place, _| place == 0);
        let left = plan.moves[0].entries().iter().map(|it| (it.what, it.chose));
        assert_eq!(left.collect::<Vec<_>>(), [("a", 0), ("b", 1), ("a", 1)]);
    }

    #[test]
    fn a_plan_of_first_alternatives_is_empty() {
        let mut plan = Plan::default();
        for (actor, chose) in [(3, 0), (4, 2), (5, 0)] {
            plan.begin_move();
            plan.add_pick(actor, false);
            for chose in [chose, 0] {
                plan.add(
                    true,
                    Entry {
                        what: "a",
                        chose,
                        depth: 0,
                    },
                );
            }
            plan.end_move(None);
        }
        plan.trim();
        assert_eq!((plan.moves.len(), plan.deviations()), (2, 1));
        assert_eq!(plan.moves[0], Part::default());
        assert_eq!(plan.moves[1].entries().len(), 1);
        plan.moves[1].set(0, 0);
        plan.trim();
        assert_eq!(plan, Plan::default());
    }

    #[test]
    fn an_actor_that_stands_still_no_longer_is_not_picked() {
        let mut plan = Plan::default();
        plan.begin_move();
        plan.add_pick(4, true);
        let what = STALLS;
        plan.add(
            true,
            Entry {
                what,
                chose: 1,
                depth: 0,
            },
        );
        plan.add_pick(2, true);
        plan.moves[0].reset(|_, entry| entry.what == STALLS);
        let mut reader = Reader::new(plan);
        reader.begin_move();
        assert_eq!((reader.pick(), reader.next(true, STALLS)), (Some(2), 0));
    }
}
