//! The ends of the node in the scheduler and its router: messages, monitors, links and requests for
//! processes of other nodes.

use super::calls;
use super::core::Core;
use super::directory::Ways;
use super::far_links;
use super::multi;
use super::requests::Request;
use super::waiting;
use crate::id::Lane;
use ganger_link::RemoteLinks as _;
use ganger_proc_api::{
    CancelReason, Envelope, EnvelopeReceiver, ExitCause, MAX_SYMBOL_BYTES, Message, NodeName,
    NotFound, Pid, SendError, SendErrorKind,
};
use ganger_sched::{ExitAction, ExitKey, Remote, RemoteLink};
use std::sync::Arc;
use std::task::Waker;

pub(crate) struct Gateway(pub(crate) Arc<Core>);

impl Gateway {
    /// Returns the node of a PID, unless the PID is of this node.
    fn node_of(&self, pid: Pid) -> Option<NodeName> {
        pid.node().filter(|node| *node != self.0.base.node)
    }

    fn pass(&self, lane: Lane, mut envelope: Envelope) -> Result<(), SendError> {
        let refuse = |kind, envelope| Err(SendError::new(kind, envelope));
        let Some(node) = self.node_of(envelope.target) else {
            return refuse(SendErrorKind::HostNotFound, envelope);
        };
        let Some(peer) = self.0.reach(node) else {
            return refuse(SendErrorKind::NoConnection, envelope);
        };
        // A literal may be longer, and the peer would end the session.
        if envelope.message.topic.len() > MAX_SYMBOL_BYTES {
            return refuse(SendErrorKind::TooLarge, envelope);
        }
        let payloads = &mut envelope.message.payloads;
        let encoded = match calls::plain(&peer, payloads) {
            Ok(Some(encoded)) => Ok((encoded, None)),
            Ok(None) => {
                let Some(scheduler) = self.0.base.scheduler.upgrade() else {
                    return refuse(SendErrorKind::Stopping, envelope);
                };
                calls::crossing(&peer, &scheduler, payloads)
            }
            Err(why) => Err(why),
        };
        let (encoded, replies) = match encoded {
            Ok(encoded) => encoded,
            Err(why) => return refuse(why.into(), envelope),
        };
        let questions = replies.as_ref().map_or(0, |it| it.numbers().count());
        let sent = peer.put(|state, now| {
            if questions > 0 && !state.tables.may_ask(questions) {
                waiting::refused(0);
                return Err(SendErrorKind::Full);
            }
            state.accept(lane, &envelope, &encoded, peer.places, now)?;
            // Before the frame leaves, so before the answer comes.
            Ok(replies.map(|replies| {
                let (completers, taken) = replies.take();
                (calls::ask(&peer, &mut state.tables.open, completers), taken)
            }))
        });
        match sent {
            Ok(None) => {}
            Ok(Some((unwanted, taken))) => {
                taken.drop_message(envelope);
                calls::take_back_all(&peer, unwanted);
            }
            Err(kind) => return refuse(kind, envelope),
        }
        Ok(())
    }

    /// Passes a request on, if there is a peer for it.
    fn ask(&self, pid: Pid, request: Request) -> Result<(), NotFound> {
        let peer = self.node_of(pid).and_then(|node| self.0.reach(node));
        let is_asked = peer.is_some_and(|peer| peer.request(request));
        is_asked.then_some(()).ok_or(NotFound { pid })
    }

    fn signal_here(&self, link: RemoteLink, cause: ExitCause) {
        if let Some(scheduler) = self.0.base.scheduler.upgrade() {
            scheduler.signal_arrived(link, cause);
        }
    }
}

impl EnvelopeReceiver for Gateway {
    fn send(&self, envelope: Envelope) -> Result<(), SendError> {
        self.pass(Lane::Data, envelope)
    }

    fn send_control(&self, envelope: Envelope) -> Result<(), SendError> {
        self.pass(Lane::Control, envelope)
    }

    fn room(&self, target: Pid, waker: Waker) -> bool {
        let peer = self.node_of(target).and_then(|node| self.0.find(node));
        match peer {
            Some(peer) => peer.room(waker),
            None => waker.wake(),
        }
        true
    }
}

