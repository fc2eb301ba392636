//! The lower bounds that the promises set for each act, and why. The reasons are for people; the
//! table in `docs/LIMITS.md` compares them with the counts.

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

pub(super) const LEAST: [Least; 27] = [
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
        act: "call",
        what: "a question of an actor to another, with both steps",
        rmws: 4.0,
        allocations: 0.0,
        why: "As for a send to an `Idle` process, twice.",
    },
    Least {
        act: "call-tasks",
        what: "the same between tasks",
        rmws: 4.0,
        allocations: 0.0,
        why: "As between actors.",
    },
    Least {
        act: "typed",
        what: "a message of one type to an `Idle` actor, and its step",
        rmws: 2.0,
        allocations: 0.0,
        why: "As for `send`.",
    },
    Least {
        act: "typed-tasks",
        what: "the same to a task",
        rmws: 2.0,
        allocations: 0.0,
        why: "As for an actor.",
    },
    Least {
        act: "yield",
        what: "a task that yields and goes on",
        rmws: 0.0,
        allocations: 0.0,
        why: "As for `step`: no other thread is told.",
    },
    Least {
        act: "channel-0",
        what: "a value from task to task without room",
        rmws: 3.0,
        allocations: 0.0,
        why: "One of the two waits for each value: it locks the channel to wait, the other \
              locks it to hand the value over, and wakes it.",
    },
    Least {
        act: "channel-1",
        what: "the same with room for one",
        rmws: 2.0,
        allocations: 0.0,
        why: "A send and a receipt change what both sides see.",
    },
    Least {
        act: "channel-1024",
        what: "the same with room for 1,024",
        rmws: 2.0,
        allocations: 0.0,
        why: "As with room for one.",
    },
    Least {
        act: "mutex-free",
        what: "a turn of a free mutex, by a task",
        rmws: 1.0,
        allocations: 0.0,
        why: "The lock. Here the unlock takes one as well, which finds those that wait.",
    },
    Least {
        act: "mutex",
        what: "a turn of two tasks that wait for each other",
        rmws: 2.0,
        allocations: 0.0,
        why: "As for a free one, if the mutex is handed over with the wake-up.",
    },
    Least {
        act: "timer",
        what: "a timer that is set and cancelled, 128 in a step",
        rmws: 0.0,
        allocations: 0.0,
        why: "The wheel could be its worker's alone. Here a timer has a lock, since any \
              thread may cancel it.",
    },
    Least {
        act: "timer-step",
        what: "a step that begins a sleep and cancels the one before",
        rmws: 0.0,
        allocations: 0.0,
        why: "As for a timer: the process is its worker's.",
    },
    Least {
        act: "socket",
        what: "64 bytes over TCP and back, both ends tasks",
        rmws: 4.0,
        allocations: 0.0,
        why: "The poller wakes each end once, and each parks once.",
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
