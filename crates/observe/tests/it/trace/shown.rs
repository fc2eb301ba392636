//! A file as Perfetto shows it: an independent reader, which checks the file at the same time.

use super::schema::{self, Interned, TrackDescriptor, TrackEvent, Type};
use prost::Message as _;
use std::collections::{BTreeMap, HashMap};

/// A file as it is shown.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    pub(crate) scheduler: String,
    /// The arguments of the first event.
    pub(crate) head: BTreeMap<String, String>,
    /// In the order of their ends.
    pub(crate) slices: Vec<Slice>,
    pub(crate) instants: Vec<Slice>,
    /// Queue, time, length.
    pub(crate) values: Vec<(String, u64, i64)>,
    /// The names of both ends.
    pub(crate) flows: Vec<(String, String)>,
}

/// A slice, or an instant, whose end is its begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) track: String,
    pub(crate) category: String,
    pub(crate) name: String,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) arguments: BTreeMap<String, String>,
}

impl Shown {
    /// Returns the slices of a category: track, name, begin, end.
    pub(crate) fn of(&self, category: &str) -> Vec<(&str, &str, u64, u64)> {
        let slices = self
            .slices
            .iter()
            .filter(|slice| slice.category == category);
        slices
            .map(|it| (&*it.track, &*it.name, it.begin, it.end))
            .collect()
    }

    pub(crate) fn instants(&self) -> Vec<(&str, &str, u64)> {
        let instants = self.instants.iter();
        instants
            .map(|it| (&*it.track, &*it.name, it.begin))
            .collect()
    }

    /// Returns the only slice or instant with this name.
    pub(crate) fn only(&self, name: &str) -> &Slice {
        let mut found = self
            .slices
            .iter()
            .chain(&self.instants)
            .filter(|it| it.name == name);
        let only = found
            .next()
            .unwrap_or_else(|| panic!("no {name}: {self:#?}"));
        assert!(found.next().is_none(), "two {name}: {self:#?}");
        only
    }
}

/// The texts of a kind, by their ids.
#[derive(Default)]
struct Texts(HashMap<u64, String>);

impl Texts {
    fn add(&mut self, all: Vec<Interned>) {
        for Interned { iid, name } in all {
            let iid = iid.expect("an id");
            assert_ne!(iid, 0, "0 stands for no text");
            let old = self.0.insert(iid, name.expect("a text"));
            assert_eq!(old, None, "an id is used once");
        }
    }

    fn get(&self, iid: u64) -> String {
        self.0[&iid].clone()
    }
}

struct Track {
    name: String,
    is_counter: bool,
    open: Vec<Slice>,
}

#[derive(Default)]
struct Viewer {
    shown: Shown,
    tracks: BTreeMap<u64, Track>,
    categories: Texts,
    names: Texts,
    keys: Texts,
    texts: Texts,
    flows: HashMap<u64, Option<String>>,
    now: u64,
}

/// Reads a file with the published schema, and checks its form.
pub(crate) fn shown(file: &[u8]) -> Shown {
    let trace = schema::Trace::decode(file).expect("a message of Perfetto's");
    assert_eq!(
        trace.encoded_len(),
        file.len(),
        "a field that the schema does not have"
    );
    let mut viewer = Viewer::default();
    for (number, packet) in trace.packet.into_iter().enumerate() {
        let is_first = number == 0;
        assert_eq!(packet.trusted_packet_sequence_id, Some(1));
        assert_eq!(packet.sequence_flags, Some(if is_first { 1 } else { 2 }));
        assert_eq!(packet.first_packet_on_sequence, is_first.then_some(true));
        assert_eq!(packet.previous_packet_dropped, is_first.then_some(1));
        if let Some(data) = packet.interned_data {
            viewer.categories.add(data.event_categories);
            viewer.names.add(data.event_names);
            viewer.keys.add(data.debug_annotation_names);
            viewer.texts.add(data.debug_annotation_string_values);
        }
        match (packet.track_descriptor, packet.track_event) {
            (Some(track), None) => viewer.track(track),
            (None, Some(event)) => viewer.event(packet.timestamp.expect("a time"), &event),
            other => panic!("a packet has one of both: {other:?}"),
        }
    }
    for (uuid, track) in viewer.tracks {
        assert!(track.open.is_empty(), "slices without an end on {uuid}");
    }
    for (flow, open) in viewer.flows {
        assert_eq!(open, None, "the flow {flow} has one end");
    }
    viewer.shown
}

