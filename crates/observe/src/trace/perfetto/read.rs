//! The reader, of files of ours alone.

use super::fields::{FIRST, PROCESSES, ROOT, annotation, event, interned, packet, trace, track};
use crate::trace::model::{
    Argument, Category, Entry, FORMAT, Flow, Form, Key, Name, Names, Shows, Trace, Track, Value,
    number,
};
use crate::wire::{Damage, Field, Fields, damage};
use std::io;

/// A trace was not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadTraceError {
    /// The source of the bytes failed.
    #[error("can't read the trace: {0}")]
    Io(#[source] io::Error),
    /// The first bytes are none of Perfetto's.
    #[error(
        "not a Perfetto trace: it begins with {0:?}; give a file that `write_perfetto` has \
         written, not JSON and not a compressed file"
    )]
    NotPerfetto(Vec<u8>),
    /// The file is longer than [`LONGEST_FILE`](crate::trace::LONGEST_FILE).
    #[error(
        "the trace has more than {most} bytes: record fewer seconds, or open it in \
         https://ui.perfetto.dev"
    )]
    TooLong {
        /// The most bytes of a file.
        most: u64,
    },
    /// The file is a trace of another program.
    #[error(
        "a Perfetto trace, but none of Ganger: the event that says the format is missing; open it \
         in https://ui.perfetto.dev"
    )]
    NotGanger,
    /// Another version of Ganger has written the file.
    #[error("the trace has format {found}, and this program reads {FORMAT}: {}", advice(*found))]
    Version {
        /// The version of the file's format.
        found: u64,
    },
    /// The file was cut off or changed.
    #[error("the trace is damaged at byte {at}, where {what} was expected: record it again")]
    Damaged {
        /// The place in the file.
        at: usize,
        /// The expectation at this place.
        what: &'static str,
    },
}

fn advice(found: u64) -> &'static str {
    if found > FORMAT {
        "use the version of the program that recorded it, or a newer one"
    } else {
        "use the version of the program that recorded it, or record it again"
    }
}

impl From<Damage> for ReadTraceError {
    fn from(Damage { at, what }: Damage) -> Self {
        Self::Damaged { at, what }
    }
}

/// How many of the first bytes an error shows.
pub(in crate::trace) const SHOWN: usize = 8;

/// Checks whether a file with these first bytes may be a file of Perfetto.
pub(in crate::trace) fn check_first(first: &[u8]) -> Result<(), ReadTraceError> {
    match first.first() {
        Some(&FIRST_BYTE) => Ok(()),
        _ => Err(ReadTraceError::NotPerfetto(first.to_vec())),
    }
}

pub(in crate::trace) fn read(bytes: &[u8]) -> Result<Trace, ReadTraceError> {
    let mut file = Fields::new(bytes);
    match file.next() {
        Ok(Some((trace::PACKET, Field::Part(_)))) => {}
        // A first packet cut off by the file's end is damage, and not another format.
        Err(damage) if bytes.first() == Some(&FIRST_BYTE) => return Err(damage.into()),
        _ => {
            let first = bytes[..bytes.len().min(SHOWN)].to_vec();
            return Err(ReadTraceError::NotPerfetto(first));
        }
    }
    let mut reader = Reader::new();
    let mut file = Fields::new(bytes);
    while let Some((field, value)) = file.next()? {
        if field == trace::PACKET {
            let result = reader.packet(value.part(file.at)?);
            // Another program's files have other tracks and other ids of texts.
            let is_foreign =
                !reader.has_head && matches!(result, Err(ReadTraceError::Damaged { .. }));
            if is_foreign {
                return Err(ReadTraceError::NotGanger);
            }
            result?;
        }
    }
    reader.finish(bytes.len())
}

/// The key of the field `Trace.packet`.
const FIRST_BYTE: u8 = 0x0A;

struct Reader {
    trace: Trace,
    has_head: bool,
    /// How many entries the file should have.
    entries: u64,
    /// The open slices of each track.
    open: Vec<Vec<Category>>,
    open_slices: usize,
    // Texts by their ids.
    categories: Ids<Option<Category>>,
    keys: Ids<Option<Key>>,
    names: Ids<Name>,
    texts: Ids<Name>,
    /// Whether each flow has come to its end.
    flows: Ids<bool>,
    open_flows: usize,
}

