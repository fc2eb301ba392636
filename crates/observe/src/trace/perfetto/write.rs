//! The writer.

use super::fields::{
    FIRST, ONLY, PROCESSES, ROOT, annotation, event, interned, packet, trace, track,
};
use crate::trace::model::{
    Argument, Category, Entry, FORMAT, Flow, Form, Key, Name, Shows, Trace, Value,
};
use crate::wire::Message;
use std::io::{self, Write};

pub(in crate::trace) fn write(trace: &Trace, to: impl Write) -> io::Result<()> {
    let mut writer = Writer {
        trace,
        to,
        packet: Message::default(),
        event: Message::default(),
        inner: Message::default(),
        interned: Message::default(),
        categories: Ids::new(Category::ALL.len()),
        keys: Ids::new(Key::ALL.len()),
        names: Ids::new(trace.names.len()),
        texts: Ids::new(trace.names.len()),
        flows: Vec::new(),
        flow_count: 0,
    };
    writer.process()?;
    writer.head()?;
    writer.tracks()?;
    for entry in &trace.entries {
        writer.entry(entry, trace.arguments(entry))?;
    }
    writer.to.flush()
}

/// The ids of texts in the file: 0 for a text not in the file yet.
struct Ids {
    ids: Vec<u32>,
    last: u32,
}

impl Ids {
    fn new(texts: usize) -> Self {
        Self {
            ids: vec![0; texts],
            last: 0,
        }
    }

    /// Returns the id of a text, and adds a new text to `interned`.
    fn of(&mut self, place: usize, field: u32, text: &str, interned: &mut Message) -> u64 {
        let id = &mut self.ids[place];
        if *id == 0 {
            self.last += 1;
            *id = self.last;
            let mut entry = Message::default();
            entry.varint(interned::IID, u64::from(*id));
            entry.text(interned::TEXT, text);
            interned.message(field, &entry);
        }
        u64::from(*id)
    }
}

struct Writer<'a, W> {
    trace: &'a Trace,
    to: W,
    // Room for the messages, used again for each packet.
    packet: Message,
    event: Message,
    inner: Message,
    interned: Message,
    categories: Ids,
    keys: Ids,
    names: Ids,
    texts: Ids,
    /// The flows' numbers in the file, in the order of their starts, by their numbers in the trace.
    flows: Vec<u64>,
    flow_count: u64,
}

