//! The order of messages, and the values that cross.

use super::parts::{Seen, Strings};
use super::{Ground as _, Harness, Parcel, Unregistered};
use ganger_proc_api::{EndKind, Envelope, Message, Payload, Payloads, SendErrorKind, process_fn};

const MANY: u64 = 20_000;

/// Sends PIDs as sources and as values: each side sees its own without a node, in each call with
/// either.
pub fn far_pids_have_the_node_and_near_ones_do_not<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let far = Strings::start(harness.far());
    let near = Strings::start(harness.near());
    let (near_pid, far_pid) = (near.pid(), harness.far_pid(far.pid()));
    assert_eq!(far_pid.node().is_none(), harness.is_one());
    near.done(move |ctx, _| {
        let payloads: Payloads = [near_pid.into(), far_pid.into()].into_iter().collect();
        Ok(ctx.send(far_pid, "pids", payloads)?)
    });
    let message = far.message();
    let source = message.source.expect("it has a source");
    assert_eq!(harness.far().canonical(source), harness.near_pid(near_pid));
    let pids: Vec<_> = message
        .payloads
        .iter()
        .filter_map(Payload::as_pid)
        .collect();
    assert_eq!(pids, [harness.near_pid(near_pid), far.pid()]);
    // The answer finds its way, with and without the node.
    for to in [source, pids[0], harness.near().absolute(near_pid)] {
        far.done(move |ctx, _| Ok(ctx.send(to, "answer", 7_u64)?));
        assert_eq!(near.number(), 7);
    }
}

/// Sends from one sender to one receiver, with a small mailbox: a million messages in a full run.
pub fn messages_of_a_pair_keep_their_order<H: Harness>(ground: H::Ground) {
    let many = ground.count(MANY, 1_000_000);
    let harness = H::start(ground);
    let far = Strings::start(harness.far());
    ground.send_all(&harness.near(), harness.far_pid(far.pid()), 0..many);
    for number in 0..many {
        assert_eq!(far.number(), number);
    }
    assert!(far.is_quiet());
}

/// Sends from eight senders, in both directions at once.
pub fn messages_of_many_pairs_keep_their_order<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let many = ground.count(MANY / 8, MANY / 8);
    let pairs = (0..8).map(|pair| {
        let (from, to) = match pair % 2 {
            0 => (harness.near(), Strings::start(harness.far())),
            _ => (harness.far(), Strings::start(harness.near())),
        };
        let pid = match pair % 2 {
            0 => harness.far_pid(to.pid()),
            _ => harness.near_pid(to.pid()),
        };
        (ground.begin_sends(&from, pid, 0..many), to)
    });
    let (sends, all): (Vec<_>, Vec<_>) = pairs.unzip();
    ground.finish(sends);
    for to in all {
        for number in 0..many {
            assert_eq!(to.number(), number);
        }
        assert!(to.is_quiet());
    }
}

/// Sends in both directions over a carrier that loses, repeats and reorders.
pub fn nothing_is_lost_or_doubled_by_a_bad_carrier<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    if !harness.disturb() {
        return;
    }
    messages_over(&harness);
}

fn messages_over<H: Harness>(harness: &H) {
    let far = Strings::start(harness.far());
    let near = Strings::start(harness.near());
    let (far_pid, near_pid) = (harness.far_pid(far.pid()), harness.near_pid(near.pid()));
    let (ground, many) = (
        harness.ground(),
        harness.ground().count(MANY / 10, MANY / 10),
    );
    ground.finish(vec![
        ground.begin_sends(&harness.near(), far_pid, 0..many),
        ground.begin_sends(&harness.far(), near_pid, 0..many),
    ]);
    for number in 0..many {
        assert_eq!(far.number(), number);
        assert_eq!(near.number(), number);
    }
    assert!(far.is_quiet() && near.is_quiet());
}

