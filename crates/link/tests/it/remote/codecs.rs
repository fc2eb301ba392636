//! The types with a text form, and their codecs.

use super::references::{Greeting, Step};
use super::typed::{Count, Secret};
use ganger_proc_api::{Kind, Payload, Pid};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The codec of a type.
pub(super) struct Codec {
    pub(super) name: &'static str,
    kind: fn() -> Kind,
    encode: fn(&mut Payload) -> serde_json::Result<String>,
    decode: fn(&str) -> serde_json::Result<Payload>,
}

impl Codec {
    const fn new<T: Serialize + DeserializeOwned + Send + 'static>(name: &'static str) -> Self {
        Self {
            name,
            kind: Kind::of::<T>,
            encode: |value| serde_json::to_string(value.downcast_mut::<T>().unwrap()),
            decode: |text| Ok(Payload::any(serde_json::from_str::<T>(text)?)),
        }
    }

    pub(super) fn encode(&self, value: &mut Payload) -> serde_json::Result<String> {
        (self.encode)(value)
    }

    pub(super) fn decode(&self, text: &str) -> serde_json::Result<Payload> {
        (self.decode)(text)
    }
}

static CODECS: [Codec; 7] = [
    Codec::new::<Count>("count"),
    Codec::new::<Greeting>("greeting"),
    Codec::new::<Step>("step"),
    Codec::new::<Secret>("secret"),
    Codec::new::<u64>("u64"),
    Codec::new::<String>("text"),
    Codec::new::<Pid>("pid"),
];

pub(super) fn of(value: &Payload) -> Option<&'static Codec> {
    let kind = value.kind()?;
    CODECS.iter().find(|it| (it.kind)() == kind)
}

pub(super) fn named(name: &str) -> &'static Codec {
    CODECS.iter().find(|it| it.name == name).unwrap()
}
