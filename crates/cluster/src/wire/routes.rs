//! Routes: a message often has the target, the source and the topic of one before.
//!
//! A session has a table for each lane and direction. A hash of the route chooses its place.
//!
//! 1. The sender writes 1, how many routes were said before, the place and the route, and keeps the
//!    route in its place. The former route is said again when it comes back.
//! 2. Later the sender writes the place + 2.
//! 3. Outside of frames the sender writes 0 and the route, which neither side keeps.
//!
//! A lane is FIFO and loses nothing, so the receiver's table follows the sender's. A receiver that
//! has missed a route nevertheless refuses the next by its number. Both tables are dropped with the
//! session.

use ganger_proc_api::{Pid, Symbol};

/// The places of a table.
pub(crate) const ROUTES: usize = 256;

/// Whence a message comes, where it goes, and its topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) target: Pid,
    pub(crate) source: Option<Pid>,
    pub(crate) topic: Symbol,
}

impl Route {
    /// Returns the place of the route in the table: processes started in a row have different
    /// places (Fibonacci hashing, Knuth 6.4). A place depends on no address, so simulations repeat.
    fn place(&self) -> usize {
        const RATIO: u64 = 0x9e37_79b9_7f4a_7c15;
        const OF_SOURCES: u64 = 0xd1b5_4a32_d192_ed03;
        let topic = self.topic.as_str().as_bytes();
        let topic = match (topic.first_chunk(), topic.last_chunk()) {
            (Some(first), Some(last)) => {
                u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(29)
            }
            _ => (topic.iter()).fold(0, |all, byte| all << 8 | u64::from(*byte)),
        };
        let source = self.source.map_or(0, |it| it.id().wrapping_add(1));
        let ids = (self.target.id()).wrapping_add(source.wrapping_mul(OF_SOURCES));
        let all = ids.wrapping_mul(RATIO) ^ topic.wrapping_mul(OF_SOURCES);
        let place = all >> (u64::BITS - ROUTES.ilog2());
        usize::try_from(place).map_or(0, |it| it % ROUTES)
    }
}

/// The sender's table or the receiver's.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    places: Vec<Option<Route>>,
    /// How many were said.
    said: u64,
}

impl Routes {
    /// Returns the place of a route; and its number, if the peer does not know the route there.
    /// Afterwards the peer does.
    pub(super) fn say(&mut self, route: Route) -> (usize, Option<u64>) {
        let place = route.place();
        let is_known = self.get(place) == Some(route);
        let number = (!is_known).then_some(self.said);
        if !is_known {
            self.keep(place, route);
        }
        (place, number)
    }

    pub(super) fn get(&self, place: usize) -> Option<Route> {
        *self.places.get(place)?
    }

    pub(super) fn keep(&mut self, place: usize, route: Route) {
        if self.places.is_empty() {
            self.places = vec![None; ROUTES];
        }
        self.places[place] = Some(route);
        self.said += 1;
    }

    /// Returns the number of definitions said.
    pub(super) fn said(&self) -> u64 {
        self.said
    }