/// Sends scalars, texts, bytes, and a type with a codec.
pub fn plain_values_and_registered_types_cross<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let far = Strings::start(harness.far());
    let pid = harness.far_pid(far.pid());
    let parcel = Parcel {
        number: 7,
        content: vec![1, 2, 3],
    };
    let values = [
        Payload::UNIT,
        true.into(),
        (-7_i64).into(),
        u64::MAX.into(),
        1.5_f64.into(),
        "text".into(),
        Payload::from(vec![0_u8; 5000]),
        Payload::any(parcel.clone()),
    ];
    let payloads: Payloads = values.into_iter().collect();
    let text = format!("{payloads:?}");
    let sent = harness
        .near()
        .send(Envelope::new(None, pid, "values", payloads));
    sent.expect("it is sent");
    let message = far.message();
    assert_eq!(message.topic, "values");
    assert_eq!(message.source, None);
    assert_eq!(format!("{:?}", message.payloads), text);
    let last = message
        .payloads
        .into_iter()
        .last()
        .expect("there are eight");
    assert_eq!(last.downcast::<Parcel>().expect("it is a parcel"), parcel);
    // A process with messages of this type alone takes it, and by its address there is no topic.
    let message = Message::of(parcel.clone());
    harness.near().send(message.to(pid)).expect("it is sent");
    assert_eq!(
        far.message().take::<Parcel>().expect("it is a parcel"),
        parcel
    );
}

/// Refuses a type without a codec where it is sent: the message comes back as it was.
pub fn what_has_no_codec_comes_back<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let far = Strings::start(harness.far());
    let pid = harness.far_pid(far.pid());
    let payloads: Payloads = [Payload::from(1_u64), Payload::any(Unregistered(7))].into();
    let sent = harness
        .near()
        .send(Envelope::new(None, pid, "values", payloads));
    if harness.is_one() {
        return sent.expect("within a node each type is sent");
    }
    let error = sent.expect_err("it has no codec");
    let SendErrorKind::NoCodec(name) = error.kind else {
        panic!("{error}");
    };
    assert!(name.get().ends_with("Unregistered"));
    let Envelope { target, message } = error.into_envelope();
    assert_eq!((target, &*message.topic), (pid, "values"));
    assert_eq!((message.source, message.payloads.len()), (None, 2));
    let last = message.payloads.into_iter().last().expect("there are two");
    assert_eq!(
        last.downcast::<Unregistered>().expect("it is as it was"),
        Unregistered(7)
    );
    ground.send_all(&harness.near(), pid, [1]);
    assert_eq!(far.number(), 1);
}

/// Sends control messages, which overtake the others in the mailbox, and keep an order of their
/// own.
pub fn control_overtakes_and_has_its_order<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let far = Strings::start(harness.far());
    let pid = harness.far_pid(far.pid());
    far.hold();
    ground.send_all(&harness.near(), pid, 0..10);
    for number in 0..10_u64 {
        let envelope = Envelope::new(None, pid, "control", number);
        harness.near().send_control(envelope).expect("it is sent");
    }
    // Until all have arrived: what comes later does not overtake these.
    let witness = Strings::start(harness.far());
    let witness_pid = harness.far_pid(witness.pid());
    ground.send_all(&harness.near(), witness_pid, [1]);
    let envelope = Envelope::new(None, witness_pid, "control", 2_u64);
    harness.near().send_control(envelope).expect("it is sent");
    for _ in 0..2 {
        drop(witness.next());
    }
    far.go_on();
    let numbers = (0..20).map(|_| match far.next() {
        Seen::Control(message) => (true, message.payloads.into_first().as_u64()),
        Seen::Message(message) => (false, message.payloads.into_first().as_u64()),
        Seen::Exit(..) => panic!("nothing is monitored"),
    });
    let control = (0..10).map(|it| (true, Some(it)));
    let others = (0..10).map(|it| (false, Some(it)));
    assert!(numbers.eq(control.chain(others)));
}

/// Sends to an ended process. Within a node the sender learns so; to another node the message is on
/// its way.
pub fn a_message_to_a_process_that_is_gone_is_no_error_of_the_link<H: Harness>(ground: H::Ground) {
    let harness = H::start(ground);
    let gone = harness.far().spawn(process_fn(|_, _, out| {
        out.done(());
        Ok(())
    }));
    let gone = gone.expect("the process starts");
    let pid = harness.far_pid(gone.pid());
    assert!(ground.end(gone).is_done());
    let sent = harness.near().send(Envelope::new(None, pid, "late", 1_u64));
    if harness.is_one() {
        let kind = sent.expect_err("it has ended").kind;
        assert!(matches!(
            kind,
            SendErrorKind::NotFound | SendErrorKind::Ended(EndKind::Done)
        ));
    } else {
        sent.expect("it is on its way");
    }
    let far = Strings::start(harness.far());
    ground.send_all(&harness.near(), harness.far_pid(far.pid()), [2]);
    assert_eq!(far.number(), 2);
}
