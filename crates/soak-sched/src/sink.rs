//! A process that takes every event.

use crate::actor::{Behaviour, Mail, Next, Turn};
use ganger::BoxError;

/// Takes every event, and ends at a cancellation.
pub(crate) struct Sink;

impl Behaviour for Sink {
    fn turn(&mut self, mail: Vec<Mail>, _: &mut Turn<'_>) -> Result<Next, BoxError> {
        let is_cancelled = mail.iter().any(|mail| matches!(mail, Mail::Cancel));
        Ok(if is_cancelled {
            Next::Done(0)
        } else {
            Next::Wait
        })
    }
}
