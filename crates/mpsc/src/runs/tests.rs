//! What runs are for, when there are any, and when they are given up. That nobody else uses a block of one, and
//! that all come back, is tested where blocks are.

use super::*;
use crate::cache::{clear, end_runs, give, has_runs, note_behind, take, take_near};
use crate::slab::SLAB;
use std::thread;

/// Of which a slab has 62.
const SIZE: Size = Size(3);

const QUEUES: usize = 100;

/// Runs a test in a thread of its own, which keeps nothing yet.
fn fresh(test: impl FnOnce() + Send + 'static) {
    thread::spawn(test).join().unwrap();
}

/// Addresses as queues have them that are parts of neighbours.
fn keys() -> impl Iterator<Item = u64> + Clone {
    (0x7f00_0000_1000..).step_by(256).take(QUEUES)
}

fn send(key: u64) -> NonNull<u8> {
    take_near(SIZE, key)
}

/// Sends so many to each in turn; `note` says whether it is behind. What was taken, queue by queue.
#[must_use]
fn send_in_turn(rounds: usize, note: impl Fn(usize) -> bool) -> Vec<Vec<NonNull<u8>>> {
    let mut taken = vec![Vec::new(); QUEUES];
    for _ in 0..rounds {
        for (queue, key) in keys().enumerate() {
            taken[queue].push(send(key));
            if note(queue) {
                note_behind(SIZE, key);
            }
        }
    }
    taken
}

fn give_all(blocks: impl IntoIterator<Item = NonNull<u8>>) {
    for block in blocks {
        // SAFETY: it was taken, and nobody uses it.
        unsafe { give(Set::of(block, SIZE), SIZE) };
    }
}

/// How many of the links from one block to the next lead to the next place.
fn links_to_neighbours(blocks: &[NonNull<u8>]) -> usize {
    let is_next = |pair: &&[NonNull<u8>]| {
        pair[1].addr().get().wrapping_sub(pair[0].addr().get()) == SIZE.bytes()
    };
    blocks.windows(2).filter(is_next).count()
}

/// The same of several queues, each by itself.
fn links_of_all(queues: &[Vec<NonNull<u8>>]) -> usize {
    let links = queues.iter().map(|blocks| links_to_neighbours(blocks));
    links.sum()
}

#[test]
fn queues_that_are_behind_have_their_nodes_side_by_side() {
    fresh(|| {
        let before = send_in_turn(20, |_| true);
        assert!(has_runs(SIZE));
        let taken = send_in_turn(160, |_| true);
        let links = links_of_all(&taken);
        // Some share a place, and some runs are short, at the end of a slab.
        assert!(links > QUEUES * 160 / 2, "{links}");
        let pages = |blocks: &[NonNull<u8>]| {
            let pages = blocks.iter().map(|block| block.addr().get() / SLAB);
            pages.collect::<std::collections::BTreeSet<_>>().len()
        };
        let most = taken.iter().map(|blocks| pages(blocks)).max().unwrap();
        assert!(most < 160 / 4, "{most}");
        give_all(before.into_iter().chain(taken).flatten());
    });
}

/// Their nodes are neighbours of other queues' nodes: the lowest of those that there are.
#[test]
fn queues_that_keep_up_have_no_runs() {
    fresh(|| {
        let taken = send_in_turn(100, |_| false);
        assert!(!has_runs(SIZE));
        let links = links_of_all(&taken);
        assert_eq!(links, 0);
        give_all(taken.into_iter().flatten());
    });
}

#[test]
fn one_queue_that_is_behind_needs_no_runs() {
    fresh(|| {
        for _ in 0..100_000 {
            note_behind(SIZE, 0x1000);
        }
        assert!(!has_runs(SIZE));
    });
}

/// While others have runs.
#[test]
fn a_queue_that_keeps_up_has_no_runs_but_those_that_it_shares() {
    fresh(|| {
        // Half of them are behind.
        let taken = send_in_turn(200, |queue| queue % 2 == 0);
        assert!(has_runs(SIZE));
        let links = |start| {
            let queues = taken.iter().skip(start).step_by(2);
            queues
                .map(|blocks| links_to_neighbours(blocks))
                .sum::<usize>()
        };
        let (behind, others) = (links(0), links(1));
        assert!(others < behind / 4, "{behind} and {others}");
        give_all(taken.into_iter().flatten());
    });
}

