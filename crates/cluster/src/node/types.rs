//! The types of values that cross to other nodes.
//!
//! **Problem.** A value of any type may be in a message, and most types say nothing of how they
//! become bytes. The send must refuse a value that can't cross, and give the message back.
//!
//! **Protocol.** A type is registered under a name, which both nodes know. The sender finds the
//! codec by the type of the value, the receiver by the name. A value of an unknown name arrives as
//! [`Foreign`], so nodes of two versions live together.

use crate::wire::varint;
use bytes::Bytes;
use foldhash::{HashMap, HashMapExt as _};
use ganger_proc_api::{Kind, Payload, SendErrorKind, TypeName};
use ganger_sync::contain;
use postcard::ser_flavors::Flavor;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::{Any, TypeId, type_name};
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// The longest message between nodes, with all of its values.
pub const MAX_MESSAGE: usize = 64 << 20;

/// A value of a type that the receiving node has not registered, or whose bytes its codec has
/// refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// The name of the type at its sender.
    pub name: Arc<str>,
    /// The value as the sender's codec has written it.
    pub bytes: Bytes,
}

/// Two types have one name, or a type has two.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the type {type_name} can't be registered as {name:?}: the type or the name is taken")]
pub struct TypeTaken {
    /// The type.
    pub type_name: &'static str,
    /// The name.
    pub name: Box<str>,
}

/// Why a value has no bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum EncodeError {
    /// The type is not registered, or its codec has refused the value.
    #[error("no codec for {0}: register the type to send it to other nodes")]
    NoCodec(&'static str),
    /// The message would be longer than [`MAX_MESSAGE`].
    #[error("the message is too large for another node")]
    TooLarge,
}

impl From<EncodeError> for SendErrorKind {
    fn from(error: EncodeError) -> Self {
        match error {
            EncodeError::NoCodec(name) => Self::NoCodec(TypeName::new(name)),
            EncodeError::TooLarge => Self::TooLarge,
        }
    }
}

/// Calls the decoder of a value with replies, addresses or PIDs inside.
pub(crate) type Within<'a> = &'a dyn Fn(&dyn Fn() -> Option<Payload>) -> Option<Payload>;

/// Room for most values, which then need a single allocation.
const USUAL: usize = 128;

type Encode = fn(&mut Payload, &mut Limited) -> Result<(), EncodeError>;
type Decode = fn(&[u8]) -> Option<Payload>;
type EncodeInherited = fn(&(dyn Any + Send + Sync), &mut Limited) -> bool;
type DecodeInherited = fn(&[u8]) -> Option<Arc<dyn Any + Send + Sync>>;

#[derive(Clone)]
pub(crate) struct Codec {
    name: Arc<str>,
    encode: Encode,
    decode: Decode,
    /// Whether no reply, address or PID can be inside, and no code of users runs.
    is_plain: bool,
}

/// The codecs of a node: see [`Builder::types`](crate::Builder::types).
///
/// Scalars, texts, byte strings and PIDs need no registration.
#[derive(Clone)]
pub struct Types {
    codecs: Vec<Codec>,
    /// Their places.
    by_kind: HashMap<Kind, usize>,
    by_name: HashMap<Arc<str>, usize>,
    /// Of inherited values, by their types and by their names.
    inherited: HashMap<TypeId, (Arc<str>, EncodeInherited)>,
    inherited_by_name: HashMap<Arc<str>, DecodeInherited>,
    taken: Option<TypeTaken>,
}

impl Default for Types {
    fn default() -> Self {
        let mut types = Self {
            codecs: Vec::new(),
            by_kind: HashMap::new(),
            by_name: HashMap::new(),
            inherited: HashMap::new(),
            inherited_by_name: HashMap::new(),
            taken: None,
        };
        types.add::<()>("()").add::<bool>("bool");
        types.add::<i8>("i8").add::<i16>("i16").add::<i32>("i32");
        types.add::<u8>("u8").add::<u16>("u16").add::<u32>("u32");
        types.add::<i64>("i64").add::<u64>("u64");
        types.add::<f32>("f32").add::<f64>("f64");
        types.add::<String>("text");
        let bytes = Codec {
            name: "bytes".into(),
            encode: encode_bytes,
            decode: decode_bytes,
            is_plain: true,
        };
        types.insert(Kind::of::<Vec<u8>>(), bytes);
        for codec in &mut types.codecs {
            codec.is_plain = true;
        }
        types
    }
}

impl Types {
    /// Registers a type under a name, which the type has on all nodes. Names with a version, such
    /// as `shop.order.v1`, let nodes of two versions live together.
    ///
    /// A type or a name that is taken has [`Builder::join`](crate::Builder::join) fail.
    pub fn add<T>(&mut self, name: &str) -> &mut Self
    where
        T: Serialize + DeserializeOwned + Any + Send,
    {
        let name: Arc<str> = name.into();
        let codec = Codec {
            name: Arc::clone(&name),
            encode: encode::<T>,
            decode: decode::<T>,
            is_plain: false,
        };
        let kind = Kind::of::<T>();
        let is_taken = self.by_kind.contains_key(&kind) || self.by_name.contains_key(&name);
        if is_taken {
            self.taken.get_or_insert(TypeTaken {
                type_name: type_name::<T>(),
                name: (*name).into(),
            });
        } else {
            self.insert(kind, codec);
        }
        self
    }

