//! Texts for the numbers in events.

use super::line::Line;
use super::model::Name;
use foldhash::HashMap;

/// The texts of the events' numbers, each asked for once.
pub(super) struct Texts<N> {
    names: N,
    known: HashMap<u32, Name>,
    /// A verb with an object.
    phrases: HashMap<(&'static str, Name), Name>,
}

impl<N: FnMut(u32) -> Option<String>> Texts<N> {
    pub(super) fn new(names: N) -> Self {
        Self {
            names,
            known: HashMap::default(),
            phrases: HashMap::default(),
        }
    }

    /// Returns the text of a number, or `default` for 0.
    pub(super) fn of(&mut self, line: &mut Line, number: u32, default: &'static str) -> Name {
        if number == 0 {
            return line.names.add(default);
        }
        let names = &mut self.names;
        *self.known.entry(number).or_insert_with(|| {
            let text = names(number).unwrap_or_else(|| format!("#{number}"));
            line.names.add(&text)
        })
    }

    pub(super) fn phrase(&mut self, line: &mut Line, verb: &'static str, object: Name) -> Name {
        *self.phrases.entry((verb, object)).or_insert_with(|| {
            let text = format!("{verb} {}", line.names.text(object));
            line.names.add(&text)
        })
    }
}
