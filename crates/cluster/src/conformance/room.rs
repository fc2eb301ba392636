//! Full mailboxes and full queues.

use super::parts::{Seen, Strings};
use super::{Ground as _, Harness, PATIENCE};
use ganger_proc_api::{Envelope, ExitCause, Pid, SendErrorKind};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// Sends more messages than its mailbox holds to a process that takes nothing for a while.
pub fn a_full_mailbox_stops_no_other_pair<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    if harness.is_one() {
        return;
    }
    let many = ground.count(1_000, 1_000);
    let slow = Strings::start(harness.far());
    slow.hold();
    let slow_pid = harness.far_pid(slow.pid());
    ground.send_all(&harness.near(), slow_pid, 0..many);
    let quick = Strings::start(harness.far());
    ground.send_all(&harness.near(), harness.far_pid(quick.pid()), 0..many);
    for number in 0..many {
        assert_eq!(quick.number(), number);
    }
    slow.go_on();
    for number in 0..many {
        assert_eq!(slow.number(), number);
    }
}

/// Sends until a message is refused: all queues are full. Returns how many were accepted, and the
/// length of each.
fn fill<H: Harness>(harness: &H, pid: Pid) -> (usize, usize) {
    let content = vec![7_u8; 10_000];
    for accepted in 0..10_000 {
        harness.ground().breathe();
        let envelope = Envelope::new(None, pid, "bytes", content.clone());
        if let Err(refused) = harness.near().send(envelope) {
            assert_eq!(refused.kind, SendErrorKind::Full);
            return (accepted, content.len());
        }
    }
    panic!("nothing bounds what waits");
}

/// Sends to a process that takes nothing, until no credit is left: data waits, control and requests
/// go on.
pub fn a_full_mailbox_stops_no_control<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    if harness.is_one() {
        return;
    }
    let slow = Strings::start(harness.far());
    slow.hold();
    let (accepted, length) = fill(&harness, harness.far_pid(slow.pid()));
    let quick = Strings::start(harness.far());
    let pid = harness.far_pid(quick.pid());
    let watcher = Strings::start(harness.near());
    watcher.done(move |ctx, _| Ok(ctx.monitor(pid, 7)?));
    let envelope = Envelope::new(None, pid, "control", 1_u64);
    harness.near().send_control(envelope).expect("it is sent");
    assert!(matches!(quick.next(), Seen::Control(_)));
    harness.far().terminate(quick.pid()).expect("it lives");
    assert_eq!(watcher.exit(), (pid, 7, ExitCause::Terminated));
    slow.go_on();
    for _ in 0..accepted {
        let bytes = slow.message().payloads.into_first();
        assert_eq!(bytes.as_bytes().map(<[u8]>::len), Some(length));
    }
}

/// Stops the scheduler of a sender that waits for room: the message comes back.
pub fn a_stop_ends_the_wait_for_room<H: Harness>(ground: H::Ground) {
    if !H::Ground::HAS_THREADS {
        return;
    }
    let harness = H::start(ground);
    let slow = Strings::start(harness.far());
    let (go, gone) = channel::<()>();
    slow.act(move |ctx, _| {
        ctx.blocking(|| _ = gone.recv_timeout(PATIENCE));
        Ok(())
    });
    let pid = harness.far_pid(slow.pid());
    fill(&harness, pid);
    let near = harness.near();
    thread::scope(|scope| {
        let near = &near.handle;
        // Some may still be accepted while the carrier takes what waits.
        let sender = scope.spawn(move || {
            let refused = (0..10_000_u64).find_map(|number| {
                let content = [number.to_le_bytes(); 1_000].concat();
                let envelope = Envelope::new(None, pid, "bytes", content);
                Some((number, near.send_blocking(envelope).err()?))
            });
            refused.expect("nothing bounds what waits")
        });
        if harness.is_one() {
            // A stop waits for the process.
            near.begin_stop(Duration::from_secs(1));
        } else {
            ground.stop(near, Duration::from_secs(1));
        }
        let (number, refused) = sender.join().expect("the sender ends");
        let back = refused.into_envelope().message.payloads.into_first();
        let content = [number.to_le_bytes(); 1_000].concat();
        assert_eq!(back.as_bytes(), Some(&content[..]));
        drop(go);
    });
}

/// Sends more than all queues hold: a send is refused with the message, and the waiting sends go in
/// order.
pub fn a_sender_waits_for_room_in_order<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let slow = Strings::start(harness.far());
    slow.hold();
    let pid = harness.far_pid(slow.pid());
    let content = vec![7_u8; 10_000];
    let mut accepted = 0_usize;
    let refused = loop {
        ground.breathe();
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
    let sends = ground.begin_sends(&harness.near(), pid, 0..100);
    slow.go_on();
    for _ in 0..accepted {
        let bytes = slow.message().payloads.into_first();
        assert_eq!(bytes.as_bytes().map(<[u8]>::len), Some(content.len()));
    }
    ground.finish(vec![sends]);
    for number in 0..100 {
        assert_eq!(slow.number(), number);
    }
    ground.eventually("nothing is left", || slow.is_quiet());
}