    /// Forgets the routes of a message that was taken back.
    pub(super) fn forget(&mut self, since: u64) {
        if self.said != since {
            self.places.clear();
            self.said = since;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::symbols::{DEFINITION, FIRST};
    use crate::wire::{Apart, Fields as _, Known, Packer, ReadError, Reader, Symbols};
    use ganger_proc_api::HostName;
    use std::collections::HashSet;

    fn route(target: u64, source: Option<u64>, topic: &'static str) -> Route {
        let host = HostName::new("main").unwrap();
        Route {
            target: Pid::new(host, target),
            source: source.map(|id| Pid::new(host, id)),
            topic: Symbol::new(topic),
        }
    }

    /// Has a peer read what a sender writes for these routes, whose parts are their numbers in
    /// `all`. Returns how many bytes a route takes at the end.
    fn cross(all: &[Route], order: impl Iterator<Item = usize>) -> usize {
        let (mut symbols, mut known) = (Symbols::default(), Known::default());
        let mut last = 0;
        for number in order {
            let mut packer = Packer::new(0);
            let taken = packer.add(1, 1000, &mut symbols, |writer| {
                writer.route(all[number], |writer| writer.varint(number as u64));
            });
            last = taken.unwrap();
            let message = packer.into_messages().next().unwrap();
            let mut reader = Reader::new(message.body);
            let parts = |reader: &mut Reader, _: &mut Known| {
                Ok(all[usize::try_from(reader.varint()?).unwrap()])
            };
            let found = reader.route(&mut known, parts);
            assert_eq!(found, Ok(all[number]));
            assert!(reader.is_empty());
        }
        last
    }

    // pins: B10
    #[test]
    fn routes_are_said_once_until_another_takes_their_place() {
        let few = [
            route(1, None, "a"),
            route(1, Some(2), "a"),
            route(1, Some(2), "b"),
            route(3, Some(2), "b"),
        ];
        let turns = (0..40).map(|number| number % few.len());
        assert!(cross(&few, turns) <= 5, "length, kind and a number");
        let many: Vec<_> = (0..2000)
            .map(|id| route(id % 700, Some(id % 3), "a"))
            .collect();
        let mut random = fastrand::Rng::with_seed(7);
        cross(&many, (0..20_000).map(|_| random.usize(..many.len())));
    }

    // pins: B10
    #[test]
    fn pairs_of_processes_and_topics_have_different_places() {
        const TOPICS: [&str; 3] = ["a", "an order", "an order of a customer"];
        let all = (0..16).flat_map(|target| (0..16).map(move |source| (target, source)));
        let places = |topic| {
            let routes = all.clone().map(move |it| route(it.0, Some(it.1), topic));
            let places: HashSet<_> = routes.map(|it| it.place()).collect();
            places.len()
        };
        for topic in TOPICS {
            // A random choice has 162 of 256.
            assert!(places(topic) > 140, "{topic}: {}", places(topic));
            // The place is the text's, wherever the text is.
            let copied = Box::leak(topic.to_owned().into_boxed_str());
            assert_eq!(
                route(1, Some(2), topic).place(),
                route(1, Some(2), copied).place()
            );
        }
        let of_topics: HashSet<_> = TOPICS.map(|it| route(1, Some(2), it).place()).into();
        assert_eq!(of_topics.len(), TOPICS.len());
    }

    // pins: B10
    #[test]
    fn the_route_of_a_refused_message_is_said_again() {
        let mut symbols = Symbols::default();
        let mut packer = Packer::new(0);
        for _ in 0..2 {
            let refused = packer.add(1, 100, &mut symbols, |writer| {
                writer.route(route(1, None, "a"), |writer| writer.raw(&[0; 200]));
            });
            assert!(refused.is_err());
        }
        let taken = packer.add(1, 1000, &mut symbols, |writer| {
            writer.route(route(1, None, "a"), |writer| writer.raw(&[0; 200]));
        });
        assert!(taken.unwrap() > 200);
    }

    // pins: B10
    #[test]
    fn unknown_places_and_routes_out_of_turn_are_refused() {
        let mut known = Known::default();
        let mut read = |numbers: &[u64]| {
            let mut fields = Apart::default();
            numbers.iter().for_each(|number| fields.varint(*number));
            let mut reader = Reader::new(fields.finish());
            let parts = |_: &mut Reader, _: &mut Known| Ok(route(1, None, "a"));
            let found = reader.route(&mut known, parts);
            assert!(found.is_ok() || found == Err(ReadError::Symbol));
            found.is_ok()
        };
        let beyond = ROUTES as u64;
        assert!(!read(&[DEFINITION, 1, 7]), "the first has the number 0");
        assert!(!read(&[DEFINITION, 0, beyond]));
        assert!(read(&[DEFINITION, 0, 7]) && read(&[FIRST + 7]));
        assert!(!read(&[DEFINITION, 0, 7]), "the next has the number 1");
        assert!(read(&[DEFINITION, 1, 7]));
        for number in [FIRST, FIRST + 8, FIRST + beyond, u64::MAX] {
            assert!(!read(&[number]), "{number}");
        }
    }
}
