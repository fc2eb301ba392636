//! The lower bounds that the promises set for each act, and why. The reasons are for people; the
//! table in `docs/PERFORMANCE.md` compares them with the counts.

/// The costs that no implementation can avoid that keeps the promises.
#[derive(Debug, PartialEq)]
pub(super) struct Least {
    /// The name of the act in the counted program.
    pub(super) act: &'static str,
    /// As the table calls it.
    pub(super) what: &'static str,
    pub(super) rmws: f64,
    pub(super) allocations: f64,
    /// The reason, in a sentence or two.
    pub(super) why: &'static str,
}

/// For a batch of 64 messages: a push for each, with a wake-up at the first, the feeder's wake-up,
/// and both parks.
const BATCH: f64 = (64.0 + 1.0 + 2.0) / 64.0;

/// For a process from outside: a push to the global queue, its part of a batch of 17 that is taken
/// at once, the mailbox's end, the handle's, and the workload's own count.
const OUTSIDE: f64 = 1.0 + 1.0 / 17.0 + 3.0;

pub(super) const LEAST: [Least; 14] = [
    Least {
        act: "step",
        what: "a step that goes on",
        rmws: 0.0,
        allocations: 0.0,
        why: "Between the queue and the step the process is its worker's alone. The count is \
              that of the rotation, which looks at the old ends of both queues (G4).",
    },
    Least {
        act: "command",
        what: "a yield that completes inline",
        rmws: 0.0,
        allocations: 0.0,
        why: "No other thread has the completer yet, so the answer changes nothing shared (P6).",
    },
    Least {
        act: "ask",
        what: "a command that another process answers, with both steps",
        rmws: 4.0,
        allocations: 0.0,
        why: "As for a send to an `Idle` process, twice.",
    },
    Least {
        act: "send",
        what: "a send by handle to an `Idle` process, and its step",
        rmws: 2.0,
        allocations: 0.0,
        why: "One of several senders takes the right to wake it (G1), and the receiver leaves it \
              again in the exchange that finds nothing in the mailbox (G2).",
    },
    Least {
        act: "send-blocked",
        what: "the same to a `Blocked` process",
        rmws: 2.0,
        allocations: 0.0,
        why: "As for `Idle`: any event wakes it (P5).",
    },
    Least {
        act: "send-pid",
        what: "a send by PID to an `Idle` process, and its step",
        rmws: 2.0,
        allocations: 0.0,
        why: "As by handle. Here a look-up takes two, for its reference to the process.",
    },
    Least {
        act: "send-ready",
        what: "a send by handle to a `Ready` process, 64 in a step",
        rmws: BATCH,
        allocations: 0.0,
        why: "A push each; the rest is one wake-up and two parks for 64 messages. Here a drain \
              comes on top.",
    },
    Least {
        act: "send-pid-ready",
        what: "the same by PID",
        rmws: BATCH,
        allocations: 0.0,
        why: "As by handle.",
    },
    Least {
        act: "send-running",
        what: "a send by handle to a `Running` process, and its next step",
        rmws: 1.0,
        allocations: 0.0,
        why: "The push: the process does not park. Here the drain takes one.",
    },
    Least {
        act: "send-pid-running",
        what: "the same by PID",
        rmws: 1.0,
        allocations: 0.0,
        why: "As by handle.",
    },
    Least {
        act: "spawn",
        what: "spawn to exit, by a worker",
        rmws: 3.0,
        allocations: 1.0,
        why: "The mailbox is closed (R2), and this process keeps its context, which takes a \
              reference and drops it; its state is in a box. Here its slot takes one more.",
    },
    Least {
        act: "spawn-outside",
        what: "spawn to exit, from a thread that is no worker",
        rmws: OUTSIDE,
        allocations: 0.0,
        why: "A push to the global queue (G3), a part of taking a batch from there, the \
              mailbox's end (R2), the handle's (P12), and one of the workload's own. Here such \
              threads share two counts and a cache, and the slot takes one more.",
    },
    Least {
        act: "deque",
        what: "a push and a pop of a deque",
        rmws: 0.0,
        allocations: 0.0,
        why: "A thief has to agree with the owner, and the thief can pay for that.",
    },
    Least {
        act: "mailbox",
        what: "a send to a mailbox and its receipt",
        rmws: 1.0,
        allocations: 0.0,
        why: "The push. Here the drain takes one as well.",
    },
];
