//! Messages as bytes.
//!
//! The sender's thread encodes values of its own types first, without a lock: their code may do
//! anything. The link then writes the whole under its lock, which calls nothing else.

use super::places::Places;
use super::types::{Codec, EncodeError, Foreign, MAX_MESSAGE, Types, Within};
use crate::wire::{Fields, Known, ReadError, Reader, Route, SymbolKind};
use bytes::Bytes;
use ganger_proc_api::{Envelope, Message, Payload, Payloads, Pid, Symbol};
use std::cell::Cell;

const UNIT: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const UINT: u8 = 3;
const INT: u8 = 4;
const FLOAT: u8 = 5;
const PID: u8 = 6;
const TEXT: u8 = 7;
const BYTES: u8 = 8;
const TYPED: u8 = 9;

/// The most values in a message.
const MAX_VALUES: u64 = 1 << 16;

/// Shorter byte strings are copied out of their frame, so that they do not keep it.
const SHARED: usize = 4096;

/// How many topics of a peer are new to this program: symbols are never freed.
const MAX_NEW_TOPICS: usize = 1024;

/// The values of a message whose types have codecs, as bytes; nothing for other values.
#[derive(Debug, Default)]
pub(crate) struct Encoded<'t> {
    /// Of most messages the only value.
    first: Option<Typed<'t>>,
    /// Of most messages nothing.
    rest: Option<Box<Rest<'t>>>,
}

#[derive(Debug, Default)]
struct Rest<'t> {
    others: Vec<Option<Typed<'t>>>,
    /// The numbers of all replies inside. They follow the values, so a receiver that can't read a
    /// value answers its replies all the same.
    replies: Vec<u64>,
    /// The context of the sender's trace; empty without a trace.
    context: Vec<u8>,
}

/// The name of a type, and the bytes of a value.
type Typed<'t> = (&'t str, Vec<u8>);

thread_local! {
    /// The memory of the last value, for the next.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The most spare memory of a thread.
const MAX_SPARE: usize = 4096;

impl Drop for Encoded<'_> {
    fn drop(&mut self) {
        if let Some((_, mut bytes)) = self.first.take()
            && bytes.capacity() <= MAX_SPARE
        {
            bytes.clear();
            // At the end of a thread the memory is freed.
            let _ = SPARE.try_with(|it| it.set(bytes));
        }
    }
}

impl<'t> Encoded<'t> {
    /// Encodes the values of a message, which stay as they are.
    pub(crate) fn new(types: &'t Types, payloads: &mut Payloads) -> Result<Self, EncodeError> {
        let encoded = Self::of_those(types, payloads, |_| true)?;
        Ok(encoded.unwrap_or_default())
    }

    /// Encodes values as [`new`](Self::new) does. Returns `None` if replies, addresses or PIDs may
    /// be inside of a value, or code of users would run.
    pub(crate) fn plain(
        types: &'t Types,
        payloads: &mut Payloads,
    ) -> Result<Option<Self>, EncodeError> {
        Self::of_those(types, payloads, Codec::is_plain)
    }

    /// Encodes values. Returns `None` if `takes` does not take the codec of a value.
    fn of_those(
        types: &'t Types,
        payloads: &mut Payloads,
        takes: impl Fn(&Codec) -> bool,
    ) -> Result<Option<Self>, EncodeError> {
        if payloads.len() as u64 > MAX_VALUES {
            return Err(EncodeError::TooLarge);
        }
        let mut room = MAX_MESSAGE;
        let mut encoded = Self::default();
        for (place, value) in payloads.iter_mut().enumerate() {
            let codec = types.of(value)?;
            if codec.is_some_and(|codec| !takes(codec)) {
                return Ok(None);
            }
            if place == 0 {
                encoded.first = encode(codec, value, &mut room, || {
                    SPARE.try_with(Cell::take).unwrap_or_default()
                })?;
            } else {
                let next = encode(codec, value, &mut room, Vec::new)?;
                encoded.rest().others.push(next);
            }
        }
        Ok(Some(encoded))
    }

    fn of(&self, place: usize) -> Option<&Typed<'t>> {
        match place.checked_sub(1) {
            None => self.first.as_ref(),
            Some(place) => self.rest.as_ref()?.others.get(place)?.as_ref(),
        }
    }

    fn rest(&mut self) -> &mut Rest<'t> {
        self.rest.get_or_insert_default()
    }

    /// Sets the context of a trace.
    pub(crate) fn set_context(&mut self, context: Vec<u8>) {
        if !context.is_empty() {
            self.rest().context = context;
        }
    }

    /// Sets the numbers of the replies inside.
    pub(crate) fn set_replies(&mut self, numbers: impl Iterator<Item = u64>) {
        self.rest().replies.extend(numbers);
    }
}

