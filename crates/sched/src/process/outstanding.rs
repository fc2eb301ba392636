//! The outstanding yields of a process: not completed yet.
//!
//! A completion may come twice: a handler that returned an error had given its completer away. Or
//! the completion may come too late: the process has been upgraded since. Each yield gets a number,
//! never used again in the life of the process. A completion counts when its number is still in
//! this set. The set belongs to the worker that runs the process, so completers need no
//! synchronisation beyond the mailbox.
//!
//! A process may take yields back, by their tag: they leave the set, and their completions come too
//! late. `revoked.rs` knows them until then.

use crate::process::asked::Asked;
use crate::process::revoked::OwnRevoked;
use ganger_proc_api::Tag;
use ganger_sync::shrink_after_burst;
use ganger_time::internal::{ShardId, Ticket};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::mem;

/// From this number on, a hash map takes over from a list.
const MANY: usize = 32;

/// No yield has this number.
const NONE: u64 = 0;

#[derive(Default)]
pub(crate) struct Outstanding {
    /// The number of the newest yield.
    newest: u64,
    /// A single yield of the set, or [`NONE`]: most processes wait for one yield at a time.
    one: u64,
    one_tag: Tag,
    one_asked: Asked,
    rest: Rest,
}

/// The data besides the number and the tag of the single yield.
#[derive(Default)]
enum Rest {
    #[default]
    Nothing,
    /// The timer's place of the single yield's completer: the fields of a [`Ticket`]. So a sleeping
    /// process allocates nothing.
    HeldByTimer { shard: ShardId, key: u64 },
    /// The other yields. Once made, the list stays: a process that had two yields at once has them
    /// again. A thin pointer.
    Others(Box<Others>),
}

#[derive(Default)]
struct Others {
    tokens: Tokens,
    /// Once it has taken a yield back.
    revoked: Option<OwnRevoked>,
}

enum Tokens {
    Few(SmallVec<[(u64, About); 1]>),
    Many(HashMap<u64, About>),
}

/// The data of a yield.
#[derive(Clone, Copy)]
struct About {
    tag: Tag,
    #[cfg_attr(not(feature = "observe"), expect(dead_code, reason = "nobody looks"))]
    asked: Asked,
    /// Where a timer keeps its completer.
    ticket: Option<Ticket>,
}

/// The yields taken back by a process.
#[derive(Default)]
pub(crate) struct Taken {
    /// The numbers that handlers may ask about, in order.
    pub(crate) tokens: Vec<u64>,
    /// The tickets of yields kept by timers, which complete no more.
    pub(crate) tickets: Tickets,
}

pub(crate) type Tickets = SmallVec<[Ticket; 2]>;

impl Outstanding {
    /// Returns the number of a new yield, which is not in the set. O(1).
    pub(crate) fn number(&mut self) -> u64 {
        self.newest += 1;
        self.newest
    }

    /// Adds a yield that is not in the set yet. O(1).
    pub(crate) fn insert(&mut self, token: u64, tag: Tag, asked: Asked) {
        if self.one == NONE {
            self.one = token;
            self.one_tag = tag;
            self.one_asked = asked;
        } else {
            let ticket = None;
            self.insert_among_others(token, About { tag, asked, ticket });
        }
    }

    /// Takes in a yield whose completer a timer keeps. O(1).
    pub(crate) fn insert_held(&mut self, token: u64, tag: Tag, asked: Asked, ticket: Ticket) {
        if self.one == NONE && matches!(self.rest, Rest::Nothing) {
            self.one = token;
            self.one_tag = tag;
            self.one_asked = asked;
            let Ticket { shard, key } = ticket;
            self.rest = Rest::HeldByTimer { shard, key };
        } else {
            let ticket = Some(ticket);
            self.insert_among_others(token, About { tag, asked, ticket });
        }
    }

    #[cold]
    fn insert_among_others(&mut self, token: u64, about: About) {
        self.others_mut().tokens.insert(token, about);
    }

    /// Returns the other yields, made if need be. The single yield goes there if a timer keeps its
    /// completer.
    fn others_mut(&mut self) -> &mut Others {
        if !matches!(self.rest, Rest::Others(_)) {
            let mut others = Box::<Others>::default();
            if let Some(ticket) = self.ticket() {
                let about = About {
                    tag: self.one_tag,
                    asked: self.one_asked,
                    ticket: Some(ticket),
                };
                others.tokens.insert(self.one, about);
                self.one = NONE;
            }
            self.rest = Rest::Others(others);
        }
        match &mut self.rest {
            Rest::Others(others) => others,
            _ => unreachable!("they have just been made"),
        }
    }

    /// Returns the other yields, if any have been added.
    fn others(&self) -> Option<&Others> {
        match &self.rest {
            Rest::Others(others) => Some(others),
            _ => None,
        }
    }

