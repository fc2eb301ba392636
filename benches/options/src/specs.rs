//! The workloads, a row each: its identifier, its text on the command line and in JSON, its name,
//! how many elements it has in full and in a quick run, what they are, its peers, its figures, and
//! what it does. Behind a figure and its unit is the target: Ganger's figure is at most each of
//! these.

use super::catalog::Goal::{Best, BestIn, Just, Of, OursIn};
use super::catalog::Peer::{self, *};
use super::catalog::{Metric, Spec, names};
use serde::{Deserialize, Serialize};

const SCHEDULERS: &[Peer] = &[Ganger, Tokio, Ractor, Kameo, Xtra, Actix, Go, Erlang];
/// Peers in which a step can block its thread.
const BLOCKING: &[Peer] = &[Ganger, Tokio, Ractor, Kameo, Xtra, Actix, Go];
/// Peers whose messages are values of a single type, or that have timers beside a blocked thread.
const TYPED: &[Peer] = &[Ganger, Tokio, Go];
/// Peers with timers of their own. The rest use tokio's timers.
const TIMERS: &[Peer] = &[Ganger, Tokio, Go, Erlang];
/// Peers whose processes are async functions. The rest run the same in their own idiom.
const ASYNC: &[Peer] = &[Ganger, Tokio];
/// Peers whose processes a thread outside can ask.
const OUTSIDE: &[Peer] = &[Ganger, Tokio, Ractor, Kameo];
/// Peers in which a process is told of the end of a process that it starts, and peers with groups.
const MONITORS: &[Peer] = &[Ganger, Tokio, Ractor, Erlang];
/// Peers with a pool that carries out a limited number of jobs at a time.
const POOLS: &[Peer] = &[Ganger, Tokio, Ractor, Rayon];
/// Peers whose processes send to another program, and the lower bound, which has no processes.
const REMOTE: &[Peer] = &[Ganger, Erlang, KameoRemote, RactorCluster, Tcp];
const REMOTE_PAIRS: &[Peer] = &[Ganger, Erlang, Tcp];

macro_rules! specs {
    ($($id:ident = $text:literal $name:literal, $full:literal / $quick:literal $of:literal,
        $peers:expr, [$($variant:literal $unit:literal $($goal:expr),*);+], $what:literal;)+) => {
        names! {
            /// A workload.
            #[allow(missing_docs, reason = "the rows describe them")]
            Id, "workload": $($id = $text,)+
        }

        /// In the order of [`Id::ALL`].
        pub(super) const SPECS: &[Spec] = &[$(Spec {
            id: Id::$id,
            name: $name,
            what: $what,
            of: $of,
            full: $full,
            quick: $quick,
            peers: $peers,
            metrics: &[$(Metric { variant: $variant, unit: $unit, goals: &[$($goal),*] }),+],
        },)+];
    };
}