/// Things that the file numbers 1, 2, 3 and so on, in this order.
struct Ids<T>(Vec<T>);

impl<T> Ids<T> {
    /// Adds the next thing. Returns `false` if another id was next.
    #[must_use]
    fn add(&mut self, id: u64, thing: T) -> bool {
        let is_next = id == self.0.len() as u64 + 1;
        if is_next {
            self.0.push(thing);
        }
        is_next
    }

    fn place(id: u64) -> Option<usize> {
        usize::try_from(id.checked_sub(1)?).ok()
    }

    fn get(&self, id: u64) -> Option<&T> {
        self.0.get(Self::place(id)?)
    }

    fn get_mut(&mut self, id: u64) -> Option<&mut T> {
        self.0.get_mut(Self::place(id)?)
    }
}

/// The fields of a `TrackEvent` in files of ours.
struct Event {
    at: usize,
    form: u64,
    track: u64,
    category: Option<u64>,
    name: Option<u64>,
    value: u64,
    starts: Option<u64>,
    ends: Option<u64>,
}

impl Reader {
    fn new() -> Self {
        Self {
            trace: Trace {
                scheduler: String::new(),
                from: 0,
                to: 0,
                lost: 0,
                left_out: 0,
                unknown: 0,
                names: Names::new(),
                tracks: Vec::new(),
                entries: Vec::new(),
                arguments: Vec::new(),
            },
            has_head: false,
            entries: 0,
            open: Vec::new(),
            open_slices: 0,
            categories: Ids(Vec::new()),
            keys: Ids(Vec::new()),
            names: Ids(Vec::new()),
            texts: Ids(Vec::new()),
            flows: Ids(Vec::new()),
            open_flows: 0,
        }
    }

    fn packet(&mut self, mut fields: Fields<'_>) -> Result<(), ReadTraceError> {
        let begin = fields.at;
        let (mut at, mut event) = (None, None);
        while let Some((field, value)) = fields.next()? {
            match field {
                packet::TIMESTAMP => at = Some(value.number()?),
                packet::TRACK_EVENT => event = Some(value.part(fields.at)?),
                packet::TRACK_DESCRIPTOR => self.descriptor(value.part(fields.at)?)?,
                packet::INTERNED_DATA => self.interned(value.part(fields.at)?)?,
                _ => {}
            }
        }
        // Its texts may come behind it.
        match (event, at) {
            (Some(event), Some(at)) => self.event(at, event),
            (Some(_), None) => Err(damage(begin, "an event with a time").into()),
            (None, _) => Ok(()),
        }
    }

    fn descriptor(&mut self, mut fields: Fields<'_>) -> Result<(), ReadTraceError> {
        let begin = fields.at;
        let (mut uuid, mut parent, mut name) = (0, 0, None);
        let (mut is_thread, mut is_counter) = (false, false);
        while let Some((field, value)) = fields.next()? {
            match field {
                track::UUID => uuid = value.number()?,
                track::PARENT_UUID => parent = value.number()?,
                track::NAME => name = Some(value.text(fields.at)?),
                track::COUNTER => is_counter = true,
                track::THREAD => {
                    is_thread = true;
                    name = text_in(value.part(fields.at)?, track::THREAD_NAME)?;
                }
                track::PROCESS => {
                    let part = value.part(fields.at)?;
                    if let Some(name) = text_in(part, track::PROCESS_NAME)? {
                        name.clone_into(&mut self.trace.scheduler);
                    }
                }
                _ => {}
            }
        }
        if uuid < FIRST {
            return Ok(());
        }
        let shows = match parent {
            ROOT if is_thread => Shows::Thread,
            ROOT if is_counter => Shows::Queue,
            PROCESSES => Shows::Process,
            _ => match self.track(parent) {
                Some((above, Shows::Process)) => Shows::Yields(above),
                _ => return Err(damage(begin, "a track below another").into()),
            },
        };
        if uuid - FIRST != self.open.len() as u64 {
            return Err(damage(begin, "the next track").into());
        }
        let name = self.trace.names.add(name.unwrap_or_default());
        self.trace.tracks.push(Track { name, shows });
        self.open.push(Vec::new());
        Ok(())
    }