/// As often as needed for a table, and no more.
fn turns(times: u32) {
    let keys = [0x1000, 0x2000];
    for key in keys.iter().cycle().take(times as usize) {
        assert!(!has_runs(SIZE));
        note_behind(SIZE, *key);
    }
}

#[test]
fn a_table_of_no_use_is_given_up_and_the_next_takes_longer() {
    fresh(|| {
        let mut needed = TURNS;
        for _ in 0..3 {
            turns(needed);
            assert!(has_runs(SIZE), "after {needed}");
            let sends = keys()
                .cycle()
                .take_while(|_| has_runs(SIZE))
                .map(|key| give_all([send(key)]))
                .take(100_000)
                .count();
            let least = (u32::from(SENDS) * DECISIONS) as usize;
            assert!((least..2 * least).contains(&sends), "after {sends}");
            needed *= LONGER;
        }
    });
}

#[test]
fn a_table_of_use_stays() {
    fresh(|| {
        let taken = send_in_turn(70_000 / QUEUES, |_| true);
        assert!(has_runs(SIZE));
        give_all(taken.into_iter().flatten());
        end_runs();
        assert!(!has_runs(SIZE));
        // It takes no longer than the first.
        turns(TURNS);
        assert!(has_runs(SIZE));
    });
}

/// However often a table was of no use before.
#[test]
fn a_table_of_use_has_the_next_come_soon() {
    fresh(|| {
        for _ in 0..3 {
            give_all(send_in_turn(QUEUES, |_| true).into_iter().flatten());
            keys()
                .cycle()
                .take_while(|_| has_runs(SIZE))
                .for_each(|key| give_all([send(key)]));
        }
        let notes = keys().cycle().take_while(|_| !has_runs(SIZE));
        let notes = notes.map(|key| note_behind(SIZE, key)).count();
        assert!(notes > TURNS as usize, "{notes}");
        let taken = send_in_turn(70_000 / QUEUES, |_| true);
        end_runs();
        turns(TURNS);
        assert!(has_runs(SIZE));
        give_all(taken.into_iter().flatten());
    });
}

/// What is given up while there is nothing.
#[test]
fn an_end_without_a_table_forgets_no_turns() {
    fresh(|| {
        for key in [0x1000, 0x2000].iter().cycle().take(TURNS as usize) {
            note_behind(SIZE, *key);
            if !has_runs(SIZE) {
                end_runs();
            }
        }
        assert!(has_runs(SIZE));
    });
}

/// Several messages to each in one go count as one. Says how many links lead from the last of a group to a
/// neighbour, of how many.
fn send_groups(first_finds_it_behind: bool) -> (usize, usize) {
    const GROUP: usize = 10;
    let mut taken = vec![Vec::new(); QUEUES];
    for _ in 0..100 {
        for (queue, key) in keys().enumerate() {
            for message in 0..GROUP {
                taken[queue].push(send(key));
                if first_finds_it_behind || message > 0 {
                    note_behind(SIZE, key);
                }
            }
        }
    }
    let between = |blocks: &Vec<NonNull<u8>>| {
        let links = (GROUP..blocks.len()).step_by(GROUP);
        links
            .map(|first| links_to_neighbours(&blocks[first - 1..=first]))
            .sum::<usize>()
    };
    let links = taken.iter().map(between).sum();
    give_all(taken.into_iter().flatten());
    (links, QUEUES * 99)
}

#[test]
fn queues_that_are_sent_to_in_groups_have_runs_when_they_are_behind() {
    fresh(|| {
        let (behind, all) = send_groups(true);
        assert!(behind > all / 2, "{behind} of {all}");
    });
    fresh(|| {
        let (prompt, all) = send_groups(false);
        assert!(prompt < all / 10, "{prompt} of {all}");
    });
}

/// Nothing is sent to it in turn any more.
#[test]
fn one_queue_that_has_had_a_run_gets_no_more_of_them() {
    fresh(|| {
        let before = send_in_turn(100, |_| true);
        let key = 0x7f00_0000_1000;
        let (mut taken, mut others) = (Vec::new(), Vec::new());
        for _ in 0..300 {
            taken.push(send(key));
            others.push(take(SIZE));
        }
        assert!(has_runs(SIZE));
        // But what is left of the run that it has, and one for what was sent in turn since it got that.
        let links = links_to_neighbours(&taken);
        assert!(links < 2 * RUN as usize, "{links}");
        give_all(before.into_iter().flatten().chain(taken).chain(others));
    });
}