    /// Returns the timer's place of the single yield's completer.
    fn ticket(&self) -> Option<Ticket> {
        match self.rest {
            Rest::HeldByTimer { shard, key } => Some(Ticket { shard, key }),
            _ => None,
        }
    }

    /// Takes the single yield out.
    fn take_one(&mut self) -> (u64, About) {
        let about = About {
            tag: self.one_tag,
            asked: self.one_asked,
            ticket: self.ticket(),
        };
        if about.ticket.is_some() {
            self.rest = Rest::Nothing;
        }
        (mem::replace(&mut self.one, NONE), about)
    }

    /// Takes the yield out; `false` when it has completed before, or was forgotten. O(1).
    pub(crate) fn finish(&mut self, token: u64) -> bool {
        if self.one == token && token != NONE {
            self.take_one();
            return true;
        }
        self.finish_among_others(token)
    }

    #[cold]
    fn finish_among_others(&mut self, token: u64) -> bool {
        let Rest::Others(others) = &mut self.rest else {
            return false;
        };
        let is_finished = others.tokens.finish(token);
        if !is_finished && let Some(revoked) = &others.revoked {
            revoked.finish(token);
        }
        is_finished
    }

    /// Takes all yields with the tag out. The numbers of yields not kept by a timer go to `own`.
    /// O(n).
    pub(crate) fn take_back(&mut self, tag: Tag, own: impl FnOnce() -> OwnRevoked) -> Taken {
        let mut taken = Taken::default();
        if self.one != NONE && self.one_tag == tag {
            let (token, about) = self.take_one();
            taken.add(token, about);
        }
        if let Rest::Others(others) = &mut self.rest {
            others.tokens.take_back(tag, &mut taken);
        }
        if !taken.tokens.is_empty() {
            taken.tokens.sort_unstable();
            let others = self.others_mut();
            others.revoked.get_or_insert_with(own).add(&taken.tokens);
        }
        taken
    }

    /// Takes the tickets of all yields, before these are forgotten. O(n).
    pub(crate) fn take_tickets(&mut self) -> Tickets {
        match &mut self.rest {
            Rest::Nothing => Tickets::new(),
            Rest::HeldByTimer { .. } => {
                let ticket = self.ticket();
                self.rest = Rest::Nothing;
                ticket.into_iter().collect()
            }
            Rest::Others(others) => others.tokens.take_tickets(),
        }
    }

    /// Returns whether the yield was taken back, and has not completed.
    pub(crate) fn is_revoked(&self, token: u64) -> bool {
        let revoked = self.others().and_then(|others| others.revoked.as_ref());
        revoked.is_some_and(|revoked| revoked.contains(token))
    }

    /// Forgets all yields: their completions are stale from now on.
    pub(crate) fn forget_all(&mut self) {
        self.one = NONE;
        match &mut self.rest {
            Rest::Others(others) if others.revoked.is_some() => {
                others.tokens = Tokens::default();
            }
            rest => *rest = Rest::Nothing,
        }
    }

    /// Calls `look` with the tag and the command of each yield, the oldest first except for the
    /// single yield. O(n).
    #[cfg(feature = "observe")]
    pub(crate) fn each(&self, mut look: impl FnMut(Tag, Asked)) {
        if self.one != NONE {
            look(self.one_tag, self.one_asked);
        }
        match self.others().map(|others| &others.tokens) {
            Some(Tokens::Few(few)) => few.iter().for_each(|(_, it)| look(it.tag, it.asked)),
            Some(Tokens::Many(many)) => {
                let mut all: Vec<_> = many.iter().collect();
                all.sort_unstable_by_key(|&(&token, _)| token);
                all.into_iter().for_each(|(_, it)| look(it.tag, it.asked));
            }
            None => {}
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.one == NONE && self.others().is_none_or(|others| others.tokens.is_empty())
    }
}

impl Taken {
    fn add(&mut self, token: u64, about: About) {
        match about.ticket {
            Some(ticket) => self.tickets.push(ticket),
            None => self.tokens.push(token),
        }
    }
}

impl Default for Tokens {
    fn default() -> Self {
        Self::Few(SmallVec::new())
    }
}

impl Tokens {
    fn insert(&mut self, token: u64, about: About) {
        match self {
            Self::Few(few) if few.len() < MANY => few.push((token, about)),
            Self::Few(few) => *self = Self::Many(few.drain(..).chain([(token, about)]).collect()),
            Self::Many(many) => {
                many.insert(token, about);
            }
        }
    }

    fn take_back(&mut self, tag: Tag, taken: &mut Taken) {
        match self {
            Self::Few(few) => few.retain(|&mut (token, about)| {
                if about.tag == tag {
                    taken.add(token, about);
                }
                about.tag != tag
            }),
            Self::Many(many) => {
                let with_tag = many.extract_if(|_, about| about.tag == tag);
                with_tag.for_each(|(token, about)| taken.add(token, about));
                shrink_after_burst(many, 4 * MANY);
            }
        }
    }