    /// Has inherited values of a type cross, with starts and with calls of functions, under a name
    /// that the type has on all nodes. A node that does not know the name drops the value.
    ///
    /// At most 16 values of at most 1,024 bytes cross at once. A start with more fails.
    ///
    /// A type or a name that is taken has [`Builder::join`](crate::Builder::join) fail.
    pub fn inherit<T>(&mut self, name: &str) -> &mut Self
    where
        T: Serialize + DeserializeOwned + Any + Send + Sync,
    {
        let name: Arc<str> = name.into();
        let id = TypeId::of::<T>();
        if self.inherited.contains_key(&id) || self.inherited_by_name.contains_key(&name) {
            self.taken.get_or_insert(TypeTaken {
                type_name: type_name::<T>(),
                name: (*name).into(),
            });
            return self;
        }
        let encode: EncodeInherited = |value, bytes| {
            let value = value.downcast_ref::<T>();
            value.is_some_and(|it| postcard::serialize_with_flavor(it, bytes).is_ok())
        };
        let decode: DecodeInherited = |bytes| {
            let (value, rest) = postcard::take_from_bytes::<T>(bytes).ok()?;
            rest.is_empty().then(|| Arc::new(value) as _)
        };
        self.inherited.insert(id, (Arc::clone(&name), encode));
        self.inherited_by_name.insert(name, decode);
        self
    }

    /// Returns whether inherited values of this type cross.
    pub(crate) fn inherits(&self, value: &(dyn Any + Send + Sync)) -> bool {
        self.inherited.contains_key(&value.type_id())
    }

    /// Returns the name of an inherited value whose type crosses, and its bytes, unless these are
    /// more than `room`.
    pub(crate) fn encode_inherited(
        &self,
        value: &(dyn Any + Send + Sync),
        room: usize,
    ) -> Option<(Arc<str>, Option<Vec<u8>>)> {
        let (name, encode) = self.inherited.get(&value.type_id())?;
        let mut bytes = Limited {
            bytes: Vec::new(),
            room,
            is_full: false,
        };
        let is_written = encode(value, &mut bytes);
        Some((Arc::clone(name), is_written.then_some(bytes.bytes)))
    }

    /// Decodes the inherited value of these bytes.
    pub(crate) fn decode_inherited(
        &self,
        name: &str,
        bytes: &[u8],
    ) -> Option<Arc<dyn Any + Send + Sync>> {
        let decode = self.inherited_by_name.get(name)?;
        // A type's own code must not end the link.
        contain(|| decode(bytes))?
    }

    fn insert(&mut self, kind: Kind, codec: Codec) {
        let place = self.codecs.len();
        self.by_name.insert(Arc::clone(&codec.name), place);
        self.by_kind.insert(kind, place);
        self.codecs.push(codec);
    }

    /// Returns the codec of a value; `None` for a value that needs none.
    pub(crate) fn of(&self, value: &Payload) -> Result<Option<&Codec>, EncodeError> {
        let Some(kind) = value.kind() else {
            return Ok(None);
        };
        let place = self.by_kind.get(&kind);
        let place = *place.ok_or_else(|| EncodeError::NoCodec(kind.name()))?;
        Ok(Some(&self.codecs[place]))
    }

    /// Returns the first refused registration.
    pub(crate) fn taken(&self) -> Option<&TypeTaken> {
        self.taken.as_ref()
    }

    /// Returns the place of the codec with this name.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Decodes the value of these bytes, by the codec at this place, which runs inside of `within`
    /// unless its type is plain.
    pub(crate) fn decode(&self, place: usize, bytes: &[u8], within: Within<'_>) -> Option<Payload> {
        let codec = self.codecs.get(place)?;
        if codec.is_plain {
            return (codec.decode)(bytes);
        }
        // A type's own code must not end the link.
        let decode = || contain(|| (codec.decode)(bytes))?;
        within(&decode)
    }
}

impl Codec {
    /// Returns the name of the type.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether no reply, address or PID is inside of a value, and no code of users runs.
    pub(crate) fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Encodes the value in at most `room` bytes, in the memory of `spare`, which is empty.
    pub(crate) fn encode(
        &self,
        value: &mut Payload,
        room: usize,
        mut spare: Vec<u8>,
    ) -> Result<Vec<u8>, EncodeError> {
        spare.reserve(USUAL.min(room));
        let mut limited = Limited {
            bytes: spare,
            room,
            is_full: false,
        };
        (self.encode)(value, &mut limited)?;
        Ok(limited.bytes)
    }
}

