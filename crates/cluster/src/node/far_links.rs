//! Links of processes that are started at another node.
//!
//! **Problem.** The link holds from the first moment of the new process on, and the asking side
//! does not know its PID yet. Either process may end before the start is answered.
//!
//! **Protocol.** The request has the asker's PID, and the number of the link.
//! 1. *Far side*: notes the link before the process begins. A signal of the process's end waits for
//!    the answer, so that the asker knows the link.
//! 2. *Asking side*: an exit action notes the end of the asker (`askers.rs`). The answer finds that
//!    end, and sends the signal; or has the link entered as any other, and from then on the asker's
//!    links tell.
//! 3. The end of the session tells both sides what is in their tables. A process whose answer is
//!    lost has its link there, and ends.
//!
//! **Proof sketch.** Whatever is sent over a link takes the link out of the table, under the lock,
//! so a signal is sent once. An asker that ends while the answer is handled is told by the action
//! or by its links, with the same cause.

use super::askers::Asker;
use super::peer::Peer;
use super::places::Places;
use super::requests::Request;
use crate::id::Half;
use crate::wire::{Fields, Known, ReadError, Reader};
use ganger_link::RemoteLinks as _;
use ganger_proc_api::{BoxError, Pid};
use ganger_sched::{Handle, RemoteLink};

/// Sends what ends a link, unless the link is over. Behind the answer to the start, if that is out.
pub(crate) fn over(peer: &Peer, link: RemoteLink, request: Request) {
    peer.with(|state, now| {
        if !state.tables.links.remove(&link) {
            return;
        }
        match state.tables.starting.get_mut(&link.number) {
            Some(waits) => *waits = Some(request),
            None => state.request(request, peer.places, now),
        }
    });
}

/// Returns the number of an asker's link, as the side that starts has it.
pub(crate) fn number_here((asker, number): (Pid, u64)) -> u64 {
    let process = asker;
    RemoteLink::new(asker, process, number)
        .seen_by_peer()
        .number
}

/// Links the process that a peer starts here to the asker.
pub(crate) fn begin(
    peer: &Peer,
    scheduler: &Handle,
    half: Half,
    (asker, number, process): (Pid, u64, Pid),
) -> Result<(), BoxError> {
    let process = scheduler.absolute(process);
    let link = RemoteLink::new(asker, process, number).seen_by_peer();
    let is_current = peer.look(|state| {
        let is_current = state.session().session() == Some(half);
        if is_current {
            state.tables.links.insert(link);
            state.tables.starting.insert(link.number, None);
        }
        is_current
    });
    if !is_current {
        return Err("the connection to the process to be linked to is lost".into());
    }
    scheduler.link_arrived(link);
    Ok(())
}

/// Answers a start, and sends what has waited for the answer.
pub(crate) fn answer(peer: &Peer, half: Half, spawned: Request, link: Option<u64>) {
    let is_started = matches!(&spawned, Request::Spawned { result: Ok(_), .. });
    peer.with(|state, now| {
        if state.session().session() != Some(half) {
            return;
        }
        state.request(spawned, peer.places, now);
        let waits = link.and_then(|number| state.tables.starting.remove(&number));
        if let Some(Some(request)) = waits
            && is_started
        {
            state.request(request, peer.places, now);
        }
    });
}

/// Writes the asker of a link, if any.
pub(crate) fn write(fields: &mut impl Fields, places: Places, asker: Option<&Asker>) {
    fields.u8(u8::from(asker.is_some()));
    if let Some(asker) = asker {
        places.write(fields, asker.process);
        fields.varint(asker.number);
    }
}

pub(crate) fn read(
    reader: &mut Reader,
    known: &mut Known,
    places: Places,
) -> Result<Option<(Pid, u64)>, ReadError> {
    if reader.u8()? == 0 {
        return Ok(None);
    }
    let asker = places.read(reader, known)?;
    let number = reader.varint()?;
    // A peer links its own processes alone.
    let is_its_own = asker.node() == Some(places.peer);
    is_its_own
        .then_some(Some((asker, number)))
        .ok_or(ReadError::Short)
}
