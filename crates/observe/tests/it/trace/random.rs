//! Random records in rings of several threads: the files are always well formed.

use super::shown::{Shown, shown};
use super::{checker, json, perfetto, text};
use ganger_observe::trace::{Thread, Trace};
use ganger_ring::event::{After, Cause, Event, Pick, Record, WORDS};
use ganger_ring::ring;
use proptest::collection::vec;
use proptest::prelude::*;

/// Records of few processes, names, codes and keys, which meet often; some are unknown.
fn record() -> impl Strategy<Value = Record> {
    let parts = (0..4_u64, 1..=18_u64, 0..5_u64, 0..7_u64, 0..5_u64, 0..5_u64);
    parts.prop_map(|(time, kind, detail, name, process, argument)| {
        [time, name << 32 | detail << 8 | kind, process, argument]
    })
}

/// Writes the records into rings, with increasing times, and copies the rings.
fn threads(bytes: usize, all: Vec<Vec<Record>>) -> Vec<Thread> {
    let thread = |(number, records): (usize, Vec<Record>)| {
        let (writer, reader) = ring::<WORDS>(bytes);
        let mut now = 0;
        for [pause, word, process, argument] in records {
            now += pause;
            writer.push([now, word, process, argument]);
        }
        Thread::new(format!("worker {number}"), reader.snapshot())
    };
    all.into_iter().enumerate().map(thread).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_records(
        bytes in 0_usize..3_000,
        all in vec(vec(record(), 0..60), 0..4),
        start in 0..40_u64,
        end in 0..200_u64,
    ) {
        let trace = Trace::new("main", start..end, threads(bytes, all), text);
        let file = perfetto(&trace);
        shown(&file);
        checker::check(&file);
        json::check(&trace);
        let read = Trace::read(&file[..]).expect("a file of ours");
        prop_assert_eq!(perfetto(&read), file);
        prop_assert_eq!(read.summary().to_string(), trace.summary().to_string());
        prop_assert_eq!(
            (read.lost(), read.left_out(), read.unknown(), read.from(), read.to()),
            (trace.lost(), trace.left_out(), trace.unknown(), trace.from(), trace.to())
        );
    }

    /// Reads or refuses a damaged file, without a panic.
    #[test]
    fn any_damage(
        all in vec(vec(record(), 1..30), 1..3),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        end in any::<prop::sample::Index>(),
    ) {
        let trace = Trace::new("main", 0..0, threads(2_000, all), text);
        let mut file = perfetto(&trace);
        checker::check(&file[..end.index(file.len())]);
        for (place, byte) in changes {
            let place = place.index(file.len());
            file[place] = byte;
        }
        checker::check(&file);
    }
}

/// A move of a scheduler with two workers and a few processes.
#[derive(Debug, Clone, Copy)]
struct Move {
    worker: usize,
    process: usize,
    pause: u64,
    waits: bool,
}

/// Returns the id of a process.
fn id(process: usize) -> u64 {
    process as u64 + 1
}

/// A scheduler with plain rules, and an account of its moves.
#[derive(Default)]
struct Plain {
    now: u64,
    events: [Vec<(u64, Event)>; 2],
    running: [Option<(usize, u64)>; 2],
    /// Since when each process is ready, or waits.
    ready: [Option<u64>; 4],
    waits: [Option<u64>; 4],
    turns: Vec<(u64, u64)>,
    queued: Vec<(u64, u64)>,
    rested: Vec<(u64, u64)>,
    wakes: usize,
}

impl Plain {
    fn note(&mut self, worker: usize, event: Event) {
        self.events[worker].push((self.now, event));
    }

    fn play(
        &mut self,
        Move {
            worker,
            process,
            pause,
            waits,
        }: Move,
    ) {
        self.now += 1 + pause;
        if let Some((running, since)) = self.running[worker].take() {
            let after = if waits { After::Waits } else { After::Ready };
            self.note(
                worker,
                Event::TurnEnds {
                    process: id(running),
                    after,
                    steps: 1,
                },
            );
            self.turns.push((since, self.now));
            let list = if waits {
                &mut self.waits
            } else {
                &mut self.ready
            };
            list[running] = Some(self.now);
        } else if let Some(since) = self.waits[process].take() {
            let cause = Cause::Message;
            self.note(
                worker,
                Event::Woken {
                    process: id(process),
                    by: 0,
                    cause,
                },
            );
            self.rested.push((since, self.now));
            self.ready[process] = Some(self.now);
            self.wakes += 1;
        } else if let Some(since) = self.ready[process].take() {
            let pick = Pick::Local;
            self.note(
                worker,
                Event::TurnBegins {
                    process: id(process),
                    name: 1,
                    pick,
                },
            );
            self.queued.push((since, self.now));
            self.running[worker] = Some((process, self.now));
        }
    }
}

fn slices(shown: &Shown, category: &str) -> Vec<(u64, u64)> {
    let mut all: Vec<_> = shown.of(category).iter().map(|it| (it.2, it.3)).collect();
    all.sort_unstable();
    all
}

proptest! {
    /// Turns, queues and waits are exactly as in the plain account.
    #[test]
    fn a_scheduler_is_drawn_as_it_is(
        moves in vec((0..2_usize, 0..4_usize, 0..9_u64, any::<bool>()), 0..120),
    ) {
        let mut plain = Plain { now: 1, ..Plain::default() };
        for process in 0..4 {
            plain.note(0, Event::Spawned { process: id(process), parent: 0, name: 1 });
            plain.ready[process] = Some(1);
        }
        for (worker, process, pause, waits) in moves {
            plain.play(Move { worker, process, pause, waits });
        }
        let to = plain.now + 1;
        let threads = plain.events.iter().enumerate().map(|(place, events)| {
            super::thread(&format!("worker {place}"), events)
        });
        let shown = shown(&perfetto(&super::trace(to, threads)));

        let rest = |list: [Option<u64>; 4]| {
            list.into_iter().flatten().map(move |since| (since, to))
        };
        plain.turns.extend(plain.running.into_iter().flatten().map(|(_, since)| (since, to)));
        plain.queued.extend(rest(plain.ready));
        plain.rested.extend(rest(plain.waits));
        let expected = [("turn", plain.turns), ("ready", plain.queued), ("waits", plain.rested)];
        for (category, mut expected) in expected {
            expected.sort_unstable();
            prop_assert_eq!(slices(&shown, category), expected, "{}", category);
        }
        prop_assert_eq!(shown.of("life").len(), 4);
        prop_assert!(shown.flows.len() <= plain.wakes + 4);
        let wakes = shown.instants.iter().filter(|it| it.category == "wake").count();
        prop_assert_eq!(wakes, plain.wakes);
    }
}
