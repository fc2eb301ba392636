//! A time line during its drawing.

use super::model::{
    Argument, Category, Entry, Flow, Form, Key, Name, Names, Shows, Track, Value, number,
};

pub(super) struct Line {
    pub(super) names: Names,
    pub(super) tracks: Vec<Track>,
    pub(super) entries: Vec<Entry>,
    pub(super) arguments: Vec<Argument>,
    flows: u32,
}

/// A slice was underway when the window began.
pub(super) const BEGAN_EARLIER: Argument = (Key::BeganEarlier, Value::Number(1));

/// A slice is underway when the window ends.
pub(super) const GOES_ON: Argument = (Key::GoesOn, Value::Number(1));

impl Line {
    pub(super) fn new() -> Self {
        Self {
            names: Names::new(),
            tracks: Vec::new(),
            entries: Vec::new(),
            arguments: Vec::new(),
            flows: 0,
        }
    }

    pub(super) fn track(&mut self, name: Name, shows: Shows) -> u32 {
        self.tracks.push(Track { name, shows });
        number(self.tracks.len() - 1)
    }

    /// Adds an entry; returns its place among the entries, for [`flow`](Self::flow).
    fn add(&mut self, entry: Entry, arguments: &[Argument]) -> usize {
        let begin = number(self.arguments.len());
        self.arguments.extend_from_slice(arguments);
        self.entries.push(Entry {
            arguments: begin,
            argument_count: u8::try_from(arguments.len()).expect("an entry has a few arguments"),
            ..entry
        });
        self.entries.len() - 1
    }

    pub(super) fn begin(
        &mut self,
        at: u64,
        track: u32,
        what: (Category, Name),
        arguments: &[Argument],
    ) -> usize {
        self.add(entry(at, track, Form::Begin, what), arguments)
    }

    pub(super) fn end(&mut self, at: u64, track: u32, category: Category, arguments: &[Argument]) {
        let what = (category, Name::default());
        self.add(entry(at, track, Form::End, what), arguments);
    }

    pub(super) fn instant(
        &mut self,
        at: u64,
        track: u32,
        what: (Category, Name),
        arguments: &[Argument],
    ) -> usize {
        self.add(entry(at, track, Form::Instant, what), arguments)
    }

    pub(super) fn value(&mut self, at: u64, track: u32, value: u64) {
        let what = (Category::Queue, Name::default());
        self.add(entry(at, track, Form::Value(value), what), &[]);
    }

    /// Draws an arrow from an entry to a later entry.
    pub(super) fn flow(&mut self, start: usize, end: usize) {
        self.entries[start].flow = Flow::Starts(self.flows);
        self.entries[end].flow = Flow::Ends(self.flows);
        self.flows += 1;
    }
}

fn entry(at: u64, track: u32, form: Form, (category, name): (Category, Name)) -> Entry {
    Entry {
        at,
        track,
        form,
        category,
        name,
        flow: Flow::None,
        arguments: 0,
        argument_count: 0,
    }
}