impl<W: Write> Writer<'_, W> {
    fn process(&mut self) -> io::Result<()> {
        self.inner.varint(track::PROCESS_PID, ONLY);
        self.inner.text(track::PROCESS_NAME, &self.trace.scheduler);
        self.event.varint(track::UUID, ROOT);
        self.event.message(track::PROCESS, &self.inner);
        self.packet.varint(packet::FIRST_PACKET_ON_SEQUENCE, 1);
        self.packet.varint(packet::PREVIOUS_PACKET_DROPPED, 1);
        self.descriptor(packet::STATE_CLEARED)
    }

    fn tracks(&mut self) -> io::Result<()> {
        self.event.varint(track::UUID, PROCESSES);
        self.event.varint(track::PARENT_UUID, ROOT);
        self.event.text(track::NAME, "processes");
        self.descriptor(packet::NEEDS_STATE)?;

        for (number, it) in (FIRST..).zip(&self.trace.tracks) {
            let name = self.trace.names.text(it.name);
            self.event.varint(track::UUID, number);
            let parent = match it.shows {
                Shows::Thread | Shows::Queue => ROOT,
                Shows::Process => PROCESSES,
                Shows::Yields(parent) => FIRST + u64::from(parent),
            };
            self.event.varint(track::PARENT_UUID, parent);
            self.inner.clear();
            match it.shows {
                Shows::Thread => {
                    self.inner.varint(track::THREAD_PID, ONLY);
                    self.inner.varint(track::THREAD_TID, number);
                    self.inner.text(track::THREAD_NAME, name);
                    self.event.message(track::THREAD, &self.inner);
                }
                Shows::Process | Shows::Yields(_) => self.event.text(track::NAME, name),
                Shows::Queue => {
                    self.event.text(track::NAME, name);
                    self.inner.varint(track::COUNTER_UNIT, track::UNIT_COUNT);
                    self.event.message(track::COUNTER, &self.inner);
                }
            }
            self.descriptor(packet::NEEDS_STATE)?;
        }
        Ok(())
    }

    fn descriptor(&mut self, flags: u64) -> io::Result<()> {
        self.packet.message(packet::TRACK_DESCRIPTOR, &self.event);
        self.packet(flags)
    }

    /// Writes the first event, which describes the file.
    fn head(&mut self) -> io::Result<()> {
        let trace = self.trace;
        let numbers = [
            (Key::Format, FORMAT),
            (Key::From, trace.from),
            (Key::To, trace.to),
            (Key::Lost, trace.lost),
            (Key::LeftOut, trace.left_out),
            (Key::Unknown, trace.unknown),
            (Key::Entries, trace.entries.len() as u64),
        ];
        self.event.varint(event::TYPE, event::INSTANT);
        self.event.varint(event::TRACK_UUID, ROOT);
        self.event.text(event::NAME, "trace");
        self.category(Category::Trace);
        for (key, number) in numbers {
            self.argument((key, Value::Number(number)));
        }
        self.event(trace.from)
    }

    fn entry(&mut self, entry: &Entry, arguments: &[Argument]) -> io::Result<()> {
        let form = match entry.form {
            Form::Begin => event::SLICE_BEGIN,
            Form::End => event::SLICE_END,
            Form::Instant => event::INSTANT,
            Form::Value(_) => event::COUNTER,
        };
        self.event.varint(event::TYPE, form);
        let track = FIRST + u64::from(entry.track);
        self.event.varint(event::TRACK_UUID, track);
        match entry.form {
            Form::Begin | Form::Instant => {
                self.category(entry.category);
                let (place, text) = (entry.name.0 as usize, self.trace.names.text(entry.name));
                let field = interned::EVENT_NAMES;
                let id = self.names.of(place, field, text, &mut self.interned);
                self.event.varint(event::NAME_IID, id);
            }
            Form::End => {}
            Form::Value(value) => self.event.varint(event::COUNTER_VALUE, value),
        }
        match entry.flow {
            Flow::None => {}
            Flow::Starts(flow) => {
                let flow = self.flow(flow);
                self.event.fixed64(event::FLOW_IDS, flow);
            }
            Flow::Ends(flow) => {
                let flow = self.flow(flow);
                self.event.fixed64(event::TERMINATING_FLOW_IDS, flow);
            }
        }
        for argument in arguments {
            self.argument(*argument);
        }
        self.event(entry.at)
    }

    fn category(&mut self, category: Category) {
        let (place, text) = (category as usize, category.text());
        let field = interned::EVENT_CATEGORIES;
        let id = self.categories.of(place, field, text, &mut self.interned);
        self.event.varint(event::CATEGORY_IIDS, id);
    }

    fn argument(&mut self, (key, value): Argument) {
        let field = interned::DEBUG_ANNOTATION_NAMES;
        let key = (self.keys).of(key as usize, field, key.text(), &mut self.interned);
        self.inner.clear();
        self.inner.varint(annotation::NAME_IID, key);
        match value {
            Value::Number(number) => self.inner.varint(annotation::UINT_VALUE, number),
            Value::Text(Name(place)) => {
                let text = self.trace.names.text(Name(place));
                let field = interned::DEBUG_ANNOTATION_STRING_VALUES;
                let id = (self.texts).of(place as usize, field, text, &mut self.interned);
                self.inner.varint(annotation::STRING_VALUE_IID, id);
            }
        }
        self.event.message(event::DEBUG_ANNOTATIONS, &self.inner);
    }

    /// Returns the number of a flow in the file, from 1.
    fn flow(&mut self, flow: u32) -> u64 {
        let place = flow as usize;
        if self.flows.len() <= place {
            self.flows.resize(place + 1, 0);
        }
        if self.flows[place] == 0 {
            self.flow_count += 1;
            self.flows[place] = self.flow_count;
        }
        self.flows[place]
    }

    fn event(&mut self, at: u64) -> io::Result<()> {
        self.packet.varint(packet::TIMESTAMP, at);
        self.packet.message(packet::TRACK_EVENT, &self.event);
        if !self.interned.is_empty() {
            self.packet.message(packet::INTERNED_DATA, &self.interned);
        }
        self.packet(packet::NEEDS_STATE)
    }

    fn packet(&mut self, flags: u64) -> io::Result<()> {
        self.packet.varint(packet::SEQUENCE_ID, ONLY);
        self.packet.varint(packet::SEQUENCE_FLAGS, flags);
        self.inner.clear();
        self.inner.head(trace::PACKET, self.packet.bytes().len());
        self.to.write_all(self.inner.bytes())?;
        self.to.write_all(self.packet.bytes())?;
        for message in [&mut self.packet, &mut self.event, &mut self.inner] {
            message.clear();
        }
        self.interned.clear();
        Ok(())
    }
}
