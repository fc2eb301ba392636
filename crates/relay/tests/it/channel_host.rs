//! Channels for PIDs.

use crate::common::*;
use ganger_proc_api::{Message, Payload, Pid, SendErrorKind};
use ganger_relay::{
    AttachError, ChannelHost, EnvelopeReceiver, Inbox, Node, RecvTimeoutError, Router, TryRecvError,
};
use ganger_sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

fn in_box() -> ChannelHost {
    ChannelHost::new(node("here"), host("box"))
}

#[track_caller]
fn assert_next(inbox: &Inbox, target: &str, expected: u64) {
    assert_eq!(number(inbox.try_recv().unwrap(), target), expected);
}

// pins: R5
#[test]
fn an_attached_pid_gets_its_envelopes_and_no_others() {
    let channels = in_box();
    let one = channels.attach(pid("{box|1}")).unwrap();
    let two = channels.attach(pid("{box|2}")).unwrap();
    for (target, number) in [("{box|1}", 10), ("{box|2}", 20), ("{box|1}", 11)] {
        channels.send(envelope(target, number)).unwrap();
    }
    assert_next(&one, "{box|1}", 10);
    assert_next(&one, "{box|1}", 11);
    assert_eq!(one.try_recv().unwrap_err(), TryRecvError::Empty);
    assert_next(&two, "{box|2}", 20);
    assert_eq!(two.try_recv().unwrap_err(), TryRecvError::Empty);
}

// pins: R5
#[test]
fn the_local_node_may_be_named_or_not() {
    let here = Arc::new(Node::new(node("here")));
    let channels = Arc::new(in_box());
    here.add_host(channels.host(), channels.clone()).unwrap();
    let router = Router::new(here);
    for attached in ["{box|1}", "{here@box|1}"] {
        let inbox = channels.attach(pid(attached)).unwrap();
        assert_eq!(inbox.pid(), pid(attached));
        for target in ["{box|1}", "{here@box|1}"] {
            router.send(envelope(target, 1)).unwrap();
            assert_next(&inbox, target, 1);
            assert_eq!(
                channels.attach(pid(target)).unwrap_err(),
                AttachError::AlreadyAttached(pid(target))
            );
        }
        assert!(channels.detach(pid("{here@box|1}")));
        assert!(!channels.detach(pid("{box|1}")));
    }
}

// pins: R5
#[test]
fn a_second_attach_is_refused_and_the_first_untouched() {
    let channels = in_box();
    let inbox = channels.attach(pid("{box|1}")).unwrap();
    channels.send(envelope("{box|1}", 1)).unwrap();
    let error = channels.attach(pid("{box|1}")).unwrap_err();
    assert_eq!(error, AttachError::AlreadyAttached(pid("{box|1}")));
    assert_eq!(error.to_string(), "{box|1} already has a receiver");
    channels.send(envelope("{box|1}", 2)).unwrap();
    assert_next(&inbox, "{box|1}", 1);
    assert_next(&inbox, "{box|1}", 2);
}

// pins: R5
#[test]
fn a_pid_that_lives_elsewhere_is_refused() {
    let channels = in_box();
    for elsewhere in ["{main|1}", "{there@box|1}", "{here@main|1}"] {
        let pid = pid(elsewhere);
        let error = channels.attach(pid).unwrap_err();
        assert_eq!(
            error,
            AttachError::Elsewhere {
                pid,
                node: node("here"),
                host: host("box")
            }
        );
        assert_eq!(
            error.to_string(),
            format!("{pid} is not a PID of the host box on the node here")
        );
    }
    let inbox = channels.attach(pid("{box|1}")).unwrap();
    for elsewhere in ["{main|1}", "{there@box|1}"] {
        assert!(!channels.detach(pid(elsewhere)), "{elsewhere}");
    }
    assert!(!inbox.is_closed());
}

// pins: R2, R5
#[test]
fn what_no_channel_takes_comes_back_whole() {
    let channels = in_box();
    let _inbox = channels.attach(pid("{box|1}")).unwrap();
    assert_refused(&channels, "{box|2}", SendErrorKind::NotFound);
    assert_refused(&channels, "{here@box|2}", SendErrorKind::NotFound);
    assert_refused(&channels, "{main|1}", SendErrorKind::HostNotFound);
    assert_refused(&channels, "{there@box|1}", SendErrorKind::NodeNotFound);
}

// pins: R2, R5
#[test]
fn dropping_the_receiver_detaches() {
    let channels = in_box();
    drop(channels.attach(pid("{box|1}")).unwrap());
    assert_refused(&channels, "{box|1}", SendErrorKind::NotFound);
    let inbox = channels.attach(pid("{box|1}")).unwrap();
    channels.send(envelope("{box|1}", 1)).unwrap();
    assert_next(&inbox, "{box|1}", 1);
}

// pins: R5
#[test]
fn what_was_not_taken_is_freed_with_the_receiver() {
    static FREED: AtomicUsize = AtomicUsize::new(0);
    struct Counted;
    impl Drop for Counted {
        fn drop(&mut self) {
            // Ordering: Relaxed, because a single thread does it all.
            FREED.fetch_add(1, Ordering::Relaxed);
        }
    }
    // Ordering: Relaxed, because a single thread does it all.
    let freed = || FREED.load(Ordering::Relaxed);

    let channels = in_box();
    let inbox = channels.open();
    for _ in 0..3 {
        let message = Message::new("counted", Payload::any(Counted));
        channels.send(message.to(inbox.pid())).unwrap();
    }
    drop(inbox.try_recv().unwrap());
    assert_eq!(freed(), 1);
    drop(inbox);
    assert_eq!(freed(), 3);
}

