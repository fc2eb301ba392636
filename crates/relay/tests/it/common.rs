//! Shared helpers of the tests.

use ganger_proc_api::{Envelope, HostName, NodeName, Payload, Pid, SendError, SendErrorKind};
use ganger_relay::{EnvelopeReceiver, receiver_fn};
use ganger_sync::sync::lock;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) fn node(name: &str) -> NodeName {
    NodeName::new(name).unwrap()
}

pub(crate) fn host(name: &str) -> HostName {
    HostName::new(name).unwrap()
}

pub(crate) fn pid(text: &str) -> Pid {
    text.parse().unwrap()
}

/// Returns an envelope with a `number`, by which a test recognises it.
pub(crate) fn envelope(target: &str, number: u64) -> Envelope {
    Envelope::new(source(), pid(target), "topic", Payload::any(Mark(number)))
}

fn source() -> Pid {
    pid("{source|1}")
}

/// A value without a copy. A test that finds it again knows that the envelope is the same.
struct Mark(u64);

/// Checks that an envelope is unchanged, and addressed to `target`. Returns its number.
pub(crate) fn number(envelope: Envelope, target: &str) -> u64 {
    number_from(envelope, target, source())
}

/// Checks an envelope, as [`number`] does, after a router of the node `here` has passed it on. Its
/// source names the node `here` if the envelope has left this node.
pub(crate) fn number_passed_on(envelope: Envelope, target: &str) -> u64 {
    let here = node("here");
    let leaves = pid(target).node().is_some_and(|node| node != here);
    number_from(envelope, target, source().with_node(leaves.then_some(here)))
}

fn number_from(envelope: Envelope, target: &str, source: Pid) -> u64 {
    assert_eq!(envelope.target, pid(target));
    assert_eq!(envelope.message.source, Some(source));
    assert_eq!(envelope.message.topic, "topic");
    assert_eq!(envelope.message.payloads.len(), 1);
    let payload = envelope.message.payloads.into_first();
    payload.downcast::<Mark>().unwrap().0
}

/// Sends through `receiver`, which must refuse the envelope for the reason `kind`, and return it
/// unchanged.
#[track_caller]
pub(crate) fn assert_refused(receiver: &dyn EnvelopeReceiver, target: &str, kind: SendErrorKind) {
    let error = receiver.send(envelope(target, 7)).unwrap_err();
    assert_eq!(error.kind, kind, "{target}");
    assert_eq!(number(error.into_envelope(), target), 7);
}

/// Takes every envelope and remembers it.
#[derive(Default)]
pub(crate) struct Recorder(Mutex<Vec<Envelope>>);

impl Recorder {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Returns the envelopes since the last call.
    pub(crate) fn take(&self) -> Vec<Envelope> {
        std::mem::take(&mut *lock(&self.0))
    }

    /// Expects a single envelope since the last call, addressed to `target`, and returns its
    /// number.
    #[track_caller]
    pub(crate) fn take_one(&self, target: &str) -> u64 {
        let mut envelopes = self.take();
        assert_eq!(envelopes.len(), 1);
        number_passed_on(envelopes.remove(0), target)
    }
}

impl EnvelopeReceiver for Recorder {
    fn send(&self, envelope: Envelope) -> Result<(), SendError> {
        lock(&self.0).push(envelope);
        Ok(())
    }
}

/// Refuses every envelope for the reason `kind`.
pub(crate) fn refuser(kind: SendErrorKind) -> Arc<dyn EnvelopeReceiver> {
    Arc::new(receiver_fn(move |envelope| {
        Err(SendError::new(kind, envelope))
    }))
}

/// All reasons.
pub(crate) const ALL_KINDS: [SendErrorKind; 6] = [
    SendErrorKind::NotFound,
    SendErrorKind::Closed,
    SendErrorKind::Full,
    SendErrorKind::HostNotFound,
    SendErrorKind::NodeNotFound,
    SendErrorKind::Stopping,
];

/// Returns whether `a` and `b` are the same object.
pub(crate) fn is_same<R>(a: &Arc<dyn EnvelopeReceiver>, b: &Arc<R>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(a), Arc::as_ptr(b))
}

/// Runs `body`, and fails if it does not return: it may wait for a lock held by its own thread, or
/// for the end of a channel.
#[track_caller]
pub(crate) fn returns(body: impl FnOnce() + Send + 'static) {
    let (done, wait) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        body();
        done.send(()).unwrap();
    });
    let result = wait.recv_timeout(Duration::from_secs(20));
    assert_ne!(result, Err(RecvTimeoutError::Timeout), "it does not return");
    thread.join().unwrap();
}