fn encode<'t>(
    codec: Option<&'t Codec>,
    value: &mut Payload,
    room: &mut usize,
    spare: impl FnOnce() -> Vec<u8>,
) -> Result<Option<Typed<'t>>, EncodeError> {
    let typed = match codec {
        Some(codec) => Some((codec.name(), codec.encode(value, *room, spare())?)),
        None => None,
    };
    let length = match &typed {
        Some((name, bytes)) => name.len() + bytes.len(),
        None => value.as_bytes().map_or(0, <[u8]>::len),
    };
    *room = room.checked_sub(length).ok_or(EncodeError::TooLarge)?;
    Ok(typed)
}

/// Writes a message for the peer.
pub(crate) fn write(
    fields: &mut impl Fields,
    places: Places,
    envelope: &Envelope,
    encoded: &Encoded<'_>,
) {
    let (target, message) = (envelope.target, &envelope.message);
    let route = Route {
        target,
        source: message.source,
        topic: message.topic,
    };
    fields.route(route, |fields| {
        places.write(fields, target);
        write_origin(fields, places, message);
    });
    write_values(fields, places, &message.payloads, encoded);
}

/// Writes a message without its target.
pub(crate) fn write_message(
    fields: &mut impl Fields,
    places: Places,
    message: &Message,
    encoded: &Encoded<'_>,
) {
    write_origin(fields, places, message);
    write_values(fields, places, &message.payloads, encoded);
}

fn write_origin(fields: &mut impl Fields, places: Places, message: &Message) {
    match message.source {
        None => fields.u8(0),
        Some(source) => {
            fields.u8(1);
            places.write(fields, source);
        }
    }
    fields.symbol(SymbolKind::Topic, message.topic.as_str());
}

/// Writes values for the peer, which are the last of a message.
pub(crate) fn write_values(
    fields: &mut impl Fields,
    places: Places,
    payloads: &Payloads,
    encoded: &Encoded<'_>,
) {
    fields.varint(payloads.len() as u64);
    for (place, value) in payloads.iter().enumerate() {
        write_value(fields, places, value, encoded.of(place));
    }
    let Some(rest) = &encoded.rest else {
        return fields.varint(0);
    };
    fields.varint(rest.replies.len() as u64);
    for number in &rest.replies {
        fields.varint(*number);
    }
    if !rest.context.is_empty() {
        fields.bytes(&rest.context);
    }
}

fn write_value(
    fields: &mut impl Fields,
    places: Places,
    value: &Payload,
    typed: Option<&Typed<'_>>,
) {
    if let Some((name, bytes)) = typed {
        fields.u8(TYPED);
        fields.symbol(SymbolKind::Type, name);
        fields.bytes(bytes);
    } else if let Some(value) = value.as_bool() {
        fields.u8(if value { TRUE } else { FALSE });
    } else if let Some(value) = value.as_u64() {
        fields.u8(UINT);
        fields.varint(value);
    } else if let Some(value) = value.as_i64() {
        fields.u8(INT);
        fields.varint(value.cast_unsigned());
    } else if let Some(value) = value.as_f64() {
        fields.u8(FLOAT);
        fields.varint(value.to_bits());
    } else if let Some(pid) = value.as_pid() {
        fields.u8(PID);
        places.write(fields, pid);
    } else if let Some(text) = value.as_str() {
        fields.u8(TEXT);
        fields.bytes(text.as_bytes());
    } else if let Some(bytes) = value.as_bytes() {
        fields.u8(BYTES);
        fields.bytes(bytes);
    } else {
        fields.u8(UNIT);
    }
}

/// Reads the messages of a peer.
#[derive(Debug)]
pub(crate) struct Decoder {
    pub(crate) places: Places,
    new_topics: usize,
}

impl Decoder {
    pub(crate) fn new(places: Places) -> Self {
        Self {
            places,
            new_topics: 0,
        }
    }

    pub(crate) fn message(
        &mut self,
        reader: &mut Reader,
        known: &mut Known,
        types: &Types,
        within: Within<'_>,
    ) -> Result<(Envelope, Vec<u64>), ReadError> {
        let route = reader.route(known, |reader, known| {
            let target = self.places.read(reader, known)?;
            let (source, topic) = self.origin(reader, known)?;
            Ok(Route {
                target,
                source,
                topic,
            })
        })?;
        let (payloads, replies) = self.values(reader, known, types, within)?;
        let message = Message {
            source: route.source,
            topic: route.topic,
            payloads,
        };
        let target = route.target;
        Ok((Envelope { target, message }, replies))
    }

    /// Reads a message without its target.
    pub(crate) fn content(
        &mut self,
        reader: &mut Reader,
        known: &mut Known,
        types: &Types,
        within: Within<'_>,
    ) -> Result<(Message, Vec<u64>), ReadError> {
        let (source, topic) = self.origin(reader, known)?;
        let (payloads, replies) = self.values(reader, known, types, within)?;
        let message = Message {
            source,
            topic,
            payloads,
        };
        Ok((message, replies))
    }

    fn origin(
        &mut self,
        reader: &mut Reader,
        known: &mut Known,
    ) -> Result<(Option<Pid>, Symbol), ReadError> {
        let source = match reader.u8()? {
            0 => None,
            _ => Some(self.places.read(reader, known)?),
        };
        let look = |text: &str| self.topic(text);
        let (topic, _) = reader.find(known, SymbolKind::Topic, |it| &mut it.topics, look)?;
        Ok((source, topic))
    }

