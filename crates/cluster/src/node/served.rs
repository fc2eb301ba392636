//! Functions by name: the side that carries a call out (`functions.rs` has the protocol).

use super::calls::{Answering, contained};
use super::causes::read_text;
use super::inherited;
use super::peer::Peer;
use super::traces;
use super::types::Foreign;
use super::values::Decoder;
use crate::id::Half;
use crate::wire::{Known, ReadError, Reader};
use ganger_link::Services;
use ganger_proc_api::CommandError;
use ganger_sched::Handle;
use ganger_sched::crossing::{self, Incoming as _};
use ganger_sync::contain;
use std::sync::Arc;

/// Serves a call of the peer.
pub(crate) fn serve(
    peer: &Arc<Peer>,
    scheduler: &Handle,
    (half, decoder): (Half, &Decoder),
    mut reader: Reader,
) -> Result<(), ReadError> {
    let mut known = Known::default();
    let types = &peer.base.types;
    let name = read_text(&mut reader)?;
    let number = reader.varint()?;
    let asker = match reader.u8()? {
        0 => None,
        _ => Some(peer.places.read(&mut reader, &mut known)?),
    };
    let inherited = inherited::read(&mut reader, &peer.base)?;
    let answering = Answering::new(peer, half);
    let decode = || decoder.values(&mut reader, &mut known, types, &|it| it());
    let context = Arc::clone(&answering);
    let (values, mut replies) = crossing::decode(scheduler, context, decode)?;
    let trace = traces::read(&mut reader)?;
    let completer = answering.reply(number, asker);
    replies.push(number);
    let _come = answering.settle(replies);
    let Some(completer) = completer.filter(|it| !it.is_cancelled()) else {
        contained("the destructor of an input", || drop(values));
        return Ok(());
    };
    let input = values.into_first();
    let called = match input.downcast_ref::<Foreign>() {
        Some(Foreign { name: of, .. }) => {
            let text = format!("can't call {name:?}: the node can't read an input of type {of:?}");
            Err(text.into())
        }
        None => {
            let call = || Services::of(scheduler).carry_out(&name, input, completer);
            let call = || inherited.within(scheduler, call);
            let call = || traces::within(peer.base.traces.as_deref(), trace, call);
            // The function's panic is contained inside, the panic of an input's destructor is not.
            contain(call).unwrap_or_else(|| Err("the destructor of the input has panicked".into()))
        }
    };
    if let Err(error) = called {
        answering.fail(number, CommandError::Failed(error));
    }
    Ok(())
}
