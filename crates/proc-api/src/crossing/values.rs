//! PIDs and replies, by serde.

use super::context::{arriving, completer, leaving, number_of};
use crate::commands::Reply;
use crate::values::Pid;
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{self, Serialize, Serializer};
use std::fmt;

/// The text form. Inside of [`encode`](crate::crossing::encode), with the node.
impl Serialize for Pid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&leaving(*self))
    }
}

/// The text form. Inside of [`decode`](crate::crossing::decode), as the receiver's node knows the
/// PID; elsewhere as by `parse`.
impl<'de> Deserialize<'de> for Pid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfText;

        impl Visitor<'_> for OfText {
            type Value = Pid;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the text of a PID")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Pid, E> {
                arriving(text).map_err(E::custom)
            }
        }

        deserializer.deserialize_str(OfText)
    }
}

/// A number, and the PID of the waiting process. Inside of [`encode`](crate::crossing::encode)
/// alone.
impl<T: Send + 'static> Serialize for Reply<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = number_of(self).map_err(ser::Error::custom)?;
        (number, self.pid()).serialize(serializer)
    }
}

/// Inside of [`decode`](crate::crossing::decode) alone.
impl<'de, T: Send + 'static> Deserialize<'de> for Reply<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (number, asker) = Deserialize::deserialize(deserializer)?;
        let completer = completer(number, asker).map_err(de::Error::custom)?;
        Ok(Self::new(completer))
    }
}
