//! pprof's format: a protobuf message of the schema in
//! <https://github.com/google/pprof/blob/main/proto/profile.proto>, compressed by gzip.
//!
//! Texts are numbers of entries of a table, whose first entry is empty. Locations and functions are
//! numbered from 1 up. The program is a single mapping, whose functions are all looked up already.

use super::{Profile, Sample, nanos};
use crate::wire::Message;
use flate2::{Compression, GzBuilder};
use ganger_sched::Function;
use std::collections::HashMap;
use std::io::Write as _;
use std::time::Duration;

/// `Profile`.
mod profile {
    pub(super) const SAMPLE_TYPE: u32 = 1;
    pub(super) const SAMPLE: u32 = 2;
    pub(super) const MAPPING: u32 = 3;
    pub(super) const LOCATION: u32 = 4;
    pub(super) const FUNCTION: u32 = 5;
    pub(super) const STRING_TABLE: u32 = 6;
    pub(super) const DURATION_NANOS: u32 = 10;
    pub(super) const PERIOD_TYPE: u32 = 11;
    pub(super) const PERIOD: u32 = 12;
    pub(super) const COMMENT: u32 = 13;
}

/// `ValueType`.
mod value_type {
    pub(super) const TYPE: u32 = 1;
    pub(super) const UNIT: u32 = 2;
}

/// `Sample` and `Label`.
mod sample {
    pub(super) const LOCATION_ID: u32 = 1;
    pub(super) const VALUE: u32 = 2;
    pub(super) const LABEL: u32 = 3;
    pub(super) const LABEL_KEY: u32 = 1;
    pub(super) const LABEL_STR: u32 = 2;
}

/// `Mapping`.
mod mapping {
    pub(super) const ID: u32 = 1;
    pub(super) const FILENAME: u32 = 5;
    pub(super) const HAS_FUNCTIONS: u32 = 7;
    pub(super) const HAS_FILENAMES: u32 = 8;
    pub(super) const HAS_LINE_NUMBERS: u32 = 9;
    pub(super) const HAS_INLINE_FRAMES: u32 = 10;
}

/// `Location` and `Line`.
mod location {
    pub(super) const ID: u32 = 1;
    pub(super) const MAPPING_ID: u32 = 2;
    pub(super) const ADDRESS: u32 = 3;
    pub(super) const LINE: u32 = 4;
    pub(super) const LINE_FUNCTION_ID: u32 = 1;
    pub(super) const LINE_NUMBER: u32 = 2;
}

/// `Function`.
mod function {
    pub(super) const ID: u32 = 1;
    pub(super) const NAME: u32 = 2;
    pub(super) const SYSTEM_NAME: u32 = 3;
    pub(super) const FILENAME: u32 = 4;
}

impl Profile {
    /// Returns the samples as a file of pprof, compressed: for `go tool pprof`, speedscope,
    /// Perfetto and services that keep profiles. Each sample has two values, its number and its
    /// time, and the labels `type`, `method` and `label`. With them
    /// `go tool pprof -tagroot=type,method` shows the functions below the processes.
    #[must_use]
    pub fn pprof(&self) -> Vec<u8> {
        let message = Writer::default().profile(self);
        let mut file = GzBuilder::new().write(Vec::new(), Compression::default());
        let written = file.write_all(message.bytes()).and_then(|()| file.finish());
        written.unwrap_or_else(|_| unreachable!("a vector takes all"))
    }
}

#[derive(Default)]
struct Writer<'a> {
    /// The functions and texts, with their numbers.
    functions: HashMap<(&'a str, Option<&'a str>), u64>,
    texts: HashMap<String, u64>,
    /// The functions and the table of texts, as they are written.
    written: Message,
    table: Message,
}