    /// Reads the values, and the numbers of all replies inside of them.
    pub(crate) fn values(
        &self,
        reader: &mut Reader,
        known: &mut Known,
        types: &Types,
        within: Within<'_>,
    ) -> Result<(Payloads, Vec<u64>), ReadError> {
        let count = reader.varint()?;
        if count > MAX_VALUES {
            return Err(ReadError::Short);
        }
        let mut payloads = Payloads::default();
        for _ in 0..count {
            payloads.push(self.value(reader, known, types, within)?);
        }
        let mut replies = Vec::new();
        for _ in 0..reader.varint()? {
            replies.push(reader.varint()?);
        }
        Ok((payloads, replies))
    }

    fn topic(&mut self, text: &str) -> Result<Symbol, ReadError> {
        if text.is_empty() {
            return Ok(Symbol::default());
        }
        if let Some(known) = Symbol::known(text) {
            return Ok(known);
        }
        self.new_topics += 1;
        let is_bounded = self.new_topics <= MAX_NEW_TOPICS;
        let parsed = text.parse().ok();
        parsed.filter(|_| is_bounded).ok_or(ReadError::Symbol)
    }

    fn value(
        &self,
        reader: &mut Reader,
        known: &mut Known,
        types: &Types,
        within: Within<'_>,
    ) -> Result<Payload, ReadError> {
        Ok(match reader.u8()? {
            UNIT => Payload::UNIT,
            FALSE => Payload::from(false),
            TRUE => Payload::from(true),
            UINT => Payload::from(reader.varint()?),
            INT => Payload::from(reader.varint()?.cast_signed()),
            FLOAT => Payload::from(f64::from_bits(reader.varint()?)),
            PID => Payload::from(self.places.read(reader, known)?),
            TEXT => {
                let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(Payload::from);
                reader.bytes_in_place(text)?.map_err(|_| ReadError::Text)?
            }
            BYTES => Payload::from(owned(reader.bytes()?)),
            TYPED => {
                let look = |name: &str| Ok(types.find(name));
                let kind = SymbolKind::Type;
                let (codec, name) = reader.find(known, kind, |it| &mut it.types, look)?;
                let decode = |bytes: &[u8]| types.decode(codec?, bytes, within);
                match reader.bytes_in_place(decode)? {
                    Ok(value) => value,
                    Err(bytes) => {
                        let name = name.text(known, kind)?;
                        Payload::any(Foreign { name, bytes })
                    }
                }
            }
            _ => return Err(ReadError::Short),
        })
    }
}

fn owned(bytes: Bytes) -> Bytes {
    if bytes.len() < SHARED {
        Bytes::copy_from_slice(&bytes)
    } else {
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Apart;
    use ganger_proc_api::NodeName;

    // pins: B21
    #[test]
    fn plain_values_cross_without_a_registration() {
        let name = |text| NodeName::new(text).unwrap();
        let (own, peer) = (name("alpha"), name("beta"));
        let pid: Pid = "{main|9}".parse().unwrap();
        let values = [
            Payload::UNIT,
            true.into(),
            false.into(),
            7_u64.into(),
            u64::MAX.into(),
            (-7_i64).into(),
            i64::MIN.into(),
            1.5_f64.into(),
            Payload::from(pid),
            "text".into(),
            "a longer text than is inline".into(),
            Payload::from(Bytes::from_static(b"bytes")),
            Payload::any(7_u64),
            Payload::any("text".to_owned()),
        ];
        let types = Types::default();
        let mut payloads: Payloads = values.into_iter().collect();
        let encoded = Encoded::new(&types, &mut payloads).unwrap();
        let text = format!("{payloads:?}");
        let message = Message::new("values", payloads).from_pid("{main|1}".parse().unwrap());
        let envelope = message.to("{beta@main|2}".parse().unwrap());
        let mut apart = Apart::default();
        write(&mut apart, Places { own, peer }, &envelope, &encoded);

        let mut decoder = Decoder::new(Places {
            own: peer,
            peer: own,
        });
        let mut reader = Reader::new(apart.finish());
        let mut known = Known::default();
        let (read, _) = decoder
            .message(&mut reader, &mut known, &types, &|it| it())
            .unwrap();
        assert_eq!(read.target.to_string(), "{main|2}");
        assert_eq!(read.message.source.unwrap().to_string(), "{alpha@main|1}");
        assert_eq!(read.message.topic, "values");
        let absolute = text.replace("{main|9}", "{alpha@main|9}");
        assert_eq!(format!("{:?}", read.message.payloads), absolute);
        let mut values: Vec<_> = read.message.payloads.into_iter().collect();
        assert_eq!(values.pop().unwrap().downcast::<String>().unwrap(), "text");
        assert_eq!(values.pop().unwrap().downcast::<u64>().unwrap(), 7);
    }
}
