//! Causes of ends, and reasons of cancellations, as bytes.

use crate::wire::{Fields, ReadError, Reader};
use ganger_proc_api::{CancelReason, ExitCause};
use std::sync::Arc;

const DONE: u8 = 0;
const FAILED: u8 = 1;
const PANICKED: u8 = 2;
const CANCELLED: u8 = 3;
const TERMINATED: u8 = 4;
const UPGRADE_FAILED: u8 = 5;
const NOT_FOUND: u8 = 6;
const NO_CONNECTION: u8 = 7;

/// Longer texts are cut: a notice has to fit a frame.
pub(crate) const MAX_TEXT: usize = 4096;

pub(crate) fn write(fields: &mut impl Fields, cause: &ExitCause) {
    let (tag, text) = match cause {
        ExitCause::Done => (DONE, None),
        ExitCause::Failed(text) => (FAILED, Some(text)),
        ExitCause::Panicked(text) => (PANICKED, Some(text)),
        ExitCause::Cancelled(reason) => {
            fields.u8(CANCELLED);
            return write_reason(fields, reason);
        }
        ExitCause::Terminated => (TERMINATED, None),
        ExitCause::UpgradeFailed(text) => (UPGRADE_FAILED, Some(text)),
        ExitCause::NotFound => (NOT_FOUND, None),
        // A cause unknown to this version.
        _ => (NO_CONNECTION, None),
    };
    fields.u8(tag);
    if let Some(text) = text {
        write_text(fields, text);
    }
}

pub(crate) fn read(reader: &mut Reader) -> Result<ExitCause, ReadError> {
    Ok(match reader.u8()? {
        DONE => ExitCause::Done,
        FAILED => ExitCause::Failed(read_text(reader)?),
        PANICKED => ExitCause::Panicked(read_text(reader)?),
        CANCELLED => ExitCause::Cancelled(read_reason(reader)?),
        TERMINATED => ExitCause::Terminated,
        UPGRADE_FAILED => ExitCause::UpgradeFailed(read_text(reader)?),
        NOT_FOUND => ExitCause::NotFound,
        NO_CONNECTION => ExitCause::NoConnection,
        _ => return Err(ReadError::Short),
    })
}

pub(crate) fn write_reason(fields: &mut impl Fields, reason: &CancelReason) {
    match reason {
        CancelReason::Requested(text) => {
            fields.u8(1);
            write_text(fields, text);
        }
        _ => fields.u8(0),
    }
}

pub(crate) fn read_reason(reader: &mut Reader) -> Result<CancelReason, ReadError> {
    Ok(match reader.u8()? {
        0 => CancelReason::Shutdown,
        _ => CancelReason::Requested(read_text(reader)?),
    })
}

/// Writes a text, cut where it is too long for a request.
pub(crate) fn write_text(fields: &mut impl Fields, text: &str) {
    let end = text.floor_char_boundary(MAX_TEXT);
    fields.bytes(&text.as_bytes()[..end]);
}

pub(crate) fn read_text(reader: &mut Reader) -> Result<Arc<str>, ReadError> {
    let bytes = reader.bytes()?;
    let text = std::str::from_utf8(&bytes).map_err(|_| ReadError::Text)?;
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Apart;

    #[test]
    fn each_cause_is_read_as_it_was_written() {
        for cause in [
            ExitCause::Done,
            ExitCause::Failed("no disk".into()),
            ExitCause::Panicked("index".into()),
            ExitCause::Cancelled(CancelReason::Shutdown),
            ExitCause::Cancelled("enough".into()),
            ExitCause::Terminated,
            ExitCause::UpgradeFailed("no".into()),
            ExitCause::NotFound,
            ExitCause::NoConnection,
        ] {
            let mut fields = Apart::default();
            write(&mut fields, &cause);
            assert_eq!(read(&mut Reader::new(fields.finish())), Ok(cause));
        }
        let mut fields = Apart::default();
        write_text(&mut fields, &"ä".repeat(MAX_TEXT));
        let text = read_text(&mut Reader::new(fields.finish())).unwrap();
        assert_eq!(text.len(), MAX_TEXT);
    }
}
