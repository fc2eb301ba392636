//! Random changes of hosts, peers, the fallback and channels, with envelopes in between. Plain maps
//! in the model tell where each envelope must go.

use crate::common::{envelope, host, is_same, node, number, number_passed_on, pid};
use ganger_proc_api::{Envelope, SendError, SendErrorKind};
use ganger_relay::{
    AddError, AttachError, ChannelHost, EnvelopeReceiver, Inbox, Node, Router, TryRecvError,
};
use ganger_sync::sync::lock;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

const HERE: &str = "here";
const BOX: &str = "box";
const HOSTS: [&str; 4] = ["a", "b", BOX, "nowhere"];
const NODES: [&str; 3] = [HERE, "there", "yonder"];
const IDS: u64 = 3;

/// Takes every envelope, and remembers which of them were control messages.
#[derive(Default)]
struct Place(Mutex<Vec<(bool, Envelope)>>);

impl EnvelopeReceiver for Place {
    fn send(&self, envelope: Envelope) -> Result<(), SendError> {
        lock(&self.0).push((false, envelope));
        Ok(())
    }

    fn send_control(&self, envelope: Envelope) -> Result<(), SendError> {
        lock(&self.0).push((true, envelope));
        Ok(())
    }
}

#[derive(Debug, Clone, Copy)]
struct Target {
    node: Option<&'static str>,
    host: &'static str,
    id: u64,
}

impl Target {
    fn text(self) -> String {
        let Self { node, host, id } = self;
        node.map_or(format!("{{{host}|{id}}}"), |node| {
            format!("{{{node}@{host}|{id}}}")
        })
    }
}