impl Viewer {
    fn track(&mut self, it: TrackDescriptor) {
        let uuid = it.uuid.expect("a number");
        assert_ne!(uuid, 0);
        let mut name = it.name.unwrap_or_default();
        if let Some(process) = it.process {
            assert!(self.tracks.is_empty(), "the process comes first");
            assert!(process.pid.is_some() && it.parent_uuid.is_none());
            name = process.process_name.expect("a name");
            self.shown.scheduler.clone_from(&name);
        } else {
            let parent = it.parent_uuid.expect("a parent");
            assert!(self.tracks.contains_key(&parent), "{parent} comes later");
        }
        if let Some(thread) = it.thread {
            assert!(thread.pid.is_some() && thread.tid.is_some());
            assert_ne!(thread.tid, thread.pid, "that would be the main thread");
            name = thread.thread_name.expect("a name");
        }
        let track = Track {
            name,
            is_counter: it.counter.is_some(),
            open: Vec::new(),
        };
        assert!(
            self.tracks.insert(uuid, track).is_none(),
            "two tracks {uuid}"
        );
    }

    fn event(&mut self, at: u64, event: &TrackEvent) {
        let is_head = self.shown.head.is_empty();
        assert!(is_head || at >= self.now, "time goes back");
        self.now = at;
        let arguments = self.arguments(event);
        if is_head {
            assert_eq!(event.track_uuid, Some(1));
            assert_eq!(event.name.as_deref(), Some("trace"));
            self.shown.head = arguments;
            return;
        }
        let track = self.tracks.get_mut(&event.track_uuid.expect("a track"));
        let track = track.expect("a track that is described before");
        let form = event.r#type();
        assert_eq!(form == Type::Counter, track.is_counter);
        let slice = |categories: &Texts, names: &Texts| Slice {
            track: track.name.clone(),
            category: categories.get(event.category_iids[0]),
            name: names.get(event.name_iid.expect("a name")),
            begin: at,
            end: at,
            arguments: arguments.clone(),
        };
        let mut name = String::new();
        match form {
            Type::SliceBegin => {
                let slice = slice(&self.categories, &self.names);
                name.clone_from(&slice.name);
                track.open.push(slice);
            }
            Type::SliceEnd => {
                let mut slice = track.open.pop().expect("an end has a begin");
                slice.end = at;
                slice.arguments.extend(arguments);
                self.shown.slices.push(slice);
            }
            Type::Instant => {
                let slice = slice(&self.categories, &self.names);
                name.clone_from(&slice.name);
                self.shown.instants.push(slice);
            }
            Type::Counter => {
                let value = event.counter_value.expect("a value");
                self.shown.values.push((track.name.clone(), at, value));
            }
            Type::Unspecified => panic!("an event without a type"),
        }
        for flow in &event.flow_ids {
            let old = self.flows.insert(*flow, Some(name.clone()));
            assert_eq!(old, None, "the flow {flow} starts twice");
        }
        for flow in &event.terminating_flow_ids {
            let open = self.flows.get_mut(flow).expect("a flow that has started");
            let start = open.take().expect("a flow that has not ended");
            self.shown.flows.push((start, name.clone()));
        }
    }

    fn arguments(&self, event: &TrackEvent) -> BTreeMap<String, String> {
        let argument = |it: &schema::DebugAnnotation| {
            let key = self.keys.get(it.name_iid.expect("a key"));
            let value = match (it.uint_value, it.string_value_iid) {
                (Some(number), None) => number.to_string(),
                (None, Some(iid)) => self.texts.get(iid),
                other => panic!("{key} has one value: {other:?}"),
            };
            (key, value)
        };
        event.debug_annotations.iter().map(argument).collect()
    }
}