// pins: R2, R5
#[test]
fn closing_gives_out_what_was_not_taken() {
    let channels = in_box();
    let inbox = channels.attach(pid("{box|1}")).unwrap();
    for number in 1..=3 {
        channels.send(envelope("{box|1}", number)).unwrap();
    }
    assert_next(&inbox, "{box|1}", 1);
    let rest: Vec<_> = inbox
        .close()
        .into_iter()
        .map(|envelope| number(envelope, "{box|1}"))
        .collect();
    assert_eq!(rest, [2, 3]);
    assert_refused(&channels, "{box|1}", SendErrorKind::NotFound);
}

// pins: R5
#[test]
fn a_detached_receiver_gets_what_was_sent_and_then_sees_the_end() {
    let channels = in_box();
    let old = channels.attach(pid("{box|1}")).unwrap();
    channels.send(envelope("{box|1}", 1)).unwrap();
    assert!(!old.is_closed());
    assert!(channels.detach(pid("{box|1}")));
    assert!(old.is_closed());
    assert!(!channels.detach(pid("{box|1}")));
    assert_refused(&channels, "{box|1}", SendErrorKind::NotFound);

    let new = channels.attach(pid("{box|1}")).unwrap();
    channels.send(envelope("{box|1}", 2)).unwrap();
    assert_next(&old, "{box|1}", 1);
    assert_eq!(old.try_recv().unwrap_err(), TryRecvError::Disconnected);

    drop(old);
    channels.send(envelope("{box|1}", 3)).unwrap();
    assert_next(&new, "{box|1}", 2);
    assert_next(&new, "{box|1}", 3);
}

// pins: R5
#[test]
fn detaching_ends_a_receive_that_waits() {
    returns(|| {
        let channels = in_box();
        let inbox = channels.open();
        let pid = inbox.pid();
        let waiting = std::thread::spawn(move || inbox.iter().count());
        channels.send(Message::new("one", ()).to(pid)).unwrap();
        assert!(channels.detach(pid));
        assert_eq!(waiting.join().unwrap(), 1);
    });
}

// pins: R5
#[test]
fn receivers_see_the_end_when_the_channels_go() {
    returns(|| {
        let channels = in_box();
        let (inbox, other) = (channels.open(), channels.open());
        channels
            .send(Message::new("one", ()).to(inbox.pid()))
            .unwrap();
        let waiting = std::thread::spawn(move || other.recv().is_err());
        drop(channels);
        assert_eq!((&inbox).into_iter().count(), 1);
        assert!(waiting.join().unwrap());
        assert!(inbox.close().is_empty());
    });
}

// pins: R5
#[test]
fn open_gives_a_pid_of_its_own() {
    let channels = in_box();
    let by_hand: Vec<_> = ["{box|2}", "{here@box|3}"]
        .map(|text| channels.attach(pid(text)).unwrap())
        .into();
    let first = channels.open();
    assert_eq!(first.pid(), pid("{here@box|1}"));
    drop(first);
    let second = channels.open();
    assert_eq!(
        second.pid(),
        pid("{here@box|4}"),
        "2 and 3 are taken, 1 was"
    );
    let all: [Pid; 3] = ["{here@box|2}", "{here@box|3}", "{here@box|4}"].map(pid);
    assert_eq!(channels.attached(), all);
    drop((by_hand, second));
    assert!(channels.attached().is_empty());
}

// pins: R5
#[test]
fn every_way_to_receive() {
    let channels = in_box();
    let inbox = channels.attach(pid("{box|1}")).unwrap();
    let timeout = Duration::from_millis(1);
    assert_eq!(
        inbox.recv_timeout(timeout).unwrap_err(),
        RecvTimeoutError::Timeout
    );
    for number in 1..=5 {
        channels.send(envelope("{box|1}", number)).unwrap();
    }
    assert_eq!(number(inbox.recv().unwrap(), "{box|1}"), 1);
    assert_eq!(number(inbox.recv_timeout(timeout).unwrap(), "{box|1}"), 2);
    assert_next(&inbox, "{box|1}", 3);
    assert_eq!(inbox.drain().len(), 2);
    channels.detach(inbox.pid());
    assert_eq!(
        inbox.recv_timeout(timeout).unwrap_err(),
        RecvTimeoutError::Disconnected
    );
    assert!(inbox.recv().is_err());
    assert!(inbox.drain().is_empty());
    assert_eq!(
        format!("{inbox:?}"),
        "Inbox { pid: {box|1}, is_closed: true, .. }"
    );
    assert_eq!(
        format!("{channels:?}"),
        r#"ChannelHost { node: "here", host: "box", .. }"#
    );
}

// pins: R5
#[test]
fn of_many_threads_that_attach_and_detach_at_once_one_wins() {
    const THREADS: usize = 4;
    const ROUNDS: usize = 2_000;
    let channels = in_box();
    let (start, end) = (Barrier::new(THREADS), Barrier::new(THREADS));
    let attached = AtomicUsize::new(0);
    let detached = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    start.wait();
                    let inbox = channels.attach(pid("{box|1}"));
                    // Ordering: Relaxed, because they are read after all threads have been joined.
                    attached.fetch_add(usize::from(inbox.is_ok()), Ordering::Relaxed);
                    end.wait();
                    let is_detached = channels.detach(pid("{box|1}"));
                    // Ordering: Relaxed, because they are read after all threads have been joined.
                    detached.fetch_add(usize::from(is_detached), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(attached.into_inner(), ROUNDS);
    assert_eq!(detached.into_inner(), ROUNDS);
}
