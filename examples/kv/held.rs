//! The long texts on their way to clients.
//!
//! A text is in memory once, for any number of clients: each answer has the same `Bytes`. But a
//! text that has been replaced or deleted stays until its slowest client has taken it. So all texts
//! together have a limit, and an answer beyond it is refused.

use super::connection::MANY_BYTES;
use super::protocol::Answer;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// See the head of this file.
pub(crate) struct Held {
    most: usize,
    texts: Mutex<Texts>,
}

#[derive(Default)]
struct Texts {
    /// Of different texts.
    bytes: usize,
    /// By their places in memory: how many answers have each, and its bytes.
    by_place: HashMap<usize, (usize, usize)>,
}

/// The long texts of some answers. They count until the holding is dropped, before the answers.
pub(crate) struct Holding {
    held: Arc<Held>,
    places: Vec<usize>,
}

impl Held {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        let texts = Mutex::default();
        Arc::new(Self { most, texts })
    }

    fn texts(&self) -> MutexGuard<'_, Texts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the long texts of these answers, and refuses the texts beyond the limit.
    pub(crate) fn hold(self: &Arc<Self>, answers: &mut [Answer]) -> Holding {
        let mut holding = Holding {
            held: Arc::clone(self),
            places: Vec::new(),
        };
        answers.iter_mut().for_each(|it| holding.add(it));
        holding
    }

    fn add(&self, place: usize, bytes: usize) -> bool {
        let mut texts = self.texts();
        let all = texts.bytes.saturating_add(bytes);
        let is_new = match texts.by_place.entry(place) {
            Entry::Occupied(mut text) => {
                text.get_mut().0 += 1;
                false
            }
            Entry::Vacant(_) if all > self.most => return false,
            Entry::Vacant(text) => {
                text.insert((1, bytes));
                true
            }
        };
        if is_new {
            texts.bytes = all;
        }
        true
    }
}

impl Holding {
    fn add(&mut self, answer: &mut Answer) {
        match answer {
            Answer::List(parts) | Answer::Map(parts) | Answer::Push(parts) => {
                parts.iter_mut().for_each(|it| self.add(it));
            }
            Answer::Text(text) if text.len() >= MANY_BYTES => {
                let place = text.as_ptr().addr();
                if self.held.add(place, text.len()) {
                    self.places.push(place);
                } else {
                    let error = "ERR other clients have not yet taken their answers";
                    *answer = Answer::Error(error.into());
                }
            }
            _ => {}
        }
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        if self.places.is_empty() {
            return;
        }
        let mut texts = self.held.texts();
        for place in &self.places {
            if let Entry::Occupied(mut text) = texts.by_place.entry(*place) {
                text.get_mut().0 -= 1;
                if text.get().0 == 0 {
                    let (_, bytes) = text.remove();
                    texts.bytes -= bytes;
                }
            }
        }
    }
}