specs! {
    W1 = "W1" "start a process from outside", 1_000_000 / 50_000 "processes", SCHEDULERS,
        ["time" "ns" Best(0.9), Of(Tokio, 0.35)],
        "The main thread spawns processes; each runs once, hits the gate and ends";
    W2 = "W2" "a tree of 1,111,111 processes", 1_111_111 / 11_111 "processes", SCHEDULERS,
        ["time" "ms" Best(0.55)],
        "A tree of processes, ten children each: leaves send their number up, parents the sum; 6 \
         levels, quick 4";
    W3a = "W3a" "a step, one process", 1_000_000 / 50_000 "steps", SCHEDULERS,
        ["time" "ns" Best(0.7)],
        "One process continues again and again";
    W3b = "W3b" "a step, 100 processes", 1_000_000 / 50_000 "steps", SCHEDULERS,
        ["time" "ns" Best(0.65)],
        "100 processes continue again and again";
    W4 = "W4" "round trip, one pair", 1_000_000 / 20_000 "round trips", SCHEDULERS,
        ["time" "ns" Best(0.5)],
        "A pair sends a number back and forth, by handle";
    W4b = "W4b" "round trip, 1,000 pairs", 1_000_000 / 50_000 "round trips", SCHEDULERS,
        ["time" "ns" Best(0.5)],
        "1,000 pairs send a number back and forth at once";
    W4pid = "W4pid" "round trip by PID", 1_000_000 / 20_000 "round trips", &[Ganger, Erlang],
        ["time" "ns"],
        "A pair sends a number back and forth, by PID";
    W4t = "W4t" "round trip, typed messages", 1_000_000 / 20_000 "round trips", TYPED,
        ["time" "ns" Best(0.5)],
        "As W4, with an enum of 40 bytes as the message";
    W5 = "W5" "a hop in a ring, one token", 1_000_000 / 50_000 "hops", SCHEDULERS,
        ["time" "ns" Best(0.5)],
        "One token goes round a ring of 10,000 processes";
    W5b = "W5b" "a hop in a ring, 100 tokens", 1_000_000 / 50_000 "hops", SCHEDULERS,
        ["time" "ns" Best(0.9)],
        "100 tokens go round a ring of 10,000 processes";
    W5bt = "W5bt" "a hop in a ring, typed messages", 1_000_000 / 50_000 "hops", TYPED,
        ["time" "ns" Best(0.7)],
        "As W5b, with an enum of 40 bytes as the message";
    W6 = "W6" "100 processes send to one", 1_000_000 / 50_000 "messages", SCHEDULERS,
        ["time" "ns" Best(0.95), Of(Tokio, 0.15)],
        "100 producers send all that they have, in one go, to one consumer";
    W6all = "W6all" "100 send to one, a call each", 1_000_000 / 50_000 "messages", &[Ganger],
        ["time" "ns"],
        "As W6, and each producer sends all that it has by one call";
    W6t = "W6t" "100 send to one, typed messages", 1_000_000 / 50_000 "messages", TYPED,
        ["time" "ns" Best(0.8)],
        "As W6, with an enum of 40 bytes as the message";
    W7 = "W7" "one process sends to 1,000", 1_000_000 / 50_000 "messages", SCHEDULERS,
        ["time" "ns" Best(1.0), Of(Tokio, 0.33)],
        "One sender sends in turn to each of 1,000 receivers, which acknowledge their last";
    W7t = "W7t" "one sends to 1,000, typed messages", 1_000_000 / 50_000 "messages", TYPED,
        ["time" "ns" Best(0.8)],
        "As W7, with an enum of 40 bytes as the message";
    W8 = "W8" "an idle process", 1_000_000 / 20_000 "processes", SCHEDULERS,
        ["rss" "bytes" Best(0.25); "spawn" "ns" Best(0.34); "wake" "ns" Best(0.48)],
        "Processes that ran once and wait, then get a message each, which ends them";
    W9 = "W9" "a command", 1_000_000 / 50_000 "commands", TYPED,
        ["time" "ns" Best(0.44)],
        "One process has commands carried out in sequence; the handler completes at once";
    W9ask = "W9ask" "a command by another process", 1_000_000 / 50_000 "commands", SCHEDULERS,
        ["time" "ns" Best(0.56)],
        "One process has commands carried out in sequence; another process answers";
    W10 = "W10" "waking an idle scheduler", 2_000 / 200 "samples", SCHEDULERS,
        [
            "p50" "us" Best(0.95), Of(Tokio, 0.4); "p99" "us" Best(0.95), Of(Tokio, 0.4);
            "switches" "a sample"
        ],
        "All is idle; from a send of the main thread to the process's own look at the clock";
    W10spin = "W10spin" "waking it, the sender computes", 2_000 / 200 "samples", ASYNC,
        ["p50" "us" Of(Tokio, 2.0); "p99" "us" Of(Tokio, 2.0); "switches" "a sample"],
        "As W10, and the main thread goes on computing until the process has looked";
    W10busy = "W10busy" "waking it on a busy machine", 2_000 / 200 "samples", ASYNC,
        ["p50" "us" Of(Tokio, 2.0); "p99" "us" Of(Tokio, 2.0); "switches" "a sample"],
        "As W10, beside a program on each processor that computes all the time";
    W10busyspin = "W10busyspin" "busy machine, the sender computes", 2_000 / 200 "samples", ASYNC,
        ["p50" "us" Of(Tokio, 2.0); "p99" "us" Of(Tokio, 2.0); "switches" "a sample"],
        "As W10busy, and the main thread goes on computing until the process has looked";
    W11 = "W11" "an idle program", 5_000 / 500 "ms", SCHEDULERS,
        ["cpu" "ms/s" Best(0.83); "switches" "a second"],
        "CPU time that 1,000 idle processes take";
    W12 = "W12" "beside steps that block", 5_000 / 1_000 "ms", BLOCKING,
        ["p99" "ms" Best(1.0); "max" "ms" Best(0.8)],
        "As many processes as workers sleep 500 ms in a step, again and again; how late 1,000 \
         others are that are due every ms";
    W12cpu = "W12cpu" "beside steps that compute", 5_000 / 1_000 "ms", BLOCKING,
        ["p99" "ms"; "max" "ms"],
        "As many processes as workers compute for 500 ms in a step, again and again; how late \
         1,000 others are that are due every ms";
    W13 = "W13" "equal shares, most over fewest", 3_000 / 500 "ms", SCHEDULERS,
        ["ratio" "x" Best(1.05)],
        "100 processes work for 1 us and continue: most steps over fewest";
    W13b = "W13b" "woken beside steps of 1 ms", 30 / 4 "rounds", BLOCKING,
        ["p50" "us"; "p99" "us" Of(Tokio, 0.5), Of(Go, 1.0)],
        "7 processes compute 1 ms a step and continue; every 100 ms a step sends to 100 that \
         wait: from the send to the receiver's step";
    W13b10 = "W13b10" "woken beside steps of 10 us", 30 / 4 "rounds", BLOCKING,
        ["p50" "us"; "p99" "us" Of(Tokio, 0.5), Of(Go, 1.0)],
        "As W13b, with steps of 10 us";
    W13c = "W13c" "woken from outside, 1 ms", 300 / 40 "samples", BLOCKING,
        ["p50" "us" Of(Tokio, 1.0); "p99" "us" Of(Tokio, 1.0)],
        "7 processes compute 1 ms a step and continue; every 10 ms a thread that is no worker \
         sends to one that waits: from the send to the receiver's step";
    W13c10 = "W13c10" "woken from outside, 10 us", 300 / 40 "samples", BLOCKING,
        ["p50" "us" Of(Tokio, 1.0); "p99" "us" Of(Tokio, 1.0)],
        "As W13c, with steps of 10 us";
    W13d = "W13d" "woken by a thread's process, 1 ms", 30 / 4 "rounds", TYPED,
        ["p50" "us"; "p99" "us" Of(Tokio, 0.5)],
        "As W13b, where a thread that is no worker wakes the process that sends";
    W13d10 = "W13d10" "woken by a thread's process, 10 us", 30 / 4 "rounds", TYPED,
        ["p50" "us"; "p99" "us" Of(Tokio, 0.5)],
        "As W13d, with steps of 10 us";
    W14 = "W14" "set and cancel a timer", 1_000_000 / 50_000 "timers", TIMERS,
        ["alone" "ns" Of(Tokio, 0.3), Of(Go, 0.15); "crowded" "ns" Of(Tokio, 0.3), Of(Go, 0.15)],
        "A process sets a timer for 1 to 60 s and cancels it, again and again; alone, and beside \
         1,000,000 others that wait";
    W14step = "W14step" "set and cancel, a step between", 1_000_000 / 50_000 "timers", TIMERS,
        ["alone" "ns" Of(Tokio, 0.3), Of(Go, 0.15); "crowded" "ns" Of(Tokio, 0.3), Of(Go, 0.15)],
        "As W14, and the process continues before it cancels";
    W15 = "W15" "a timer fires, within 1 s", 1_000_000 / 20_000 "processes", TIMERS,
        ["cpu" "ns" Of(Tokio, 0.5)],
        "Processes each wait for a timer of their own, all due within a second: processor time \
         each, from the first that is due to the last, with the end of the process";
    W15min = "W15min" "a timer fires, within 60 s", 1_000_000 / 20_000 "processes", TIMERS,
        ["cpu" "ns" Of(Tokio, 0.5)],
        "As W15, due within a minute";
    W16 = "W16" "lateness of timers", 10_000 / 1_000 "ms", TIMERS,
        ["p50" "us"; "p99" "us" Of(Tokio, 0.2), Of(Go, 1.0); "max" "us"],
        "1,000 processes each sleep 1 to 20 ms, again and again, on an idle machine: how late \
         they run";
    W16b = "W16b" "lateness beside steps of 1 ms", 10_000 / 1_000 "ms", TYPED,
        ["p50" "us"; "p99" "us"; "max" "us"],
        "As W16, beside 7 processes that compute 1 ms a step and continue";
    W16b10 = "W16b10" "lateness beside steps of 10 us", 10_000 / 1_000 "ms", TYPED,
        ["p50" "us"; "p99" "us" Just(100.0); "max" "us"],
        "As W16b, with steps of 10 us";
    W16stuck = "W16stuck" "lateness beside blocked steps", 10_000 / 1_000 "ms", TYPED,
        ["p50" "us"; "p99" "us" Best(1.0); "max" "us" Best(0.8)],
        "As W16, while as many processes as workers sleep 500 ms in a step, again and again";
    W17 = "W17" "a timer that waits", 1_000_000 / 20_000 "processes", TIMERS,
        ["rss" "bytes" Just(64.0); "cpu" "ms/s" Best(0.83); "switches" "a second"],
        "Timers that wait for an hour, one a process: bytes each beside those of processes \
         without, and what they take for 5 s";
    A1 = "A1" "start an async function", 1_000_000 / 50_000 "processes", ASYNC,
        ["time" "ns" Of(Tokio, 0.9)],
        "As W1, where processes are async functions";
    A2a = "A2a" "a yield, one task", 1_000_000 / 50_000 "steps", ASYNC,
        ["time" "ns" Of(Tokio, 0.5)],
        "As W3a, where processes are async functions";
    A2b = "A2b" "a yield, 100 tasks", 1_000_000 / 50_000 "steps", ASYNC,
        ["time" "ns" Of(Tokio, 0.5)],
        "As W3b, where processes are async functions";
    A3 = "A3" "round trip, two tasks", 1_000_000 / 20_000 "round trips", ASYNC,
        ["time" "ns" Of(Tokio, 0.5)],
        "As W4, where processes are async functions";
    A4 = "A4" "round trip, 1,000 pairs of tasks", 1_000_000 / 50_000 "round trips", ASYNC,
        ["time" "ns" Of(Tokio, 0.5)],
        "As W4b, where processes are async functions";
    A5 = "A5" "a hop in a ring of tasks", 1_000_000 / 50_000 "hops", ASYNC,
        ["time" "ns" Of(Tokio, 0.5)],
        "As W5b, where processes are async functions";
    A6 = "A6" "100 tasks send to one", 1_000_000 / 50_000 "messages", ASYNC,
        ["time" "ns" Of(Tokio, 0.5)],
        "As W6, where processes are async functions";
    A7 = "A7" "an idle async function", 1_000_000 / 20_000 "processes", ASYNC,
        [
            "rss" "bytes" Just(350.0), Of(Tokio, 0.5); "spawn" "ns" Of(Tokio, 0.9);
            "wake" "ns" Of(Tokio, 0.5)
        ],
        "As W8, where processes are async functions";
    A8 = "A8" "a command by another task", 1_000_000 / 50_000 "commands", ASYNC,
        ["time" "ns" Of(Tokio, 0.5)],
        "As W9ask, where processes are async functions";
    A9 = "A9" "a question to another task", 1_000_000 / 50_000 "calls", ASYNC,
        ["time" "ns" Of(Tokio, 0.5)],
        "As S1, where processes are async functions";
    A10 = "A10" "a sleep that is given up", 1_000_000 / 50_000 "timers", ASYNC,
        ["alone" "ns" Of(Tokio, 0.7); "crowded" "ns" Of(Tokio, 0.7)],
        "As W14, where processes are async functions, and the timer is a sleep that is given up";
    A10step = "A10step" "the same after a yield", 1_000_000 / 50_000 "timers", ASYNC,
        ["alone" "ns" Of(Tokio, 0.7); "crowded" "ns" Of(Tokio, 0.7)],
        "As A10, and the task gives way before it gives the sleep up";
    A11 = "A11" "a sleep ends, within 1 s", 1_000_000 / 20_000 "processes", ASYNC,
        ["cpu" "ns" Of(Tokio, 0.8)],
        "As W15, where processes are async functions";
    S1 = "S1" "a question to an actor", 1_000_000 / 50_000 "calls", SCHEDULERS,
        ["time" "ns" Best(0.5)],
        "A process asks another one in sequence, by its typed address";
    S1out = "S1out" "a question from outside", 100_000 / 5_000 "calls", OUTSIDE,
        ["time" "ns" Best(1.0)],
        "The main thread asks a process in sequence, and waits for each answer";
    S2 = "S2" "start and monitor a process", 1_000_000 / 50_000 "processes", MONITORS,
        ["time" "ns" Of(Erlang, 0.5)],
        "A process spawns others, which end at once, and is told of each end";
    S3 = "S3" "a crash, and a new process", 500_000 / 20_000 "restarts",
        &[Ganger, Tokio, Ractor, Kameo, Erlang],
        // tokio has no supervisor: its task is the lower bound of the cost.
        ["time" "ns" Of(Ractor, 0.3), Of(Kameo, 0.3), Of(Erlang, 0.3)],
        "A process fails in its first step, and another one is started, again and again";
    S3in = "S3in" "a restart in place", 500_000 / 20_000 "restarts", &[Ganger, Kameo],
        ["time" "ns" Best(0.3)],
        "As S3, where each has the PID and the mailbox of the one before it";
    S4 = "S4" "a broadcast to 1,000", 1_000_000 / 50_000 "messages", MONITORS,
        ["time" "ns" Best(0.5)],
        "A process broadcasts numbers to a group of 1,000";
    S4each = "S4each" "a broadcast, a channel each", 1_000_000 / 50_000 "messages", ASYNC,
        ["time" "ns" Best(1.0)],
        "As S4, where a peer has a channel for each member";
    S5 = "S5" "a job of a pool", 1_000_000 / 50_000 "jobs", POOLS,
        ["time" "ns" Best(0.7)],
        "100 callers have jobs done, each after the one before, of which 4 are done at a time";
    S5us = "S5us" "a job of 1 us of a pool", 1_000_000 / 50_000 "jobs", POOLS,
        ["time" "ns" Best(0.7)],
        "As S5, where a job computes for 1 us";
    Q2 = "Q2" "8 threads send to one process", 800_000 / 40_000 "messages", &[Ganger],
        ["unlimited" "ns"; "limited" "ns" OursIn("unlimited", 2.0)],
        "8 threads send numbers to a process without a limit, and to one that 1,024 messages \
         fill, for which they wait";
    X1 = "X1" "round trip to another program", 10_000 / 500 "round trips", REMOTE,
        [
            "p50" "us" Of(Tcp, 1.5), Of(Erlang, 1.5), Of(RactorCluster, 0.4), Of(KameoRemote, 1.0);
            "p99" "us"; "p50, TLS" "us" OursIn("p50", 1.3); "p99, TLS" "us";
            "p50, own sockets" "us"; "p99, own sockets" "us"
        ],
        "64 bytes go to a process of another program and back; over TLS, and where the scheduler \
         has sockets of its own, too";
    X2 = "X2" "to another program, 64 bytes", 1_000_000 / 20_000 "messages", REMOTE,
        ["time" "ns" Of(Erlang, 0.2), Of(Tcp, 4.0)],
        "A process sends messages of 64 bytes to a process of another program";
    X3 = "X3" "to another program, 1 KiB", 200_000 / 5_000 "messages", REMOTE,
        ["time" "ns" Of(Erlang, 0.5), Of(Tcp, 4.0); "time, TLS" "ns" OursIn("time", 2.0)],
        "As X2, with 1,024 bytes; over TLS, too";
    X4 = "X4" "to another program, 100 pairs", 1_000_000 / 20_000 "messages", REMOTE_PAIRS,
        ["time" "ns" Of(Erlang, 0.2), Of(Tcp, 4.0)],
        "As X2, with 100 pairs of processes at once";
    X5 = "X5" "a broadcast to 3 programs", 1_000 / 20 "broadcasts", &[Ganger],
        ["time" "us"; "frames" "frames" Just(1.0)],
        "A process broadcasts 64 bytes to a group with 500 members at each of 2 other programs, \
         until all have them; and the frames for each program";
    X6 = "X6" "one way at half of the speed", 1_000_000 / 20_000 "messages", &[Ganger, Tcp],
        ["p50" "us"; "p99" "us" Just(1000.0)],
        "As X2, at half of the speed: from the send to the receiver's step";
    X7 = "X7" "beside a stopped program", 2_000 / 200 "ms", &[Ganger],
        // The queue, the window, and a MiB.
        ["rss" "MiB" Just(6.0)],
        "A process sends 1,024 bytes to another program that is stopped, until all queues are \
         full: how much memory that takes";
    X8 = "X8" "monitors of another program", 100_000 / 2_000 "processes", &[Ganger, Erlang],
        ["set up" "ms" Just(300.0); "all die" "ms" Just(300.0); "session ends" "ms" Just(300.0)],
        "A process monitors processes of another program: until all monitors are there, from the \
         order to end until the last notice, and after the end of the session";
    X9 = "X9" "another program fails", 1 / 1 "monitors", &[Ganger, Erlang],
        // A node is taken for dead after 7 s.
        ["crash" "ms" Just(400.0); "hang" "ms" Just(7500.0)],
        "Another program is killed, or stops: until a monitor of its process says so";
    X10 = "X10" "a scheduler in a cluster", 1_000_000 / 20_000 "messages", &[Ganger],
        [
            "round trip, alone" "ns"; "round trip" "ns" OursIn("round trip, alone", 1.05);
            "fan in, alone" "ns"; "fan in" "ns" OursIn("fan in, alone", 1.05);
            "cpu" "ms/s" Just(1.0)
        ],
        "W4 and W6 in a scheduler by itself, and as a node; and the processor time of each of 3 \
         idle nodes";
    X16 = "X16" "a strong name", 1_000 / 50 "names", &[Ganger],
        ["round trip, p50" "us"; "p50" "us" OursIn("round trip, p50", 2.0); "p99" "us"],
        "A process takes strong names, one after the other, of a registrar at another node, \
         which writes each to its disk; beside a round trip";
    // A run of queues measures further figures: how often thieves succeed, an owner's wall-clock
    // time, and figures that repeat another. The report shows them; they do not count. The targets
    // of `push+pop` are with light fences, which Linux has.
    Deque = "deque" "work-stealing deques", 1 / 1 "repetitions", &[Ganger, CrossbeamDeque, St3],
        [
            "push+pop, depth 1" "ns" Of(CrossbeamDeque, 0.35), Of(St3, 0.45);
            "push+pop, depth 8" "ns" Of(CrossbeamDeque, 0.35), Of(St3, 0.45);
            "push+pop, depth 64" "ns" Of(CrossbeamDeque, 0.35), Of(St3, 0.45);
            "push+pop, depth 256" "ns" Of(CrossbeamDeque, 0.35), Of(St3, 0.45);
            "push+pop, depth 1024" "ns";
            "steal 32 of 64, pushed by the same thread, an item" "ns"
                Of(CrossbeamDeque, 0.15), Of(St3, 1.1);
            "steal 32 of 64, pushed by another core, an item" "ns"
                Of(CrossbeamDeque, 0.15), Of(St3, 1.1);
            "steal from an empty deque" "ns"; "owner, depth 8, 1 thief stealing: CPU ns" "ns";
            "owner, depth 8, 3 thieves stealing: CPU ns" "ns";
            "owner, depth 8, 1 thief looking: CPU ns" "ns";
            "owner, depth 8, 3 thieves looking: CPU ns" "ns";
            "owner, depth 64, 1 thief stealing: CPU ns" "ns";
            "owner, depth 64, 3 thieves stealing: CPU ns" "ns";
            "owner, depth 64, 1 thief looking: CPU ns" "ns";
            "owner, depth 64, 3 thieves looking: CPU ns" "ns";
            "tree of tasks that do nothing: ms" "ms";
            "tree of tasks of 6 multiplications: ms" "ms"; "fib, a task a call: ms" "ms"
        ],
        "Work-stealing deques: push and pop, steal, an owner with thieves, trees of 2^21-1 tasks \
         and fib(32) on two workers; quick 2^13-1 and fib(18)";
    // A `Queue` with a message is a node on the heap: 16 or 64 bytes, and a part of a slab.
    Mailbox = "mailbox" "queues to one thread", 1 / 1 "repetitions",
        &[Ganger, Std, CrossbeamChannel, Flume, Kanal, Tokio, AsyncChannel, ConcurrentQueue,
            CrossbeamQueue],
        [
            "heap, u64: bytes with one message" "bytes";
            "heap, u64 (Queue): bytes with one message" "bytes" Just(16.8);
            "heap, u64: allocations in a million messages" "" Just(0.0);
            "one thread, bursts of 100, u64" "ns" Best(0.7);
            "take 64 that wait, an item, u64" "ns";
            "take 64 that wait, an item, u64 (drain)" "ns"
                BestIn("take 64 that wait, an item, u64", 0.4);
            "2 producers, polling, u64" "ns" Best(0.8); "4 producers, polling, u64" "ns" Best(0.8);
            "2 producers, groups of 16, u64: producers' CPU ns" "ns"
                OursIn("2 producers, groups of 16, u64 (one by one): producers' CPU ns", 0.33);
            "2 producers, groups of 16, u64 (one by one): producers' CPU ns" "ns";
            "1 producer, blocking, u64" "ns"; "heap, 48 bytes: bytes with one message" "bytes";
            "heap, 48 bytes (Queue): bytes with one message" "bytes" Just(67.2);
            "heap, 48 bytes: allocations in a million messages" "" Just(0.0);
            "one thread, bursts of 100, 48 bytes" "ns" Best(0.7);
            "take 64 that wait, an item, 48 bytes" "ns";
            "take 64 that wait, an item, 48 bytes (drain)" "ns"
                BestIn("take 64 that wait, an item, 48 bytes", 0.4);
            "2 producers, polling, 48 bytes" "ns" Best(0.8);
            "4 producers, polling, 48 bytes" "ns" Best(0.8);
            "2 producers, groups of 16, 48 bytes: producers' CPU ns" "ns"
                OursIn("2 producers, groups of 16, 48 bytes (one by one): producers' CPU ns", 0.33);
            "2 producers, groups of 16, 48 bytes (one by one): producers' CPU ns" "ns";
            "1 producer, blocking, 48 bytes" "ns";
            "bounded 16, 1 producer, strings" "ns" Best(1.0);
            "bounded 16, 2 producers, strings" "ns" Best(1.0);
            "bounded 16, 8 producers, strings" "ns" Best(1.0);
            "bounded 1024, 1 producer, strings" "ns" Best(1.0);
            "bounded 1024, 2 producers, strings" "ns" Best(1.0);
            "bounded 1024, 8 producers, strings" "ns" Best(1.0);
            "bounded 16384, 1 producer, strings" "ns" Best(1.0);
            "bounded 16384, 2 producers, strings" "ns" Best(1.0);
            "bounded 16384, 8 producers, strings" "ns" Best(1.0)
        ],
        "Queues from many threads to one: what is on the heap, one thread, taking what waits, \
         several producers, many items at once, a consumer that sleeps";
}
