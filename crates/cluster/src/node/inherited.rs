//! Inherited values on their way to another node, with starts and calls of functions.
//!
//! **Protocol.** A type that crosses is registered under a name, as the types of messages are.
//! Values of other types stay at their node. The receiver drops values of names that it does not
//! know, and counts them.

use super::base::Base;
use super::causes::{read_text, write_text};
use super::types::Types;
use crate::wire::{Fields, ReadError, Reader};
use ganger_proc_api::BoxError;
use ganger_sched::crossing::Inherited;

/// The most inherited values that cross with a start or a call.
pub(crate) const MAX_VALUES: usize = 16;

/// The longest inherited value, as bytes.
pub(crate) const MAX_BYTES: usize = 1024;

/// Writes the values whose types cross.
///
/// # Errors
/// A value is too long, or its codec refuses it. A process must not run without, say, its tenant.
pub(crate) fn write(
    fields: &mut impl Fields,
    types: &Types,
    inherited: &Inherited,
) -> Result<(), BoxError> {
    let mut crossing = Vec::new();
    for value in inherited.iter() {
        if let Some((name, bytes)) = types.encode_inherited(&**value, MAX_BYTES) {
            let bytes = bytes.ok_or_else(|| {
                let text = "can't be encoded, or is longer than";
                format!("the inherited value {name:?} {text} {MAX_BYTES} bytes")
            })?;
            crossing.push((name, bytes));
        }
    }
    if crossing.len() > MAX_VALUES {
        return Err(format!("more than {MAX_VALUES} inherited values cross").into());
    }
    fields.varint(crossing.len() as u64);
    for (name, bytes) in crossing {
        write_text(fields, &name);
        fields.bytes(&bytes);
    }
    Ok(())
}

pub(crate) fn read(reader: &mut Reader, base: &Base) -> Result<Inherited, ReadError> {
    let mut inherited = Inherited::default();
    let count = reader.varint()?;
    if count > MAX_VALUES as u64 {
        return Err(ReadError::Short);
    }
    for _ in 0..count {
        let name = read_text(reader)?;
        let bytes = reader.bytes()?;
        if bytes.len() > MAX_BYTES {
            return Err(ReadError::Short);
        }
        match base.types.decode_inherited(&name, &bytes) {
            Some(value) => inherited = inherited.with(value),
            None => base.count_dropped_value(),
        }
    }
    Ok(inherited)
}
