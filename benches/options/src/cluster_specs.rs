//! The workloads of two programs on a machine, each a node.

use super::catalog::Goal::{Just, Of, OursIn};
use super::catalog::{Id, Metric, Peer, Spec};

/// Peers whose processes send to processes of another program; and one without processes, as the
/// lower bound.
const REMOTE: &[Peer] = &[Peer::Ganger, Peer::Erlang, Peer::Tcp];
const STREAMS: &[Peer] = &[Peer::Ganger, Peer::Erlang, Peer::Tcp];
const ALONE: &[Peer] = &[Peer::Ganger];

const fn metric(variant: &'static str, unit: &'static str) -> Metric {
    Metric::new(variant, unit)
}

pub(super) const ROUND_TRIP: Spec = Spec {
    id: Id::X1,
    name: "far_round_trip",
    what: "64 bytes go to a process of another program and back; over TLS, and where the \
           scheduler has sockets of its own, too",
    of: "round trips",
    full: 10_000,
    quick: 500,
    peers: REMOTE,
    metrics: &[
        metric("p50", "us").to(&[Of(Peer::Tcp, 1.5), Of(Peer::Erlang, 1.5)]),
        metric("p99", "us"),
        metric("p50, TLS", "us").to(&[OursIn("p50", 1.3)]),
        metric("p99, TLS", "us"),
        metric("p50, own sockets", "us"),
        metric("p99, own sockets", "us"),
    ],
};

pub(super) const SMALL: Spec = Spec {
    id: Id::X2,
    name: "far_stream",
    what: "A process sends messages of 64 bytes to a process of another program",
    of: "messages",
    full: 1_000_000,
    quick: 20_000,
    peers: STREAMS,
    metrics: &[metric("time", "ns").to(&[Of(Peer::Erlang, 0.2), Of(Peer::Tcp, 4.0)])],
};

pub(super) const LARGE: Spec = Spec {
    id: Id::X3,
    name: "far_stream_large",
    what: "As X2, with 1,024 bytes; over TLS, too",
    full: 200_000,
    quick: 5_000,
    metrics: &[
        metric("time", "ns").to(&[Of(Peer::Erlang, 0.5), Of(Peer::Tcp, 4.0)]),
        metric("time, TLS", "ns").to(&[OursIn("time", 2.0)]),
    ],
    ..SMALL
};

pub(super) const PAIRS: Spec = Spec {
    id: Id::X4,
    name: "far_streams",
    what: "As X2, with 100 pairs of processes at once",
    ..SMALL
};

pub(super) const BROADCAST: Spec = Spec {
    id: Id::X5,
    name: "far_broadcast",
    what: "A process broadcasts 64 bytes to a group with 500 members at each of 2 other programs, \
           until all have them; and the frames for each program",
    of: "broadcasts",
    full: 1_000,
    quick: 20,
    peers: ALONE,
    metrics: &[
        metric("time", "us"),
        metric("frames", "frames").to(&[Just(1.0)]),
    ],
};

pub(super) const ONE_WAY: Spec = Spec {
    id: Id::X6,
    name: "far_one_way",
    what: "As X2, at half of the speed: from the send to the receiver's step",
    of: "messages",
    full: 1_000_000,
    quick: 20_000,
    peers: &[Peer::Ganger, Peer::Tcp],
    metrics: &[
        metric("p50", "us"),
        metric("p99", "us").to(&[Just(1_000.0)]),
    ],
};

pub(super) const STOPPED: Spec = Spec {
    id: Id::X7,
    name: "far_stopped",
    what: "A process sends 1,024 bytes to another program that is stopped, until all queues are \
           full: how much memory that takes",
    of: "ms",
    full: 2_000,
    quick: 200,
    peers: ALONE,
    // The queue, the window, and a MiB.
    metrics: &[metric("rss", "MiB").to(&[Just(6.0)])],
};

pub(super) const MONITORS: Spec = Spec {
    id: Id::X8,
    name: "far_monitors",
    what: "A process monitors processes of another program: until all monitors are there, from \
           the order to end until the last notice, and after the end of the session",
    of: "processes",
    full: 100_000,
    quick: 2_000,
    peers: &[Peer::Ganger, Peer::Erlang],
    metrics: &[
        metric("set up", "ms").to(&[Just(300.0)]),
        metric("all die", "ms").to(&[Just(300.0)]),
        metric("session ends", "ms").to(&[Just(300.0)]),
    ],
};

pub(super) const ENDS: Spec = Spec {
    id: Id::X9,
    name: "far_crash",
    what: "Another program is killed, or stops: until a monitor of its process says so",
    of: "monitors",
    full: 1,
    quick: 1,
    peers: &[Peer::Ganger, Peer::Erlang],
    metrics: &[
        metric("crash", "ms").to(&[Just(400.0)]),
        // A node is taken for dead after 7 s.
        metric("hang", "ms").to(&[Just(7_500.0)]),
    ],
};

pub(super) const BESIDE: Spec = Spec {
    id: Id::X10,
    name: "beside_cluster",
    what: "W4 and W6 in a scheduler by itself, and as a node; and the processor time of each of \
           3 idle nodes",
    of: "messages",
    full: 1_000_000,
    quick: 20_000,
    peers: ALONE,
    metrics: &[
        metric("round trip, alone", "ns"),
        metric("round trip", "ns").to(&[OursIn("round trip, alone", 1.05)]),
        metric("fan in, alone", "ns"),
        metric("fan in", "ns").to(&[OursIn("fan in, alone", 1.05)]),
        metric("cpu", "ms/s").to(&[Just(1.0)]),
    ],
};

pub(super) const NAMES: Spec = Spec {
    id: Id::X16,
    name: "strong_name",
    what: "A process takes strong names, one after the other, of a registrar at another node, \
           which writes each to its disk; beside a round trip",
    of: "names",
    full: 1_000,
    quick: 50,
    peers: ALONE,
    metrics: &[
        metric("round trip, p50", "us"),
        metric("p50", "us").to(&[OursIn("round trip, p50", 2.0)]),
        metric("p99", "us"),
    ],
};
