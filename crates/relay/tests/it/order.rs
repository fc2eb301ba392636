//! The order of envelopes between a sender and a receiver.

use crate::common::*;
use ganger_proc_api::{Envelope, Message, Payload, Payloads, Pid};
use ganger_relay::{ChannelHost, EnvelopeReceiver, Node, Router};
use ganger_sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

const SENDERS: usize = 4;
const PACKAGES: u64 = 20_000;
/// An envelope that takes longer than this counts as lost.
const PATIENCE: Duration = Duration::from_secs(20);

fn sender_and_number(envelope: &Envelope) -> (usize, u64) {
    let mut values = envelope.message.payloads.iter().filter_map(Payload::as_u64);
    let (sender, number) = (values.next().unwrap(), values.next().unwrap());
    (usize::try_from(sender).unwrap(), number)
}

/// Ends the other threads even when an assertion fails.
struct SetWhenDropped<'a>(&'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        // Ordering: Relaxed, because the flag guards no other data.
        self.0.store(true, Ordering::Relaxed);
    }
}

// pins: R4
#[test]
fn each_senders_envelopes_arrive_in_its_order_while_others_attach_and_detach() {
    let router = Router::new(Arc::new(Node::new(node("here"))));
    let channels = Arc::new(ChannelHost::new(node("here"), host("box")));
    router
        .local()
        .add_host(host("box"), channels.clone())
        .unwrap();
    let inbox = channels.attach(pid("{box|1}")).unwrap();
    let is_done = AtomicBool::new(false);

    std::thread::scope(|scope| {
        for sender in 0..SENDERS {
            let router = &router;
            scope.spawn(move || {
                let targets = ["{box|1}", "{here@box|1}"].map(pid);
                for number in 0..PACKAGES {
                    let values = [sender as u64, number].into_iter().map(Payload::from);
                    let values: Payloads = values.collect();
                    let target = targets[usize::from(number % 3 == 0)];
                    router
                        .send(Message::new("numbered", values).to(target))
                        .unwrap();
                }
            });
        }
        scope.spawn(|| {
            let others = (2..66).map(|id| Pid::new(host("box"), id));
            let others: Vec<_> = others.collect();
            // Ordering: Relaxed, as in the store.
            while !is_done.load(Ordering::Relaxed) {
                let inboxes: Vec<_> = others
                    .iter()
                    .map(|&pid| channels.attach(pid).unwrap())
                    .collect();
                for pid in &others[..32] {
                    assert!(channels.detach(*pid));
                }
                drop(inboxes);
                std::thread::yield_now();
            }
        });

        let _done = SetWhenDropped(&is_done);
        let mut expected = [0; SENDERS];
        for _ in 0..SENDERS as u64 * PACKAGES {
            let (sender, number) = sender_and_number(&inbox.recv_timeout(PATIENCE).unwrap());
            assert_eq!(number, expected[sender], "of sender {sender}");
            expected[sender] += 1;
        }
        assert_eq!(expected, [PACKAGES; SENDERS]);
    });
    assert!(inbox.close().is_empty());
}