    /// Returns the place of a track by its number in the file, and its subject.
    fn track(&self, uuid: u64) -> Option<(u32, Shows)> {
        let place = u32::try_from(uuid.checked_sub(FIRST)?).ok()?;
        let track = self.trace.tracks.get(place as usize)?;
        Some((place, track.shows))
    }

    fn interned(&mut self, mut fields: Fields<'_>) -> Result<(), Damage> {
        while let Some((field, value)) = fields.next()? {
            if !interned::ALL.contains(&field) {
                continue;
            }
            let at = fields.at;
            let (id, text) = interned_text(value.part(at)?)?;
            let is_next = match field {
                interned::EVENT_CATEGORIES => self.categories.add(id, Category::of(text)),
                interned::DEBUG_ANNOTATION_NAMES => self.keys.add(id, Key::of(text)),
                interned::EVENT_NAMES => self.names.add(id, self.trace.names.add(text)),
                _ => self.texts.add(id, self.trace.names.add(text)),
            };
            if !is_next {
                return Err(damage(at, "a text with the next id"));
            }
        }
        Ok(())
    }

    fn event(&mut self, time: u64, mut fields: Fields<'_>) -> Result<(), ReadTraceError> {
        let mut it = Event {
            at: fields.at,
            form: 0,
            track: 0,
            category: None,
            name: None,
            value: 0,
            starts: None,
            ends: None,
        };
        let arguments = self.trace.arguments.len();
        while let Some((field, value)) = fields.next()? {
            match field {
                event::TYPE => it.form = value.number()?,
                event::TRACK_UUID => it.track = value.number()?,
                event::CATEGORY_IIDS => it.category = Some(value.number()?),
                event::NAME_IID => it.name = Some(value.number()?),
                event::COUNTER_VALUE => it.value = value.number()?,
                event::FLOW_IDS => it.starts = Some(value.number()?),
                event::TERMINATING_FLOW_IDS => it.ends = Some(value.number()?),
                event::DEBUG_ANNOTATIONS => {
                    let argument = self.argument(value.part(fields.at)?)?;
                    self.trace.arguments.extend(argument);
                }
                _ => {}
            }
        }
        if it.track == ROOT {
            return self.head(it.at, arguments);
        }
        if !self.has_head {
            return Err(ReadTraceError::NotGanger);
        }
        self.entry(time, &it, arguments).map_err(Into::into)
    }

    /// Reads the first event, which describes the file; `arguments` is the place of its arguments.
    fn head(&mut self, at: usize, arguments: usize) -> Result<(), ReadTraceError> {
        let numbers = self.trace.arguments.split_off(arguments);
        let of = |key| {
            let mut numbers = numbers.iter();
            numbers.find_map(|&(found, value)| match value {
                Value::Number(number) if found == key => Some(number),
                _ => None,
            })
        };
        let found = of(Key::Format).ok_or(ReadTraceError::NotGanger)?;
        if found != FORMAT {
            return Err(ReadTraceError::Version { found });
        }
        let missing = damage(at, "a whole head");
        if self.has_head {
            return Err(damage(at, "a single head").into());
        }
        self.has_head = true;
        let trace = &mut self.trace;
        for (key, number) in [
            (Key::From, &mut trace.from),
            (Key::To, &mut trace.to),
            (Key::Lost, &mut trace.lost),
            (Key::LeftOut, &mut trace.left_out),
            (Key::Unknown, &mut trace.unknown),
            (Key::Entries, &mut self.entries),
        ] {
            *number = of(key).ok_or(missing)?;
        }
        Ok(())
    }

    fn argument(&self, mut fields: Fields<'_>) -> Result<Option<Argument>, Damage> {
        let begin = fields.at;
        let (mut key, mut found) = (None, None);
        while let Some((field, value)) = fields.next()? {
            match field {
                annotation::NAME_IID => key = self.keys.get(value.number()?),
                annotation::UINT_VALUE => found = Some(Value::Number(value.number()?)),
                annotation::STRING_VALUE_IID => {
                    let text = self.texts.get(value.number()?).copied();
                    found = text.map(Value::Text);
                }
                _ => {}
            }
        }
        let key = *key.ok_or(damage(begin, "an argument with a name"))?;
        let value = found.ok_or(damage(begin, "an argument with a value"))?;
        // A later version of this format may have more.
        Ok(key.map(|key| (key, value)))
    }

