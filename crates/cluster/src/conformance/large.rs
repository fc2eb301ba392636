//! Messages larger than a frame.

use super::parts::{Begun, Strings};
use super::{Ground as _, Harness, Parcel};
use ganger_proc_api::{Envelope, Payload};
use std::time::Duration;

/// Sends 6 MiB in each direction over a carrier of 4 MiB a second, with sessions of a second.
/// Heartbeats are heard meanwhile, and the session lasts.
pub fn a_session_outlives_large_messages<H: Harness>(ground: H::Ground) {
    let part = bytes(ground.count(2 << 20, 2 << 20));
    let Some(harness) = H::start_frail(ground, Duration::from_secs(1)) else {
        return;
    };
    harness.throttle(2 * part as u64);
    let near = Strings::start(harness.near());
    let far = Strings::start(harness.far());
    let (near_pid, far_pid) = (harness.near_pid(near.pid()), harness.far_pid(far.pid()));
    near.done(move |ctx, _| Ok(ctx.monitor(far_pid, 1)?));
    far.done(move |ctx, _| Ok(ctx.monitor(near_pid, 2)?));
    let begun = [(&near, far_pid), (&far, near_pid)].map(|(from, pid)| {
        from.begin(move |ctx, _| {
            for _ in 0..3 {
                ctx.send(pid, "bytes", vec![7; part])?;
            }
            Ok(())
        })
    });
    begun.into_iter().for_each(Begun::wait);
    for to in [&far, &near] {
        for _ in 0..3 {
            // A notice in its place would say that the session has ended.
            let bytes = to.message().payloads.into_first();
            assert_eq!(bytes.as_bytes().map(<[u8]>::len), Some(part));
        }
    }
    assert!(near.is_quiet() && far.is_quiet());
}

/// Sends eight MiB between small messages: of one sender in order, and with the same bytes.
pub fn large_messages_keep_the_order_of_their_sender<H: Harness>(ground: H::Ground) {
    let large = bytes(ground.count(8 << 20, 8 << 20));
    let harness = H::start(ground);
    let far = Strings::start(harness.far());
    let pid = harness.far_pid(far.pid());
    let near = Strings::start(harness.near());
    let content: Vec<u8> = (0..large)
        .map(|it| it.to_le_bytes()[0] ^ it.to_le_bytes()[1])
        .collect();
    let sent = content.clone();
    near.done(move |ctx, _| {
        ctx.send(pid, "number", 0_u64)?;
        ctx.send(pid, "bytes", sent.clone())?;
        ctx.send(pid, "number", 1_u64)?;
        let parcel = Parcel {
            number: 2,
            content: sent,
        };
        ctx.send(pid, "parcel", Payload::any(parcel))?;
        ctx.send(pid, "number", 3_u64)?;
        Ok(())
    });
    // Another sender goes between.
    let other = Strings::start(harness.far());
    ground.send_all(&harness.near(), harness.far_pid(other.pid()), [9]);
    assert_eq!(other.number(), 9);
    assert_eq!(far.number(), 0);
    let bytes = far.message().payloads.into_first();
    assert!(
        bytes.as_bytes() == Some(&content[..]),
        "other bytes have come"
    );
    assert_eq!(far.number(), 1);
    let parcel = far.message().take::<Parcel>().expect("it is a parcel");
    assert_eq!(parcel.number, 2);
    assert!(parcel.content == content, "other bytes have come");
    assert_eq!(far.number(), 3);
    let envelope = Envelope::new(None, harness.far_pid(far.pid()), "number", 4_u64);
    harness.near().send(envelope).expect("it is sent");
    assert_eq!(far.number(), 4);
}

fn bytes(number: u64) -> usize {
    usize::try_from(number).expect("it is small")
}
