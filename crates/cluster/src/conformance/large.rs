//! Messages larger than a frame.

use super::parts::Strings;
use super::{Harness, Parcel, send_all};
use ganger_proc_api::{Envelope, Payload};

/// Eight MiB between small messages: of one sender in order, and with the same bytes.
pub fn large_messages_keep_the_order_of_their_sender<H: Harness>() {
    const LARGE: usize = 8 << 20;
    let harness = H::start();
    let far = Strings::start(harness.far());
    let pid = harness.far_pid(far.pid());
    let near = Strings::start(harness.near());
    let content: Vec<u8> = (0..LARGE)
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
    send_all(harness.near(), harness.far_pid(other.pid()), [9]);
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
