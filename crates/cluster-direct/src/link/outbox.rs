//! The frames for a peer, and the turn to write them.
//!
//! **Problem.** A frame should leave in the thread of its sender, because a hand-over to another
//! thread costs more than the write. Nevertheless no sender may wait, and bytes must not mix.
//!
//! **Protocol.** The *turn* is a flag under the lock. A sender puts its frame into a lane. If the
//! turn is free, the sender takes it, and with it all queued frames, and writes them without the
//! lock, as far as the connection takes them. Then it gives the turn back, or hands it to the
//! writer, a process, if bytes or frames are left. The writer waits until it is handed the turn,
//! writes until no frame is left, and gives the turn back. When the connection is replaced, the
//! owner of the turn loses it: each looks, under the lock, whether its connection is still the
//! present.
//!
//! **Bound.** A lane takes a frame if it is empty, or has room for it. A refused sender is told by
//! `writable` when half of the lanes is free.

use super::connection::Link;
use crate::wire::{Kind, put_frame};
use bytes::Bytes;
use ganger_cluster::{EngineSink, Lane, NodeId};
use ganger_sync::sync::{Mutex, MutexGuard, lock};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

/// About the number of bytes written together.
const BATCH: usize = 128 << 10;
/// The most frames of the engine's own. A later frame is left out: each repeats.
const MOST_OWN: usize = 16;
/// How long the reader goes on after the last write.
const LINGER: Duration = Duration::from_secs(1);

/// A node that has proven its name at least once.
pub(crate) struct Peer {
    pub(crate) name: NodeId,
    outbox: Mutex<Outbox>,
}

struct Outbox {
    link: Option<Arc<Link>>,
    /// The run of the last connection.
    run: Option<[u8; 16]>,
    lanes: [VecDeque<Bytes>; 2],
    bytes: [usize; 2],
    /// The most bytes in a lane.
    room: usize,
    has_refused: bool,
    /// Frames of the engine itself.
    own: VecDeque<(Kind, Vec<u8>)>,
    turn: Turn,
    /// Sealed bytes that the connection has not taken yet.
    rest: Vec<u8>,
    is_closing: bool,
    writer: Option<Waker>,
}

/// The turn to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Free,
    /// A sender or the writer has it.
    Taken,
    /// For the writer.
    Handed,
}

/// The outcome for a new connection to the peer.
pub(crate) enum Attached {
    /// The connection is the peer's now, and has the turn. The connection before, if any, ends.
    Yes(Option<Arc<Link>>),
    /// Another connection is better, if it lives.
    Behind(Arc<Link>),
}

impl Peer {
    pub(crate) fn new(name: NodeId, room: usize) -> Self {
        let outbox = Outbox {
            link: None,
            run: None,
            lanes: [VecDeque::new(), VecDeque::new()],
            bytes: [0; 2],
            room,
            has_refused: false,
            own: VecDeque::new(),
            turn: Turn::Free,
            rest: Vec::new(),
            is_closing: false,
            writer: None,
        };
        let outbox = Mutex::new(outbox);
        Self { name, outbox }
    }

    /// Returns the present connection.
    pub(crate) fn link(&self) -> Option<Arc<Link>> {
        lock(&self.outbox).link.clone()
    }

    /// Makes a connection the present, if it is better than the present. `dead` did not answer.
    pub(crate) fn attach(&self, link: &Arc<Link>, dead: Option<&Arc<Link>>) -> Attached {
        let mut outbox = lock(&self.outbox);
        if let Some(present) = &outbox.link
            && dead.is_none_or(|dead| !Arc::ptr_eq(dead, present))
            && !link.is_better_than(present)
        {
            return Attached::Behind(Arc::clone(present));
        }
        let before = outbox.link.replace(Arc::clone(link));
        if outbox.run != Some(link.run) {
            // Another program: no frame is for it.
            outbox.lanes.iter_mut().for_each(VecDeque::clear);
            outbox.bytes = [0; 2];
        }
        outbox.own.clear();
        outbox.rest.clear();
        outbox.turn = Turn::Taken;
        outbox.run = Some(link.run);
        let writer = outbox.writer.take();
        drop(outbox);
        // The writer of the connection before leaves.
        writer.into_iter().for_each(Waker::wake);
        Attached::Yes(before)
    }

