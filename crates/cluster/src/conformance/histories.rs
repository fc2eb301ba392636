//! Histories of a store, with concurrent writers and lost answers.

use super::stores::{SHORT, StoreHarness, ask};
use crate::linear::{Called, Object, is_linearizable};
use crate::store::{Entry, Revision, Store, StoreAnswer, StoreError, StoreOp};
use ganger_sync::sync::{Mutex, lock};
use std::sync::Arc;
use std::thread;

/// An entry by its operations one after the other. Each write has a value of its own.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Cell {
    /// The value. The revision is known when an answer has said it.
    value: Option<(Vec<u8>, Option<Revision>)>,
    /// The greatest revision so far.
    last: Revision,
}

#[derive(Debug, Clone)]
struct Asked(StoreOp, Result<StoreAnswer, StoreError>);

impl Cell {
    fn put(&self, value: &[u8], revision: Option<Revision>) -> Option<Self> {
        let last = revision.unwrap_or(self.last);
        let is_later = revision.is_none() || last > self.last;
        let value = Some((value.to_vec(), revision));
        is_later.then_some(Self { value, last })
    }

    /// Returns the state if the entry is this. A revision that is learnt is later than all before.
    fn is(&self, entry: Option<&Entry>) -> Option<Self> {
        match (&self.value, entry) {
            (None, None) => Some(self.clone()),
            (Some((value, revision)), Some(entry)) if *value == entry.value => match revision {
                Some(revision) => (*revision == entry.revision).then(|| self.clone()),
                None => self.put(value, Some(entry.revision)),
            },
            _ => None,
        }
    }

    fn has(&self, revision: Revision) -> bool {
        let value = self.value.as_ref();
        value.is_some_and(|(_, it)| it.is_none_or(|it| it == revision))
    }
}

impl Object for Cell {
    type Op = Asked;

    fn after(&self, Asked(op, answer): &Asked, is_known: bool) -> Option<Self> {
        let written = match answer {
            Ok(StoreAnswer::Written(revision) | StoreAnswer::Deleted(revision)) => Some(*revision),
            _ => None,
        };
        match (op, answer) {
            (_, Err(StoreError::Exists(entry) | StoreError::Conflict(Some(entry)))) => {
                self.is(Some(entry))
            }
            (_, Err(StoreError::Conflict(None))) => self.is(None),
            (_, Err(StoreError::Unavailable(_))) => Some(self.clone()),
            (StoreOp::Get { .. }, Ok(StoreAnswer::Found(entry))) => self.is(entry.as_ref()),
            (StoreOp::Create { value, .. }, _) if written.is_some() || !is_known => {
                self.is(None)?.put(value, written)
            }
            (
                StoreOp::Update {
                    value, revision, ..
                },
                _,
            ) if written.is_some() || !is_known => {
                self.has(*revision).then_some(self)?.put(value, written)
            }
            (StoreOp::Delete { revision, .. }, _) if written.is_some() || !is_known => {
                let last = written.unwrap_or(self.last);
                let is_right = self.has(*revision) && (written.is_none() || last > self.last);
                is_right.then_some(Self { value: None, last })
            }
            _ => None,
        }
    }
}

/// Writes concurrently to a few keys, while the harness disturbs: each key's history could have
/// come from operations one after the other.
pub fn histories_are_linearizable<H: StoreHarness>() {
    const KEYS: usize = 12;
    let mut harness = H::start();
    let history = Arc::new(
        (0..KEYS)
            .map(|_| Mutex::default())
            .collect::<Vec<Mutex<Vec<_>>>>(),
    );
    let clock = Arc::new(Mutex::new(0_u64));
    let writers: Vec<_> = (0..4_usize)
        .map(|writer| {
            let store = harness.store(writer % 2);
            let (history, clock) = (Arc::clone(&history), Arc::clone(&clock));
            thread::spawn(move || {
                for round in 0..15 {
                    for (key, history) in history.iter().enumerate() {
                        write(&store, writer * 100 + round, key, history, &clock);
                    }
                }
            })
        })
        .collect();
    let pause = SHORT / 40;
    for round in 0.. {
        if writers.iter().all(thread::JoinHandle::is_finished) {
            break;
        }
        if harness.part(true) {
            thread::sleep(pause);
            harness.part(false);
        }
        thread::sleep(pause);
        if round == 4 {
            harness.restart();
        }
    }
    writers
        .into_iter()
        .for_each(|it| it.join().expect("it writes"));
    let mut certain = 0;
    for history in history.iter() {
        let history = lock(history);
        let written = |it: &&Called<Asked>| matches!(it.op.1, Ok(StoreAnswer::Written(_)));
        certain += history.iter().filter(written).count();
        let begin = Cell {
            value: None,
            last: Revision(0),
        };
        assert!(is_linearizable(&begin, &history), "{history:#?}");
    }
    assert!(certain > KEYS, "{certain} writes");
}

fn write(
    store: &Arc<dyn Store>,
    number: usize,
    key: usize,
    history: &Mutex<Vec<Called<Asked>>>,
    clock: &Mutex<u64>,
) {
    let tick = || {
        let mut clock = lock(clock);
        *clock += 1;
        *clock
    };
    let name = format!("key {key}");
    // A revision of any answer so far.
    let seen = lock(history).iter().rev().find_map(|it| match &it.op.1 {
        Ok(StoreAnswer::Written(revision)) => Some(*revision),
        Err(StoreError::Exists(entry)) => Some(entry.revision),
        Ok(StoreAnswer::Found(Some(entry))) => Some(entry.revision),
        _ => None,
    });
    let revision = seen.unwrap_or(Revision(1));
    let op = match number % 4 {
        0 => StoreOp::create(name, number.to_string()),
        1 => StoreOp::update(name, number.to_string(), revision),
        2 => StoreOp::delete(name, revision),
        _ => StoreOp::get(name),
    };
    let called = tick();
    let answer = ask(store, op.clone());
    let returned = (answer != Err(StoreError::Unknown)).then(tick);
    let call = Called {
        op: Asked(op, answer),
        called,
        returned,
    };
    lock(history).push(call);
}