#[derive(Debug, Clone, Copy)]
enum Op {
    AddHost(&'static str),
    RemoveHost(&'static str),
    AddPeer(&'static str),
    RemovePeer(&'static str),
    SetFallback,
    ClearFallback,
    Attach(Target),
    Open,
    Detach(Target),
    /// An index into the present receivers, modulo their number.
    Receive(usize),
    Drop(usize),
    Close(usize),
    Send(Target, bool),
}

fn target() -> impl Strategy<Value = Target> {
    let node = proptest::option::of(proptest::sample::select(&NODES[..]));
    let host = proptest::sample::select(&HOSTS[..]);
    (node, host, 1..=IDS).prop_map(|(node, host, id)| Target { node, host, id })
}

fn op() -> impl Strategy<Value = Op> {
    let in_box = || {
        target().prop_map(|target| Target {
            node: target.node.filter(|&node| node == HERE),
            host: BOX,
            ..target
        })
    };
    prop_oneof![
        2 => proptest::sample::select(&HOSTS[..3]).prop_map(Op::AddHost),
        1 => proptest::sample::select(&HOSTS[..]).prop_map(Op::RemoveHost),
        2 => proptest::sample::select(&NODES[..]).prop_map(Op::AddPeer),
        1 => proptest::sample::select(&NODES[..]).prop_map(Op::RemovePeer),
        1 => Just(Op::SetFallback),
        1 => Just(Op::ClearFallback),
        4 => in_box().prop_map(Op::Attach),
        1 => target().prop_map(Op::Attach),
        1 => Just(Op::Open),
        2 => in_box().prop_map(Op::Detach),
        1 => target().prop_map(Op::Detach),
        2 => any::<usize>().prop_map(Op::Receive),
        2 => any::<usize>().prop_map(Op::Drop),
        1 => any::<usize>().prop_map(Op::Close),
        4 => (in_box(), any::<bool>()).prop_map(|(target, control)| Op::Send(target, control)),
        8 => (target(), any::<bool>()).prop_map(|(target, control)| Op::Send(target, control)),
    ]
}

/// A receiving end, and the expected envelopes in its channel.
struct Kept {
    id: u64,
    receiver: Inbox,
    envelopes: VecDeque<(String, u64)>,
    is_attached: bool,
}

/// The expected envelopes of a place: whether it is a control message, its target, its number.
type Sent = Vec<(bool, String, u64)>;

/// A router, and the model of its behaviour.
struct Model {
    router: Router,
    channels: Arc<ChannelHost>,
    /// Each receiver ever added, with its expected envelopes since the last check.
    places: Vec<(Arc<Place>, Sent)>,
    /// The index of each host's receiver; `None` for the channel host.
    hosts: BTreeMap<&'static str, Option<usize>>,
    peers: BTreeMap<&'static str, usize>,
    fallback: Option<usize>,
    inboxes: Vec<Kept>,
    opened: u64,
    sent: u64,
}

impl Model {
    fn new() -> Self {
        let here = Arc::new(Node::new(node(HERE)));
        let channels = Arc::new(ChannelHost::new(node(HERE), host(BOX)));
        here.add_host(host(BOX), channels.clone()).unwrap();
        Self {
            router: Router::new(here),
            channels,
            places: Vec::new(),
            hosts: BTreeMap::from([(BOX, None)]),
            peers: BTreeMap::new(),
            fallback: None,
            inboxes: Vec::new(),
            opened: 0,
            sent: 0,
        }
    }

    fn place(&mut self) -> (usize, Arc<Place>) {
        let place = Arc::<Place>::default();
        self.places.push((Arc::clone(&place), Vec::new()));
        (self.places.len() - 1, place)
    }

    fn is_the_one(
        &self,
        found: Option<&Arc<dyn EnvelopeReceiver>>,
        expected: Option<usize>,
    ) -> bool {
        match (found, expected) {
            (Some(found), Some(expected)) => is_same(found, &self.places[expected].0),
            (found, expected) => found.is_none() && expected.is_none(),
        }
    }

    fn attached(&mut self, id: u64) -> Option<&mut Kept> {
        self.inboxes
            .iter_mut()
            .find(|it| it.is_attached && it.id == id)
    }

    /// Returns whether PIDs with this node and host belong to the channel host.
    fn is_boxed(target: Target) -> bool {
        target.host == BOX && target.node.is_none_or(|node| node == HERE)
    }

    fn apply(&mut self, op: Op) -> TestCaseResult {
        match op {
            Op::AddHost(name) => {
                let (nth, place) = self.place();
                let added = self.router.local().add_host(host(name), place);
                let is_taken = self.hosts.contains_key(name);
                prop_assert_eq!(matches!(added, Err(AddError::HostExists { .. })), is_taken);
                if let Err(error) = added {
                    prop_assert!(self.is_the_one(Some(&error.into_receiver()), Some(nth)));
                } else {
                    self.hosts.insert(name, Some(nth));
                }
            }
            Op::RemoveHost(name) => {
                let found = self.router.local().remove_host(host(name));
                match self.hosts.remove(name) {
                    Some(None) => prop_assert!(is_same(&found.unwrap(), &self.channels)),
                    expected => {
                        prop_assert!(self.is_the_one(found.as_ref(), expected.flatten()));
                    }
                }
            }
            Op::AddPeer(name) => {
                let (nth, place) = self.place();
                let added = self.router.add_peer(node(name), place);
                match &added {
                    Err(AddError::LocalNode { .. }) => prop_assert_eq!(name, HERE),
                    Err(AddError::PeerExists { .. }) => {
                        prop_assert!(self.peers.contains_key(name));
                    }
                    added => prop_assert!(added.is_ok() && !self.peers.contains_key(name)),
                }
                if let Err(error) = added {
                    prop_assert!(self.is_the_one(Some(&error.into_receiver()), Some(nth)));
                } else {
                    self.peers.insert(name, nth);
                }
            }
            Op::RemovePeer(name) => {
                let found = self.router.remove_peer(node(name));
                let expected = self.peers.remove(name);
                prop_assert!(self.is_the_one(found.as_ref(), expected));
            }
            Op::SetFallback => {
                let (nth, place) = self.place();
                let found = self.router.set_fallback(place);
                let expected = self.fallback.replace(nth);
                prop_assert!(self.is_the_one(found.as_ref(), expected));
            }
            Op::ClearFallback => {
                let found = self.router.clear_fallback();
                let expected = self.fallback.take();
                prop_assert!(self.is_the_one(found.as_ref(), expected));
            }
            Op::Attach(target) => {
                let attached = self.channels.attach(pid(&target.text()));
                let is_taken = self.attached(target.id).is_some();
                match attached {
                    Ok(receiver) => {
                        prop_assert!(Self::is_boxed(target) && !is_taken);
                        self.keep(target.id, receiver);
                    }
                    Err(AttachError::AlreadyAttached(_)) => {
                        prop_assert!(Self::is_boxed(target) && is_taken);
                    }
                    Err(_) => prop_assert!(!Self::is_boxed(target)),
                }
            }
            Op::Open => {
                let receiver = self.channels.open();
                self.opened += 1;
                while self.attached(self.opened).is_some() {
                    self.opened += 1;
                }
                let text = format!("{{{HERE}@{BOX}|{}}}", self.opened);
                prop_assert_eq!(receiver.pid(), pid(&text));
                self.keep(self.opened, receiver);
            }
            Op::Detach(target) => {
                let is_detached = self.channels.detach(pid(&target.text()));
                let inbox = self.attached(target.id).filter(|_| Self::is_boxed(target));
                prop_assert_eq!(is_detached, inbox.is_some());
                if let Some(inbox) = inbox {
                    inbox.is_attached = false;
                }
            }
            Op::Receive(nth) => {
                let count = self.inboxes.len();
                if count > 0 {
                    let inbox = &mut self.inboxes[nth % count];
                    let expected = inbox.envelopes.pop_front();
                    match inbox.receiver.try_recv() {
                        Ok(envelope) => {
                            let (text, expected) = expected.unwrap();
                            prop_assert_eq!(number(envelope, &text), expected);
                        }
                        Err(error) => {
                            prop_assert_eq!(expected, None);
                            let is_over = error == TryRecvError::Disconnected;
                            prop_assert_eq!(is_over, !inbox.is_attached);
                        }
                    }
                }
            }
            Op::Drop(nth) => {
                let count = self.inboxes.len();
                if count > 0 {
                    self.inboxes.swap_remove(nth % count);
                }
            }
            Op::Close(nth) => {
                let count = self.inboxes.len();
                if count > 0 {
                    let inbox = self.inboxes.swap_remove(nth % count);
                    let rest = inbox.receiver.close();
                    prop_assert_eq!(rest.len(), inbox.envelopes.len());
                    for (envelope, (text, expected)) in rest.into_iter().zip(inbox.envelopes) {
                        prop_assert_eq!(number(envelope, &text), expected);
                    }
                }
            }
            Op::Send(target, control) => self.send(target, control)?,
        }
        self.compare()
    }

    fn keep(&mut self, id: u64, receiver: Inbox) {
        self.inboxes.push(Kept {
            id,
            receiver,
            envelopes: VecDeque::new(),
            is_attached: true,
        });
    }

    fn send(&mut self, target: Target, control: bool) -> TestCaseResult {
        self.sent += 1;
        let (nth, text) = (self.sent, target.text());
        let elsewhere = target.node.filter(|&node| node != HERE);
        let place = match elsewhere {
            Some(node) => {
                let peer = self.peers.get(node).copied().or(self.fallback);
                peer.map(Some).ok_or(SendErrorKind::NodeNotFound)
            }
            None => {
                let host = self.hosts.get(target.host).copied();
                host.ok_or(SendErrorKind::HostNotFound)
            }
        };
        let expected = match place {
            Ok(Some(place)) => {
                self.places[place].1.push((control, text.clone(), nth));
                Ok(())
            }
            Ok(None) => match self.attached(target.id) {
                Some(inbox) => {
                    inbox.envelopes.push_back((text.clone(), nth));
                    Ok(())
                }
                None => Err(SendErrorKind::NotFound),
            },
            Err(kind) => Err(kind),
        };
        let envelope = envelope(&text, nth);
        let sent = if control {
            self.router.send_control(envelope)
        } else {
            self.router.send(envelope)
        };
        let found = sent.map_err(|error| {
            let kind = error.kind;
            assert_eq!(
                number(error.into_envelope(), &text),
                nth,
                "another came back"
            );
            kind
        });
        prop_assert_eq!(found, expected, "{}", text);
        Ok(())
    }

    /// Checks all observable state, and all arrived envelopes.
    fn compare(&mut self) -> TestCaseResult {
        let hosts: Vec<_> = self.hosts.keys().map(|name| host(name)).collect();
        prop_assert_eq!(self.router.local().hosts(), hosts);
        let peers: Vec<_> = self.peers.keys().map(|name| node(name)).collect();
        prop_assert_eq!(self.router.peers(), peers);
        let mut attached: Vec<_> = self.inboxes.iter().filter(|it| it.is_attached).collect();
        attached.sort_by_key(|it| it.id);
        let pid_of = |it: &&Kept| pid(&format!("{{{HERE}@{BOX}|{}}}", it.id));
        let attached: Vec<_> = attached.iter().map(pid_of).collect();
        prop_assert_eq!(self.channels.attached(), attached);
        for (place, expected) in &mut self.places {
            let found = std::mem::take(&mut *lock(&place.0));
            prop_assert_eq!(found.len(), expected.len());
            for ((control, envelope), (was_control, text, nth)) in
                found.into_iter().zip(expected.drain(..))
            {
                prop_assert_eq!(control, was_control);
                prop_assert_eq!(number_passed_on(envelope, &text), nth);
            }
        }
        Ok(())
    }
}

proptest! {
    // pins: R2, R3, R4, R5
    #[test]
    fn a_router_does_what_its_maps_say(ops in vec(op(), 0..100)) {
        let mut model = Model::new();
        for op in ops {
            model.apply(op)?;
        }
    }
}