    fn entry(&mut self, time: u64, it: &Event, arguments: usize) -> Result<(), Damage> {
        let wrong = |what| Err(damage(it.at, what));
        let last = (self.trace.entries.last()).map_or(self.trace.from, |last| last.at);
        if time < last || time > self.trace.to {
            return wrong("a time in the order of times");
        }
        let Some((track, shows)) = self.track(it.track) else {
            return wrong("an event on a track of the file");
        };
        if (shows == Shows::Queue) != (it.form == event::COUNTER) {
            return wrong("a value on a queue's track, or a slice on another");
        }
        let open = &mut self.open[track as usize];
        let own = it.category.and_then(|id| *self.categories.get(id)?);
        let (form, category) = match it.form {
            event::SLICE_BEGIN | event::INSTANT => {
                let Some(category) = own else {
                    return wrong("an event of a known category");
                };
                if it.form == event::INSTANT {
                    (Form::Instant, category)
                } else {
                    open.push(category);
                    self.open_slices += 1;
                    (Form::Begin, category)
                }
            }
            event::SLICE_END => {
                let Some(category) = open.pop() else {
                    return wrong("the end of a slice that has begun");
                };
                self.open_slices -= 1;
                (Form::End, category)
            }
            event::COUNTER => (Form::Value(it.value), Category::Queue),
            _ => return wrong("a kind of event"),
        };
        let name = match form {
            Form::Begin | Form::Instant => match it.name.and_then(|id| self.names.get(id)) {
                Some(name) => *name,
                None => return wrong("an event with a name"),
            },
            Form::End | Form::Value(_) => Name::default(),
        };
        let flow = self.flow(it)?;
        let count = self.trace.arguments.len() - arguments;
        let Ok(argument_count) = u8::try_from(count) else {
            return wrong("an event with a few arguments");
        };
        self.trace.entries.push(Entry {
            at: time,
            track,
            form,
            category,
            name,
            flow,
            arguments: number(arguments),
            argument_count,
        });
        Ok(())
    }

    fn flow(&mut self, it: &Event) -> Result<Flow, Damage> {
        let wrong = |what| Err(damage(it.at, what));
        match (it.starts, it.ends) {
            (None, None) => Ok(Flow::None),
            (Some(flow), None) => {
                if !self.flows.add(flow, false) {
                    return wrong("the start of the next flow");
                }
                self.open_flows += 1;
                Ok(Flow::Starts(number(self.flows.0.len())))
            }
            (None, Some(flow)) => match self.flows.get_mut(flow) {
                Some(has_ended @ false) => {
                    *has_ended = true;
                    self.open_flows -= 1;
                    Ok(Flow::Ends(u32::try_from(flow).expect("it is in the list")))
                }
                _ => wrong("the end of a flow that has begun"),
            },
            (Some(_), Some(_)) => wrong("a single end of a flow"),
        }
    }

    fn finish(self, at: usize) -> Result<Trace, ReadTraceError> {
        if !self.has_head {
            return Err(ReadTraceError::NotGanger);
        }
        if self.open_slices > 0 || self.open_flows > 0 {
            return Err(damage(at, "the end of each slice and each flow").into());
        }
        if self.trace.entries.len() as u64 != self.entries {
            return Err(damage(at, "every event of the file").into());
        }
        Ok(self.trace)
    }
}

/// Returns the text in a field of a message.
fn text_in(mut fields: Fields<'_>, wanted: u32) -> Result<Option<&str>, Damage> {
    let mut text = None;
    while let Some((field, value)) = fields.next()? {
        if field == wanted {
            text = Some(value.text(fields.at)?);
        }
    }
    Ok(text)
}

/// Returns the id and the text of a message of `InternedData`.
fn interned_text(mut fields: Fields<'_>) -> Result<(u64, &str), Damage> {
    let begin = fields.at;
    let (mut id, mut text) = (None, None);
    while let Some((field, value)) = fields.next()? {
        match field {
            interned::IID => id = Some(value.number()?),
            interned::TEXT => text = Some(value.text(fields.at)?),
            _ => {}
        }
    }
    let missing = damage(begin, "a text with its id");
    Ok((id.ok_or(missing)?, text.ok_or(missing)?))
}