/// Of two queues that share a place one is served, also when they are sent to by turns.
#[test]
fn a_queue_without_a_place_is_another_queue() {
    fresh(|| {
        turns(TURNS);
        let mut keys = (0x1000..).step_by(16);
        let served = keys.next().unwrap();
        let other = keys.find(|&key| place_of(key) == place_of(served));
        let (mut taken, mut others) = (Vec::new(), Vec::new());
        for _ in 0..200 {
            taken.push(send(served));
            note_behind(SIZE, served);
            others.push(send(other.unwrap()));
            note_behind(SIZE, other.unwrap());
        }
        let links = links_to_neighbours(&taken);
        assert!(links > 100, "{links}");
        give_all(taken.into_iter().chain(others));
    });
}

/// Nor does it count that the one was behind to which was sent before.
#[test]
fn what_is_noted_of_another_queue_does_not_count() {
    fresh(|| {
        turns(TURNS);
        let taken = send_in_turn(60, |_| {
            note_behind(SIZE, 1);
            false
        });
        assert!(has_runs(SIZE));
        let links = links_of_all(&taken);
        assert_eq!(links, 0);
        give_all(taken.into_iter().flatten());
    });
}

/// One that has just got the place is behind from the first send on.
#[test]
fn the_first_send_to_a_new_place_counts() {
    fresh(|| {
        turns(TURNS);
        let (one, other) = (0x1000, 0x2000);
        let mut taken = Vec::new();
        // One of the first eight, and not the very first, finds it waiting.
        for round in 0..16 {
            taken.push(send(one));
            if round != 3 {
                note_behind(SIZE, one);
            }
            give_all([send(other)]);
        }
        let links = links_to_neighbours(&taken);
        assert!(links > 0, "{links}");
        give_all(taken);
    });
}

/// With many more queues than places, those of a place do not share its runs.
#[test]
fn a_run_is_one_queue_s() {
    fresh(|| {
        let of_one_place = |place| {
            let keys = (0x1000..)
                .step_by(16)
                .filter(move |&key| place_of(key) == place);
            keys.take(3).collect::<Vec<_>>()
        };
        let keys: Vec<u64> = (0..50).flat_map(of_one_place).collect();
        let mut taken: Vec<Vec<NonNull<u8>>> = vec![Vec::new(); keys.len()];
        for _ in 0..200 {
            for (key, taken) in keys.iter().zip(&mut taken) {
                taken.push(send(*key));
                note_behind(SIZE, *key);
            }
        }
        assert!(has_runs(SIZE));
        let served = |blocks: &&Vec<NonNull<u8>>| links_to_neighbours(blocks) > 100;
        assert_eq!(taken.iter().filter(served).count(), 50);
        give_all(taken.into_iter().flatten());
    });
}

/// When nothing is sent to the queue any more that it served.
#[test]
fn a_place_serves_another_queue_later() {
    fresh(|| {
        let before = send_in_turn(100, |_| true);
        give_all(before.into_iter().flatten());
        // Others come to the same places.
        let other = |key: u64| {
            let mut others = (0x5500_0000_0000..).step_by(16);
            others.find(|&other| place_of(other) == place_of(key))
        };
        let others: Vec<u64> = keys().filter_map(other).collect();
        let mut taken = vec![Vec::new(); QUEUES];
        for _ in 0..200 {
            for (key, taken) in others.iter().zip(&mut taken) {
                taken.push(send(*key));
                note_behind(SIZE, *key);
            }
        }
        assert!(has_runs(SIZE));
        let served = |blocks: &&Vec<NonNull<u8>>| links_to_neighbours(blocks) > 50;
        let served = taken.iter().filter(served).count();
        assert!(served > QUEUES * 3 / 4, "{served}");
        give_all(taken.into_iter().flatten());
    });
}

#[test]
fn who_clears_the_cache_gives_up_its_runs() {
    fresh(|| {
        turns(TURNS);
        assert!(has_runs(SIZE));
        clear();
        assert!(!has_runs(SIZE));
    });
}

/// And any number is a key.
#[test]
fn keys_at_the_same_distance_have_places_of_their_own() {
    for distance in [1, 16, 64, 192, 256, 4_096] {
        let places: std::collections::BTreeSet<_> = (0..QUEUES as u64)
            .map(|queue| place_of(0x7f00_0000_1000 + queue * distance))
            .collect();
        assert!(places.len() > QUEUES * 3 / 4, "{}", places.len());
    }
    for key in [0, u64::MAX, 1, 1 << 63] {
        assert!(place_of(key) < RUNS);
    }
}
