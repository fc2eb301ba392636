//! Two schedulers of one program as two nodes, or as two hosts of a node, and a connection between
//! them, for a test to hold back and to cut. Messages of types with a codec (`codecs.rs`) travel as
//! texts, and all further messages unchanged.

mod texts;

use super::codecs;
use crate::support::PATIENCE;
use ganger_link::RemoteLinks as _;
use ganger_proc_api::{
    CancelReason, CommandError, Completer, EndWatch, Envelope, EnvelopeReceiver, ExitCause,
    NotFound, Pid, SendError, SendErrorKind,
};
use ganger_sched::crossing::FarReply;
use ganger_sched::{ExitAction, ExitKey, Handle, Remote, RemoteLink, Scheduler, WeakHandle};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex};

/// A packet, as the receiving side sees it.
#[derive(Debug)]
enum Packet {
    Watch(u64, Pid),
    Unwatch(u64),
    Ended(u64, ExitCause),
    Cancel(Pid, CancelReason),
    Terminate(Pid),
    Link(RemoteLink),
    Unlink(RemoteLink),
    Signal(RemoteLink, ExitCause),
    Exit(Pid, Pid, ExitCause),
    /// The target, the name of the type, and the text.
    Message(Pid, &'static str, String),
    /// The number of a question, and the answer.
    Answer(u64, Answer),
    /// The answer to a question is unwanted.
    Unwanted(u64),
}

/// The name of the type, and the text.
type Answer = Result<(&'static str, String), String>;

#[derive(Default)]
struct Side {
    scheduler: Option<WeakHandle>,
    /// Of this side's requests.
    watches: BTreeMap<u64, (Pid, Box<dyn ExitAction>)>,
    links: HashSet<RemoteLink>,
    /// Of this side's questions; with the watch that tells the other side of an unwanted answer.
    askers: BTreeMap<u64, (Completer, Option<EndWatch>)>,
    /// The other side's questions.
    questions: BTreeMap<u64, FarReply>,
    /// For this side.
    arriving: VecDeque<Packet>,
}

#[derive(Default)]
struct State {
    sides: [Side; 2],
    last: u64,
    is_cut: bool,
    is_held: bool,
    /// A thread delivers.
    delivers: bool,
}

/// The connection.
#[derive(Default)]
pub(super) struct Wire {
    state: Mutex<State>,
    is_idle: Condvar,
}

/// The end of the connection at one side.
#[derive(Clone)]
struct End {
    wire: Arc<Wire>,
    side: usize,
}

/// The watch of a process for the other side.
struct Foreign {
    wire: Arc<Wire>,
    side: usize,
    number: u64,
}

impl ExitAction for Foreign {
    fn tell(self: Box<Self>, _: Pid, cause: &ExitCause) {
        let packet = Packet::Ended(self.number, cause.clone());
        self.wire.push(1 - self.side, packet);
    }

    fn is_watch(&self) -> bool {
        true
    }

    fn key(&self) -> Option<ExitKey> {
        Some(foreign_key(self.number))
    }
}

fn ended_with(mut action: Box<dyn ExitAction>, pid: Pid, cause: &ExitCause) {
    action.release(pid);
    action.tell(pid, cause);
}

fn foreign_key(number: u64) -> ExitKey {
    ExitKey::new(u64::MAX, number)
}

/// Creates two nodes that are connected.
pub(super) fn two(names: [(&str, &str); 2]) -> (Arc<Wire>, [Scheduler; 2]) {
    let wire = Arc::new(Wire::default());
    let schedulers = [0, 1].map(|side| start(&wire, side, names[side]));
    (wire, schedulers)
}

/// Starts the scheduler of a side, in place of the former.
pub(super) fn start(wire: &Arc<Wire>, side: usize, (node, host): (&str, &str)) -> Scheduler {
    let end = || {
        let wire = Arc::clone(wire);
        Arc::new(End { wire, side })
    };
    let builder = Scheduler::builder().workers(1).node(node).host(host);
    let builder = builder.quiet_failures().remote(end()).router(end());
    let scheduler = builder.start().unwrap();
    wire.state.lock().unwrap().sides[side].scheduler = Some(scheduler.downgrade());
    scheduler
}

impl Wire {
    fn push(self: &Arc<Self>, side: usize, packet: Packet) {
        let mut state = self.state.lock().unwrap();
        if !state.is_cut {
            state.sides[side].arriving.push_back(packet);
            drop(state);
            self.deliver();
        }
    }

    /// Delivers all, unless another thread is at it.
    fn deliver(self: &Arc<Self>) {
        let mut state = self.state.lock().unwrap();
        if state.delivers {
            return;
        }
        state.delivers = true;
        while !state.is_held {
            let next = (0..2).find_map(|side| {
                let packet = state.sides[side].arriving.pop_front()?;
                Some((side, packet))
            });
            let Some((side, packet)) = next else { break };
            drop(state);
            self.arrive(side, packet);
            state = self.state.lock().unwrap();
        }
        state.delivers = false;
        drop(state);
        self.is_idle.notify_all();
    }

    /// Delivers the next packet for a side, while the connection holds all back.
    pub(super) fn let_one_pass(self: &Arc<Self>, side: usize) {
        let packet = self.state.lock().unwrap().sides[side].arriving.pop_front();
        self.arrive(side, packet.expect("nothing is under way"));
    }

    /// Lets nothing arrive.
    pub(super) fn hold(&self) {
        self.state.lock().unwrap().is_held = true;
    }

    /// Lets all arrive.
    pub(super) fn release(self: &Arc<Self>) {
        self.state.lock().unwrap().is_held = false;
        self.settle();
    }

    /// Waits until nothing is under way.
    pub(super) fn settle(self: &Arc<Self>) {
        self.deliver();
        let state = self.state.lock().unwrap();
        let is_busy = |state: &mut State| state.delivers;
        let waited = self.is_idle.wait_timeout_while(state, PATIENCE, is_busy);
        assert!(!waited.unwrap().1.timed_out());
    }

    /// Ends the connection: both sides learn it.
    pub(super) fn cut(&self) {
        let mut state = self.state.lock().unwrap();
        state.is_cut = true;
        let ended = state.sides.each_mut().map(|side| {
            side.arriving.clear();
            let links = std::mem::take(&mut side.links);
            let watches = std::mem::take(&mut side.watches);
            let askers = std::mem::take(&mut side.askers);
            let questions = std::mem::take(&mut side.questions);
            let scheduler = side.scheduler.clone();
            (scheduler, watches, links, askers, questions)
        });
        drop(state);
        for (scheduler, watches, links, askers, questions) in ended {
            for (completer, _watch) in askers.into_values() {
                completer.finish(Err(CommandError::Ended(ExitCause::NoConnection)));
            }
            questions.into_values().for_each(FarReply::give_up);
            for (pid, action) in watches.into_values() {
                ended_with(action, pid, &ExitCause::NoConnection);
            }
            let scheduler = scheduler.and_then(|it| it.upgrade());
            for link in links {
                if let Some(scheduler) = &scheduler {
                    scheduler.signal_arrived(link, ExitCause::NoConnection);
                }
            }
        }
    }

    /// Connects them again.
    pub(super) fn mend(&self) {
        self.state.lock().unwrap().is_cut = false;
    }

    /// Returns the numbers of watches and links that each side keeps.
    pub(super) fn kept(&self) -> [(usize, usize); 2] {
        let state = self.state.lock().unwrap();
        (state.sides.each_ref()).map(|side| (side.watches.len(), side.links.len()))
    }

    /// Returns the number of questions that wait at each side: its own, and those of the other
    /// side.
    pub(super) fn questions(&self) -> [(usize, usize); 2] {
        let state = self.state.lock().unwrap();
        (state.sides.each_ref()).map(|side| (side.askers.len(), side.questions.len()))
    }

    fn scheduler(&self, side: usize) -> Option<Handle> {
        let state = self.state.lock().unwrap();
        state.sides[side].scheduler.as_ref()?.upgrade()
    }

    fn note(&self, side: usize, link: RemoteLink, is_linked: bool) {
        let links = &mut self.state.lock().unwrap().sides[side].links;
        if is_linked {
            links.insert(link);
        } else {
            links.remove(&link);
        }
    }

    fn arrive(self: &Arc<Self>, side: usize, packet: Packet) {
        let Some(scheduler) = self.scheduler(side) else {
            return;
        };
        match packet {
            Packet::Watch(number, pid) => self.watch(&scheduler, side, number, pid),
            Packet::Unwatch(number) => {
                for process in scheduler.processes() {
                    scheduler.remove_exit_actions(process.pid, foreign_key(number));
                }
            }
            Packet::Ended(number, cause) => {
                let watch = self.state.lock().unwrap().sides[side]
                    .watches
                    .remove(&number);
                if let Some((pid, action)) = watch {
                    ended_with(action, pid, &cause);
                }
            }
            Packet::Cancel(pid, reason) => drop(scheduler.cancel(pid, reason)),
            Packet::Terminate(pid) => drop(scheduler.terminate(pid)),
            Packet::Link(link) => {
                self.note(side, link, true);
                scheduler.link_arrived(link);
            }
            Packet::Unlink(link) => {
                self.note(side, link, false);
                scheduler.unlink_arrived(link);
            }
            Packet::Signal(link, cause) => {
                self.note(side, link, false);
                scheduler.signal_arrived(link, cause);
            }
            Packet::Exit(target, from, cause) => {
                let _gone = scheduler.exit_arrived(target, from, cause);
            }
            Packet::Message(target, name, text) => {
                self.message(&scheduler, side, target, name, &text);
            }
            Packet::Answer(number, answer) => {
                let mut state = self.state.lock().unwrap();
                let asker = state.sides[side].askers.remove(&number);
                drop(state);
                let answer = answer.map(|(name, text)| codecs::named(name).decode(&text).unwrap());
                let answer = answer.map_err(|text| serde_json::from_str(&text).unwrap());
                if let Some((completer, _watch)) = asker {
                    completer.finish(answer);
                }
            }
            Packet::Unwanted(number) => {
                let mut state = self.state.lock().unwrap();
                let question = state.sides[side].questions.remove(&number);
                drop(state);
                question.into_iter().for_each(FarReply::give_up);
            }
        }
    }

    fn watch(self: &Arc<Self>, scheduler: &Handle, side: usize, number: u64, pid: Pid) {
        let wire = Arc::clone(self);
        let foreign = Foreign { wire, side, number };
        if let Err(gone) = scheduler.add_exit_action(pid, Box::new(foreign)) {
            gone.into_action().tell(pid, &ExitCause::NotFound);
        }
    }
}

impl End {
    fn pass(&self, packet: Packet) -> bool {
        self.wire.push(1 - self.side, packet);
        !self.wire.state.lock().unwrap().is_cut
    }

    fn request(&self, pid: Pid, packet: Packet) -> Result<(), NotFound> {
        self.pass(packet).then_some(()).ok_or(NotFound { pid })
    }
}

impl Remote for End {
    fn add_exit_action(&self, process: Pid, action: Box<dyn ExitAction>) {
        let mut state = self.wire.state.lock().unwrap();
        if state.is_cut {
            drop(state);
            return ended_with(action, process, &ExitCause::NoConnection);
        }
        state.last += 1;
        let number = state.last;
        state.sides[self.side]
            .watches
            .insert(number, (process, action));
        drop(state);
        self.pass(Packet::Watch(number, process));
    }

    fn remove_exit_actions(&self, process: Pid, key: ExitKey) {
        let mut state = self.wire.state.lock().unwrap();
        let watches = &mut state.sides[self.side].watches;
        let removed = watches.extract_if(.., |_, (pid, action)| {
            *pid == process && action.key() == Some(key)
        });
        let removed: Vec<_> = removed.collect();
        drop(state);
        for (number, _) in removed {
            self.pass(Packet::Unwatch(number));
        }
    }

    fn cancel(&self, process: Pid, reason: CancelReason) -> Result<(), NotFound> {
        self.request(process, Packet::Cancel(process, reason))
    }

    fn terminate(&self, process: Pid) -> Result<(), NotFound> {
        self.request(process, Packet::Terminate(process))
    }

    fn whereis(&self, name: &str) -> Option<Pid> {
        let there = self.wire.scheduler(1 - self.side)?;
        let names = there.names();
        let found = names.iter().find(|(it, _)| **it == *name)?;
        Some(there.absolute(found.1))
    }

    fn link(&self, link: RemoteLink) {
        self.wire.note(self.side, link, true);
        if !self.pass(Packet::Link(link.seen_by_peer())) {
            self.wire.note(self.side, link, false);
            if let Some(scheduler) = self.wire.scheduler(self.side) {
                scheduler.signal_arrived(link, ExitCause::NoConnection);
            }
        }
    }

    fn unlink(&self, link: RemoteLink) {
        self.wire.note(self.side, link, false);
        self.pass(Packet::Unlink(link.seen_by_peer()));
    }

    fn signal(&self, link: RemoteLink, cause: ExitCause) {
        self.wire.note(self.side, link, false);
        self.pass(Packet::Signal(link.seen_by_peer(), cause));
    }

    fn exit(&self, target: Pid, from: Pid, cause: ExitCause) -> Result<(), NotFound> {
        self.request(target, Packet::Exit(target, from, cause))
    }
}

impl EnvelopeReceiver for End {
    fn send(&self, envelope: Envelope) -> Result<(), SendError> {
        let codec = envelope.message.payloads.first().and_then(codecs::of);
        if let Some(codec) = codec {
            return self.send_text(codec, envelope);
        }
        if self.wire.state.lock().unwrap().is_cut {
            return Err(SendError::new(SendErrorKind::NoConnection, envelope));
        }
        match self.wire.scheduler(1 - self.side) {
            Some(there) => there.send(envelope),
            None => Err(SendError::new(SendErrorKind::NoConnection, envelope)),
        }
    }
}
