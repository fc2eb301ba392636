//! The lower bounds that the promises set for each act, and why. The reasons are for people; the
//! table in `benches/instructions.md` compares them with the counts.

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
        why: "The process is its worker's alone; the rotation counts (G4).",
    },
    Least {
        act: "command",
        what: "a yield that completes inline",
        rmws: 0.0,
        allocations: 0.0,
        why: "No other thread has the completer (P6).",
    },
    Least {
        act: "ask",
        what: "a command that another process answers",
        rmws: 4.0,
        allocations: 0.0,
        why: "Two sends to `Idle` processes.",
    },
    Least {
        act: "send",
        what: "a send by handle to an `Idle` process",
        rmws: 2.0,
        allocations: 0.0,
        why: "The right to wake is taken (G1) and given back (G2).",
    },
    Least {
        act: "send-blocked",
        what: "the same to a `Blocked` process",
        rmws: 2.0,
        allocations: 0.0,
        why: "As `Idle` (P5).",
    },
    Least {
        act: "send-pid",
        what: "a send by PID to an `Idle` process",
        rmws: 2.0,
        allocations: 0.0,
        why: "Here: a reference, taken and dropped.",
    },
    Least {
        act: "send-ready",
        what: "a send by handle to a `Ready` process, 64 in a step",
        rmws: BATCH,
        allocations: 0.0,
        why: "A push each, a wake-up, two parks. Here: a drain.",
    },
    Least {
        act: "send-pid-ready",
        what: "the same by PID",
        rmws: BATCH,
        allocations: 0.0,
        why: "As by PID.",
    },
    Least {
        act: "send-running",
        what: "a send by handle to a `Running` process",
        rmws: 1.0,
        allocations: 0.0,
        why: "The push. Here: the drain.",
    },
    Least {
        act: "send-pid-running",
        what: "the same by PID",
        rmws: 1.0,
        allocations: 0.0,
        why: "As by PID.",
    },
    Least {
        act: "spawn",
        what: "spawn to exit, by a worker",
        rmws: 3.0,
        allocations: 1.0,
        why: "The mailbox's close (R2), the kept context's reference, twice; its state in a box.",
    },
    Least {
        act: "spawn-outside",
        what: "spawn to exit, from a thread that is no worker",
        rmws: OUTSIDE,
        allocations: 0.0,
        why: "A push and a part of a batch (G3), the ends of mailbox (R2) and handle (P12), the \
              workload's own. Here: two counts, a cache, the slot.",
    },
    Least {
        act: "call",
        what: "a question of an actor to another",
        rmws: 4.0,
        allocations: 0.0,
        why: "Two sends to `Idle` processes.",
    },
    Least {
        act: "call-tasks",
        what: "the same between tasks",
        rmws: 4.0,
        allocations: 0.0,
        why: "The same.",
    },
    Least {
        act: "typed",
        what: "a message of one type to an `Idle` actor",
        rmws: 2.0,
        allocations: 0.0,
        why: "As a send.",
    },
    Least {
        act: "typed-tasks",
        what: "the same to a task",
        rmws: 2.0,
        allocations: 0.0,
        why: "As a send.",
    },
    Least {
        act: "yield",
        what: "a task that yields and goes on",
        rmws: 0.0,
        allocations: 0.0,
        why: "No other thread is told.",
    },
    Least {
        act: "channel-0",
        what: "a value from task to task without room",
        rmws: 3.0,
        allocations: 0.0,
        why: "A side locks to wait, the other to hand over and wake.",
    },
    Least {
        act: "channel-1",
        what: "the same with room for one",
        rmws: 2.0,
        allocations: 0.0,
        why: "Both sides see the send and the receipt.",
    },
    Least {
        act: "channel-1024",
        what: "the same with room for 1,024",
        rmws: 2.0,
        allocations: 0.0,
        why: "The same.",
    },
    Least {
        act: "mutex-free",
        what: "a turn of a free mutex, by a task",
        rmws: 1.0,
        allocations: 0.0,
        why: "The lock. Here: the unlock.",
    },
    Least {
        act: "mutex",
        what: "a turn of two tasks that wait for each other",
        rmws: 2.0,
        allocations: 0.0,
        why: "A hand-over with the wake-up.",
    },
    Least {
        act: "timer",
        what: "a timer, set and cancelled, 128 in a step",
        rmws: 0.0,
        allocations: 0.0,
        why: "Here: a lock, since any thread may cancel.",
    },
    Least {
        act: "timer-step",
        what: "a step that begins a sleep and cancels the one before",
        rmws: 0.0,
        allocations: 0.0,
        why: "As a timer.",
    },
    Least {
        act: "socket",
        what: "64 bytes over TCP and back, both ends tasks",
        rmws: 4.0,
        allocations: 0.0,
        why: "A wake-up and a park at each end.",
    },
    Least {
        act: "deque",
        what: "a push and a pop of a deque",
        rmws: 0.0,
        allocations: 0.0,
        why: "The thief can pay for both.",
    },
    Least {
        act: "mailbox",
        what: "a send to a mailbox and its receipt",
        rmws: 1.0,
        allocations: 0.0,
        why: "The push. Here: the drain.",
    },
];