impl<'a> Writer<'a> {
    fn profile(mut self, profile: &'a Profile) -> Message {
        self.text("");
        let mut all = Message::default();
        let period = nanos(Duration::from_secs(1) / profile.hz);
        let samples = self.value_type("samples", "count");
        all.message(profile::SAMPLE_TYPE, &samples);
        let wall = self.value_type("wall", "nanoseconds");
        all.message(profile::SAMPLE_TYPE, &wall);
        for sample in &profile.samples {
            let sample = self.sample(sample, period);
            all.message(profile::SAMPLE, &sample);
        }
        let mapping = self.mapping();
        all.message(profile::MAPPING, &mapping);
        for (id, frame) in (1..).zip(&profile.frames) {
            let location = self.location(id, frame.address, &frame.functions);
            all.message(profile::LOCATION, &location);
        }
        all.varint(profile::DURATION_NANOS, nanos(profile.lasted));
        all.message(profile::PERIOD_TYPE, &wall);
        all.varint(profile::PERIOD, period);
        let comment = format!(
            "scheduler {}: {} samples of steps; {} times a worker was asked that was not idle",
            profile.scheduler,
            profile.samples(),
            profile.asked
        );
        let comment = self.text(&comment);
        all.varint(profile::COMMENT, comment);
        all.append(&self.written);
        all.append(&self.table);
        all
    }

    /// Returns the number of a text.
    fn text(&mut self, text: &str) -> u64 {
        if let Some(number) = self.texts.get(text) {
            return *number;
        }
        let number = self.texts.len() as u64;
        self.texts.insert(text.to_owned(), number);
        self.table.text(profile::STRING_TABLE, text);
        number
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> Message {
        let mut message = Message::default();
        message.varint(value_type::TYPE, self.text(kind));
        message.varint(value_type::UNIT, self.text(unit));
        message
    }

    fn sample(&mut self, sample: &Sample, period: u64) -> Message {
        let mut message = Message::default();
        for &frame in &sample.frames {
            message.varint(sample::LOCATION_ID, u64::from(frame) + 1);
        }
        message.varint(sample::VALUE, sample.count);
        message.varint(sample::VALUE, sample.count.saturating_mul(period));
        let who = &sample.who;
        let method = who.method.map(|it| it.to_string());
        let labels = [
            ("type", Some(who.type_name)),
            ("method", method.as_deref()),
            ("label", who.label.as_deref()),
        ];
        for (key, value) in labels {
            if let Some(value) = value {
                let mut label = Message::default();
                label.varint(sample::LABEL_KEY, self.text(key));
                label.varint(sample::LABEL_STR, self.text(value));
                message.message(sample::LABEL, &label);
            }
        }
        message
    }

    fn mapping(&mut self) -> Message {
        let program = std::env::current_exe().unwrap_or_default();
        let mut message = Message::default();
        message.varint(mapping::ID, 1);
        let program = self.text(&program.to_string_lossy());
        message.varint(mapping::FILENAME, program);
        for field in [
            mapping::HAS_FUNCTIONS,
            mapping::HAS_FILENAMES,
            mapping::HAS_LINE_NUMBERS,
            mapping::HAS_INLINE_FRAMES,
        ] {
            message.varint(field, 1);
        }
        message
    }

    fn location(&mut self, id: u64, address: u64, functions: &'a [Function]) -> Message {
        let mut message = Message::default();
        message.varint(location::ID, id);
        message.varint(location::MAPPING_ID, 1);
        message.varint(location::ADDRESS, address);
        for function in functions {
            let mut line = Message::default();
            line.varint(location::LINE_FUNCTION_ID, self.function(function));
            line.varint(
                location::LINE_NUMBER,
                function.line.unwrap_or_default().into(),
            );
            message.message(location::LINE, &line);
        }
        message
    }

    /// Returns the number of a function.
    fn function(&mut self, function: &'a Function) -> u64 {
        let key = (&*function.name, function.file.as_deref());
        if let Some(id) = self.functions.get(&key) {
            return *id;
        }
        let id = self.functions.len() as u64 + 1;
        self.functions.insert(key, id);
        let name = self.text(&function.name);
        let file = self.text(function.file.as_deref().unwrap_or_default());
        let mut message = Message::default();
        message.varint(function::ID, id);
        message.varint(function::NAME, name);
        message.varint(function::SYSTEM_NAME, name);
        message.varint(function::FILENAME, file);
        self.written.message(profile::FUNCTION, &message);
        id
    }
}