impl fmt::Debug for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}

fn encode<T: Serialize + Any>(value: &mut Payload, bytes: &mut Limited) -> Result<(), EncodeError> {
    let refused = EncodeError::NoCodec(type_name::<T>());
    let value = value.downcast_mut::<T>().ok_or(refused)?;
    let written = postcard::serialize_with_flavor(value, &mut *bytes);
    match written {
        Ok(()) => Ok(()),
        Err(_) if bytes.is_full => Err(EncodeError::TooLarge),
        Err(_) => Err(refused),
    }
}

fn decode<T: DeserializeOwned + Any + Send>(bytes: &[u8]) -> Option<Payload> {
    let (value, rest) = postcard::take_from_bytes::<T>(bytes).ok()?;
    rest.is_empty().then(|| Payload::any(value))
}

/// Encodes a `Vec<u8>` as [`encode`] does, in the same form, but not byte by byte.
fn encode_bytes(value: &mut Payload, out: &mut Limited) -> Result<(), EncodeError> {
    let refused = EncodeError::NoCodec(type_name::<Vec<u8>>());
    let bytes = value.downcast_mut::<Vec<u8>>().ok_or(refused)?;
    let length = bytes.len() as u64;
    if out.room < varint::length(length) + bytes.len() {
        return Err(EncodeError::TooLarge);
    }
    varint::put(&mut out.bytes, length);
    out.bytes.extend_from_slice(bytes);
    Ok(())
}

fn decode_bytes(bytes: &[u8]) -> Option<Payload> {
    let (length, rest) = postcard::take_from_bytes::<usize>(bytes).ok()?;
    (rest.len() == length).then(|| Payload::any(rest.to_vec()))
}

/// Bytes up to a limit, looked at before each allocation.
struct Limited {
    bytes: Vec<u8>,
    room: usize,
    is_full: bool,
}

impl Flavor for &mut Limited {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.try_extend(&[byte])
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        if bytes.len() > self.room - self.bytes.len() {
            self.is_full = true;
            return Err(postcard::Error::SerializeBufferFull);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Order(u64, String);

    #[test]
    fn a_value_is_read_by_its_name_and_is_foreign_elsewhere() {
        let mut types = Types::default();
        types.add::<Order>("shop.order.v1");
        let order = || Order(7, "tea".into());
        let (name, bytes) = encode(&types, Payload::any(order()), 100).unwrap();
        assert_eq!(name, "shop.order.v1");
        let is_plain = |value| types.of(&value).unwrap().unwrap().is_plain();
        assert!(!is_plain(Payload::any(order())) && is_plain(Payload::any(7_u64)));
        let value = decode(&types, "shop.order.v1", &bytes);
        assert_eq!(value.unwrap().downcast::<Order>().unwrap(), order());
        assert!(decode(&types, "shop.order.v1", &bytes[1..]).is_none());
        assert!(decode(&Types::default(), "shop.order.v1", &bytes).is_none());
    }

    fn encode(
        types: &Types,
        mut value: Payload,
        room: usize,
    ) -> Result<(&str, Vec<u8>), EncodeError> {
        let codec = types.of(&value)?.expect("a value with a codec");
        let bytes = codec.encode(&mut value, room, Vec::new())?;
        Ok((codec.name(), bytes))
    }

    fn decode(types: &Types, name: &str, bytes: &[u8]) -> Option<Payload> {
        types.decode(types.find(name)?, bytes, &|decode| decode())
    }

    #[test]
    fn bytes_have_the_form_of_other_values() {
        let types = Types::default();
        for length in [0, 1, 64, 127, 128, 70_000] {
            let bytes = vec![7_u8; length];
            let value = Payload::any(bytes.clone());
            let (name, written) = encode(&types, value, 80_000).unwrap();
            assert_eq!(name, "bytes");
            assert_eq!(written, postcard::to_stdvec(&bytes).unwrap());
            let read = decode(&types, "bytes", &written);
            assert_eq!(read.unwrap().downcast::<Vec<u8>>().unwrap(), bytes);
            assert!(decode(&types, "bytes", &written[..written.len() - 1]).is_none());
        }
        let refused = encode(&types, Payload::any(vec![7_u8; 100]), 100);
        assert_eq!(refused, Err(EncodeError::TooLarge));
    }

    #[test]
    fn what_has_no_codec_or_no_room_is_refused() {
        let mut types = Types::default();
        let order = || Payload::any(Order(7, "tea".into()));
        let refused = encode(&types, order(), 100);
        assert_eq!(refused, Err(EncodeError::NoCodec(type_name::<Order>())));
        types.add::<Order>("order");
        let refused = encode(&types, order(), 4);
        assert_eq!(refused, Err(EncodeError::TooLarge));
        assert!(types.taken().is_none());
        types.add::<Vec<Order>>("order");
        assert_eq!(&*types.taken().unwrap().name, "order");
    }
}
