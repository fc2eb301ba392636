//! Processes that a node starts for other nodes: the starting side, and the effects of its answer
//! (`spawns.rs` has the protocol).

use super::calls::{self, Answering};
use super::causes::read_text;
use super::far_links;
use super::inherited;
use super::peer::Peer;
use super::requests::Request;
use super::tables::Spawn;
use super::traces;
use super::values::Decoder;
use super::watch;
use crate::wire::{Known, ReadError, Reader};
use bytes::Bytes;
use ganger_link::RemoteLinks as _;
use ganger_proc_api::{BoxError, Message, Payload, Pid};
use ganger_sched::Handle;
use ganger_sync::contain;
use std::sync::Arc;

/// The most names of a process.
pub(crate) const MAX_NAMES: usize = 16;

/// Starts a process for the peer, and answers.
pub(crate) fn start(
    peer: &Arc<Peer>,
    scheduler: &Handle,
    (answering, decoder): (&Answering, &Decoder),
    (number, watch, body): (u64, Option<u64>, Bytes),
) -> Result<(), ReadError> {
    let half = answering.half();
    let mut reader = Reader::new(body);
    let mut known = Known::default();
    let kind = read_text(&mut reader)?;
    let mut spawner = scheduler.spawner();
    let names = reader.varint()?;
    if names > MAX_NAMES as u64 {
        return Err(ReadError::Short);
    }
    for _ in 0..names {
        spawner = spawner.named(&*read_text(&mut reader)?);
    }
    let link = far_links::read(&mut reader, &mut known, peer.places)?;
    let inherited = inherited::read(&mut reader, &peer.base)?;
    let (values, replies) =
        decoder.values(&mut reader, &mut known, &peer.base.types, &|it| it())?;
    let trace = traces::read(&mut reader)?;
    let _come = answering.settle(replies);
    let mut values = values.into_iter();
    let input = values.next().unwrap_or(Payload::UNIT);
    if let Some(first) = values.next() {
        spawner = spawner.with_message(Message::new("", first));
    }
    if let Some(watch) = watch {
        let action = watch::of_start(peer, half, watch);
        spawner = spawner.before_init(move |process| {
            let added = process.add_exit_action(action);
            added.map_err(|error| BoxError::from(error.to_string()))
        });
    }
    let link_number = link.map(far_links::number_here);
    if let Some((asker, number)) = link {
        let (peer, handle) = (Arc::clone(peer), scheduler.clone());
        spawner = spawner.before_init(move |process| {
            far_links::begin(&peer, &handle, half, (asker, number, process.pid()))
        });
    }
    let started = match peer.base.kinds.get(&kind) {
        None => {
            calls::contained("the destructor of an input", || drop((spawner, input)));
            Err(format!("the node offers no kind {kind:?}").into())
        }
        Some(make) => contain(|| {
            let make = || inherited.within(scheduler, || make(spawner, input));
            traces::within(peer.base.traces.as_deref(), trace, make)
        })
        .unwrap_or_else(|| Err("the start of the process has panicked".into())),
    };
    let result = started.map_err(|error| Arc::from(error.to_string()));
    let pid = result.as_ref().ok().copied();
    let spawned = Request::Spawned { number, result };
    far_links::answer(peer, half, spawned, link_number);
    if let (Some(watch), Some(pid)) = (watch, pid) {
        watch::started(peer, half, watch, pid);
    }
    Ok(())
}

/// Answers a start: the peer has started a process, or says why not. The monitor and the link are
/// there before the asker has the PID.
pub(crate) fn answered(
    peer: &Arc<Peer>,
    scheduler: &Handle,
    number: u64,
    result: Result<Pid, Arc<str>>,
) {
    let found = peer.look(|state| {
        let Spawn { reply, watch, link } = state.tables.spawns.remove(number)?;
        if let (Ok(pid), Some((number, watcher))) = (&result, watch) {
            state.tables.watches.enter(number, *pid, watcher);
        }
        let asker = link.zip(result.as_ref().ok().copied());
        let link = asker.map(|(asker, pid)| (asker.link(pid), asker));
        state
            .tables
            .links
            .extend(link.iter().map(|(link, _)| *link));
        Some((reply, link))
    });
    let Some((reply, link)) = found else {
        return;
    };
    if let Some((link, asker)) = link {
        let peer = Arc::clone(peer);
        let begin = || scheduler.link_begun(link);
        asker.answered(begin, move |cause| {
            far_links::over(&peer, link, Request::Signal(link, cause.clone()));
        });
    }
    calls::contained("an asker", || match result {
        Ok(pid) => reply.complete(pid),
        Err(error) => reply.fail(&*error),
    });
}
