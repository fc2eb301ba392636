//! Full mailboxes and full queues.

use super::parts::Strings;
use super::{Harness, PATIENCE, eventually, send_all};
use ganger_proc_api::{Envelope, SendErrorKind};
use std::sync::mpsc::channel;
use std::thread;

/// A process that takes nothing for a while, with more messages than its mailbox holds.
pub fn a_full_mailbox_stops_no_other_pair<H: Harness>() {
    let harness = H::start();
    if harness.is_one() {
        return;
    }
    let slow = Strings::start(harness.far());
    let (go, gone) = channel::<()>();
    slow.act(move |ctx, _| {
        ctx.blocking(|| _ = gone.recv_timeout(PATIENCE));
        Ok(())
    });
    let slow_pid = harness.far_pid(slow.pid());
    send_all(harness.near(), slow_pid, 0..1_000);
    let quick = Strings::start(harness.far());
    send_all(harness.near(), harness.far_pid(quick.pid()), 0..1_000);
    for number in 0..1_000 {
        assert_eq!(quick.number(), number);
    }
    drop(go);
    for number in 0..1_000 {
        assert_eq!(slow.number(), number);
    }
}

/// More than all queues hold: a send is refused with the message, and those that wait go in order.
pub fn a_sender_waits_for_room_in_order<H: Harness>() {
    let harness = H::start();
    let slow = Strings::start(harness.far());
    let (go, gone) = channel::<()>();
    slow.act(move |ctx, _| {
        ctx.blocking(|| _ = gone.recv_timeout(PATIENCE));
        Ok(())
    });
    let pid = harness.far_pid(slow.pid());
    let content = vec![7_u8; 10_000];
    let mut accepted = 0_usize;
    let refused = loop {
        let envelope = Envelope::new(None, pid, "bytes", content.clone());
        match harness.near().send(envelope) {
            Ok(()) => accepted += 1,
            Err(refused) => break refused,
        }
        assert!(accepted < 10_000, "nothing bounds what waits");
    };
    assert_eq!(refused.kind, SendErrorKind::Full);
    let back = refused.into_envelope().message.payloads.into_first();
    assert_eq!(back.as_bytes(), Some(&content[..]));
    let (tell, told) = channel();
    thread::scope(|scope| {
        let near = harness.near();
        scope.spawn(move || {
            send_all(near, pid, 0..100);
            let _gone = tell.send(());
        });
        drop(go);
        for _ in 0..accepted {
            let bytes = slow.message().payloads.into_first();
            assert_eq!(bytes.as_bytes().map(<[u8]>::len), Some(content.len()));
        }
        for number in 0..100 {
            assert_eq!(slow.number(), number);
        }
        told.recv_timeout(PATIENCE).expect("all have been sent");
    });
    eventually("nothing is left", || slow.is_quiet());
}