impl Remote for Gateway {
    fn add_exit_action(&self, process: Pid, action: Box<dyn ExitAction>) {
        let Some(node) = self.node_of(process) else {
            return tell(process, action, &ExitCause::NotFound);
        };
        let Some(peer) = self.0.reach(node) else {
            return tell(process, action, &ExitCause::NoConnection);
        };
        let in_order = action.is_in_order();
        let (refused, over) = peer.with(|state, now| {
            if state.is_closed() {
                return (Some(action), Vec::new());
            }
            let over = state.tables.watches.sweep();
            for (number, _) in &over {
                let number = *number;
                state.request(Request::Demonitor { number }, peer.places, now);
            }
            if !state.tables.watches.has_room() {
                return (Some(action), over);
            }
            let number = state.tables.watches.insert(process, action);
            let request = Request::Monitor {
                number,
                pid: process,
                in_order,
            };
            state.request(request, peer.places, now);
            (None, over)
        });
        // Without the lock.
        drop(over);
        if let Some(action) = refused {
            tell(process, action, &ExitCause::NoConnection);
        }
    }

    fn remove_exit_actions(&self, process: Pid, key: ExitKey) {
        let Some(peer) = self.node_of(process).and_then(|node| self.0.find(node)) else {
            return;
        };
        let taken = peer.with(|state, now| {
            let taken = state.tables.watches.remove_keyed(process, key);
            for (number, _) in &taken {
                let number = *number;
                state.request(Request::Demonitor { number }, peer.places, now);
            }
            taken
        });
        // Without the lock.
        drop(taken);
    }

    fn cancel(&self, process: Pid, reason: CancelReason) -> Result<(), NotFound> {
        self.ask(process, Request::Cancel(process, reason))
    }

    fn terminate(&self, process: Pid) -> Result<(), NotFound> {
        self.ask(process, Request::Terminate(process))
    }

    fn whereis(&self, name: &str) -> Option<Pid> {
        let strong = self.0.base.strong.get();
        let owner = strong.and_then(|it| it.whereis(name).ok()?);
        let owner = owner.map(|it| it.pid);
        owner.or_else(|| self.0.base.directory.whereis(name))
    }

    fn link(&self, link: RemoteLink) {
        let Some(node) = self.node_of(link.peer) else {
            return self.signal_here(link, ExitCause::NotFound);
        };
        let is_asked = self.0.reach(node).is_some_and(|peer| {
            peer.with(|state, now| {
                let is_open = !state.is_closed();
                if is_open {
                    state.tables.links.insert(link);
                    state.request(Request::Link(link), peer.places, now);
                }
                is_open
            })
        });
        if !is_asked {
            self.signal_here(link, ExitCause::NoConnection);
        }
    }

    fn unlink(&self, link: RemoteLink) {
        self.over(link, Request::Unlink(link));
    }

    fn signal(&self, link: RemoteLink, cause: ExitCause) {
        self.over(link, Request::Signal(link, cause));
    }

    fn exit(&self, target: Pid, from: Pid, cause: ExitCause) -> Result<(), NotFound> {
        let request = Request::ExitSignal {
            target,
            from,
            cause,
        };
        self.ask(target, request)
    }
}

impl Gateway {
    /// Tells that the link is over at this side. A link that ended with its session is over at the
    /// other side.
    fn over(&self, link: RemoteLink, request: Request) {
        let Some(peer) = self.node_of(link.peer).and_then(|node| self.0.find(node)) else {
            return;
        };
        far_links::over(&peer, link, request);
    }
}

impl Ways for Gateway {
    fn is_local(&self, process: Pid) -> bool {
        let scheduler = self.0.base.scheduler.upgrade();
        scheduler.is_some_and(|scheduler| scheduler.is_local(process))
    }

    fn has_listings(&self) {
        for peer in self.0.all() {
            peer.has_listings();
        }
    }

    fn broadcast(&self, members: &[Pid], message: Message) -> Result<(), SendErrorKind> {
        let node = members.first().and_then(|it| self.node_of(*it));
        let peer = node.and_then(|node| self.0.find(node));
        let peer = peer.ok_or(SendErrorKind::NoConnection)?;
        let scheduler = self.0.base.scheduler.upgrade();
        let scheduler = scheduler.ok_or(SendErrorKind::Stopping)?;
        multi::send(&peer, &scheduler, members, message)
    }
}

fn tell(process: Pid, mut action: Box<dyn ExitAction>, cause: &ExitCause) {
    action.release(process);
    action.tell(process, cause);
}