    /// Gives the turn of a new connection to its writer.
    pub(crate) fn begin(&self, link: &Arc<Link>) {
        if let Some(outbox) = self.outbox_of(link) {
            hand_over(outbox);
        }
    }

    /// Forgets a connection. False: another was the present.
    pub(crate) fn detach(&self, link: &Arc<Link>) -> bool {
        let Some(mut outbox) = self.outbox_of(link) else {
            return false;
        };
        outbox.link = None;
        outbox.turn = Turn::Free;
        outbox.rest.clear();
        let writer = outbox.writer.take();
        drop(outbox);
        writer.into_iter().for_each(Waker::wake);
        true
    }

    /// Returns the outbox, if this connection is the present.
    fn outbox_of(&self, link: &Arc<Link>) -> Option<MutexGuard<'_, Outbox>> {
        let outbox = lock(&self.outbox);
        let is_present = outbox.link.as_ref().is_some_and(|it| Arc::ptr_eq(it, link));
        is_present.then_some(outbox)
    }

    /// Takes a frame for the peer, and writes it if no other frame is on its way. False: no room,
    /// or no connection.
    pub(crate) fn send(&self, lane: Lane, frame: Bytes) -> bool {
        let mut outbox = lock(&self.outbox);
        if outbox.link.is_none() || outbox.is_closing {
            return false;
        }
        if !outbox.push(lane, frame) {
            return false;
        }
        self.write_now(outbox);
        true
    }

    /// Sends a frame of the engine itself.
    pub(crate) fn send_own(&self, link: &Arc<Link>, kind: Kind, body: Vec<u8>) {
        if let Some(mut outbox) = self.outbox_of(link)
            && outbox.own.len() < MOST_OWN
        {
            outbox.own.push_back((kind, body));
            self.write_now(outbox);
        }
    }

    /// Wakes the writer, because TLS has something to say.
    pub(crate) fn poke(&self, link: &Arc<Link>) {
        if let Some(outbox) = self.outbox_of(link)
            && outbox.turn == Turn::Free
        {
            hand_over(outbox);
        }
    }

    /// Closes the outbox, which takes no more frames. The connection ends when the present frames
    /// are written.
    pub(crate) fn close(&self) -> Option<Arc<Link>> {
        let mut outbox = lock(&self.outbox);
        outbox.is_closing = true;
        let link = outbox.link.clone();
        if outbox.turn == Turn::Free {
            hand_over(outbox);
        }
        link
    }

    /// Writes the queued frames in this thread, if the turn is free.
    fn write_now(&self, mut outbox: MutexGuard<'_, Outbox>) {
        let (Turn::Free, Some(link)) = (outbox.turn, outbox.link.clone()) else {
            return;
        };
        outbox.turn = Turn::Taken;
        let batch = outbox.batch(&link);
        drop(outbox);
        let written = link.pipe.seal(batch).and_then(|mut sealed| {
            let written = link.pipe.try_write(&sealed)?;
            sealed.drain(..written);
            Ok(sealed)
        });
        let Ok(rest) = written else {
            // The reader sees the end, and detaches.
            return link.pipe.close();
        };
        let Some(mut outbox) = self.outbox_of(&link) else {
            return;
        };
        outbox.rest = rest;
        if outbox.rest.is_empty() && outbox.is_empty() && !outbox.is_closing {
            outbox.turn = Turn::Free;
        } else {
            hand_over(outbox);
        }
    }

    /// Writes the frames of a connection whenever the turn is handed over. Ends when the connection
    /// is not the present any more, or all is written and the node leaves.
    pub(crate) async fn write(&self, link: &Arc<Link>, sink: &dyn EngineSink) {
        while self.turn(link).await {
            loop {
                let Some((batch, rest, is_writable)) = self.next(link) else {
                    return;
                };
                if is_writable {
                    sink.writable(&self.name);
                }
                let sealed = if rest.is_empty() {
                    link.pipe.seal(batch)
                } else {
                    Ok(rest)
                };
                let Ok(sealed) = sealed else {
                    return link.pipe.close();
                };
                if sealed.is_empty() {
                    match self.give_back(link) {
                        Given::Back => break,
                        Given::Again => continue,
                        Given::Last => return finish(link).await,
                    }
                }
                if link.pipe.write_sealed(&sealed).await.is_err() {
                    return link.pipe.close();
                }
            }
        }
    }

    /// Waits for the turn. False: the connection is not the present.
    async fn turn(&self, link: &Arc<Link>) -> bool {
        poll_fn(|context| {
            let Some(mut outbox) = self.outbox_of(link) else {
                return Poll::Ready(false);
            };
            if outbox.turn == Turn::Handed {
                outbox.turn = Turn::Taken;
                return Poll::Ready(true);
            }
            outbox.writer = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Returns the frames to write next, or sealed bytes, and whether a refused sender may try
    /// again.
    fn next(&self, link: &Arc<Link>) -> Option<(Vec<u8>, Vec<u8>, bool)> {
        let mut outbox = self.outbox_of(link)?;
        let rest = std::mem::take(&mut outbox.rest);
        let batch = if rest.is_empty() {
            outbox.batch(link)
        } else {
            Vec::new()
        };
        let room = outbox.room;
        let is_writable = outbox.has_refused && outbox.bytes.iter().all(|it| *it <= room / 2);
        if is_writable {
            outbox.has_refused = false;
        }
        Some((batch, rest, is_writable))
    }

    fn give_back(&self, link: &Arc<Link>) -> Given {
        let Some(mut outbox) = self.outbox_of(link) else {
            return Given::Back;
        };
        if !outbox.is_empty() {
            return Given::Again;
        }
        if outbox.is_closing {
            return Given::Last;
        }
        outbox.turn = Turn::Free;
        Given::Back
    }
}

/// The writer's next act after all is written.
enum Given {
    /// The writer waits for the turn.
    Back,
    /// The writer goes on.
    Again,
    /// The writer ends the connection.
    Last,
}

/// Says farewell. The turn stays taken.
async fn finish(link: &Arc<Link>) {
    if let Ok(last) = link.pipe.farewell() {
        // The connection ends in any case.
        let _ = link.pipe.write_sealed(&last).await;
    }
    link.pipe.finish(LINGER);
}

impl Outbox {
    fn is_empty(&self) -> bool {
        self.own.is_empty() && self.lanes.iter().all(VecDeque::is_empty)
    }

    fn push(&mut self, lane: Lane, frame: Bytes) -> bool {
        let bytes = &mut self.bytes[lane.index()];
        if *bytes > 0 && *bytes + frame.len() > self.room {
            self.has_refused = true;
            return false;
        }
        *bytes += frame.len();
        self.lanes[lane.index()].push_back(frame);
        true
    }

    /// Takes frames out of the queue, control first.
    fn batch(&mut self, link: &Link) -> Vec<u8> {
        let mut seal = lock(&link.seal);
        let mut batch = Vec::new();
        for (kind, body) in self.own.drain(..) {
            put_frame(&mut batch, &mut seal, kind, &body);
        }
        for lane in Lane::ALL.map(Lane::index) {
            while batch.len() < BATCH
                && let Some(frame) = self.lanes[lane].pop_front()
            {
                self.bytes[lane] -= frame.len();
                put_frame(&mut batch, &mut seal, Kind::Session, &frame);
            }
        }
        batch
    }
}

/// Hands the turn to the writer, which is woken without the lock.
fn hand_over(mut outbox: MutexGuard<'_, Outbox>) {
    outbox.turn = Turn::Handed;
    let writer = outbox.writer.take();
    drop(outbox);
    writer.into_iter().for_each(Waker::wake);
}