    fn take_tickets(&mut self) -> Tickets {
        let tickets = |about: &mut About| about.ticket.take();
        match self {
            Self::Few(few) => few.iter_mut().filter_map(|(_, it)| tickets(it)).collect(),
            Self::Many(many) => many.values_mut().filter_map(tickets).collect(),
        }
    }

    fn finish(&mut self, token: u64) -> bool {
        match self {
            Self::Few(few) => {
                let at = few.iter().position(|&(it, _)| it == token);
                at.map(|at| few.swap_remove(at)).is_some()
            }
            Self::Many(many) => {
                let found = many.remove(&token).is_some();
                if many.is_empty() {
                    *self = Self::default();
                } else {
                    shrink_after_burst(many, 4 * MANY);
                }
                found
            }
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Few(few) => few.is_empty(),
            Self::Many(many) => many.is_empty(),
        }
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use crate::process::revoked::Revoked;
    use proptest::prelude::*;
    use std::sync::Arc;

    #[derive(Debug, Clone)]
    enum Op {
        Begin(Tag),
        /// As a timer keeps it.
        Keep(Tag),
        TakeTickets,
        Finish(usize),
        TakeBack(Tag),
        ForgetAll,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            12 => (0..4_u64).prop_map(Op::Begin),
            6 => (0..4_u64).prop_map(Op::Keep),
            1 => Just(Op::TakeTickets),
            8 => any::<usize>().prop_map(Op::Finish),
            1 => (0..4_u64).prop_map(Op::TakeBack),
            1 => Just(Op::ForgetAll),
        ]
    }

    proptest! {
        // pins: P6, P7
        #[test]
        fn each_yield_finishes_once(ops in proptest::collection::vec(op(), 0..300)) {
            let all = Arc::new(Revoked::default());
            let mut set = Outstanding::default();
            let mut ever = Vec::new();
            let mut model = HashMap::new();
            let mut revoked = HashMap::new();
            let mut kept = HashMap::new();
            for op in ops {
                match op {
                    Op::Begin(tag) => {
                        let token = set.number();
                        set.insert(token, tag, Asked::default());
                        prop_assert!(!ever.contains(&token), "a number was used twice");
                        ever.push(token);
                        model.insert(token, tag);
                    }
                    Op::Keep(tag) => {
                        let token = set.number();
                        let shard = ShardId::OUTSIDE;
                        set.insert_held(token, tag, Asked::default(), Ticket { shard, key: token });
                        ever.push(token);
                        model.insert(token, tag);
                        kept.insert(token, tag);
                    }
                    Op::TakeTickets => {
                        let mut keys: Vec<_> = set.take_tickets().iter().map(|it| it.key).collect();
                        keys.sort_unstable();
                        let mut expected: Vec<_> = kept.drain().map(|(token, _)| token).collect();
                        expected.sort_unstable();
                        prop_assert_eq!(keys, expected);
                    }
                    Op::Finish(at) if !ever.is_empty() => {
                        let token = ever[at % ever.len()];
                        kept.remove(&token);
                        prop_assert_eq!(set.finish(token), model.remove(&token).is_some());
                        revoked.remove(&token);
                    }
                    Op::Finish(_) => {}
                    Op::TakeBack(tag) => {
                        let taken = set.take_back(tag, || OwnRevoked::new(&all, 7));
                        let expected = model.extract_if(|_, its| *its == tag);
                        let mut expected: Vec<_> = expected.map(|(token, _)| token).collect();
                        expected.sort_unstable();
                        let keys = taken.tickets.iter().map(|it| it.key);
                        prop_assert!(keys.clone().all(|it| kept.remove(&it) == Some(tag)));
                        let mut all: Vec<_> = taken.tokens.iter().copied().chain(keys).collect();
                        all.sort_unstable();
                        prop_assert_eq!(&all, &expected);
                        prop_assert!(taken.tokens.is_sorted());
                        prop_assert!(!kept.values().any(|its| *its == tag));
                        revoked.extend(taken.tokens.into_iter().map(|token| (token, ())));
                    }
                    Op::ForgetAll => { set.forget_all(); model.clear(); kept.clear(); }
                }
                prop_assert!(!set.finish(0), "no yield has that number");
                prop_assert_eq!(set.is_empty(), model.is_empty());
                for &token in &ever {
                    prop_assert_eq!(all.contains(7, token), revoked.contains_key(&token));
                    prop_assert_eq!(set.is_revoked(token), revoked.contains_key(&token));
                }
            }
            drop(set);
            prop_assert!(ever.iter().all(|&token| !all.contains(7, token)));
        }
    }
}
