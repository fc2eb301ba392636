//! A peer's code for each workload; `measure` decides the repetitions, times them, and checks the
//! result.

use super::bell::Bell;
use super::board::Board;
use super::job::Error;
use super::timed::{Due, Naps};
use super::turns::{Race, Stuck};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

/// A time from the first act until the gate has opened.
pub(super) type Timed = Result<Duration, Error>;

/// Sends a number to its processes.
pub(super) type Deliver = Box<dyn FnMut(u64) + Send>;

/// What a process does with a number; whether that was the last.
pub(super) type Heard = Box<dyn Fn(u64) -> bool + Send + Sync>;

/// Returns the error of a failed run, with this reason.
pub(super) fn failed(error: impl Display) -> Error {
    Error::Failed(error.to_string())
}

fn untyped() -> Error {
    Error::Missing("it is not measured with an enum of 40 bytes as the message".to_owned())
}

fn unmeasured() -> Error {
    Error::Missing("it is not measured with async functions".to_owned())
}

fn timeless() -> Error {
    Error::Missing("its timers are tokio's".to_owned())
}

/// A peer, set up, with its workers running. Calls come from a single thread, which is no worker,
/// in sequence; each leaves no process behind. The setup before the clock starts is named.
///
/// Processes hit the peer's gate. If a hit "brings" a number, the sum is checked; a process that
/// sees something wrong panics, which ends the program.
///
/// All fail when the peer refuses something, gets stuck, or has nothing of the kind.
#[expect(
    clippy::missing_errors_doc,
    reason = "the same for all, and said above"
)]
pub trait Contestant {
    /// Processes that wait for a message which ends them.
    type Crowd;

    /// W1: starts `processes` processes from here. Each runs once, hits the gate, and ends.
    fn spawn(&self, processes: u64) -> Timed;

    /// W2: ten children a process, down to `levels` levels below the first. Leaves, numbered from
    /// 0, send their number to their parent, parents the sum; the first brings it to the gate.
    fn skynet(&self, levels: u32) -> Timed {
        let _ = levels;
        Err(unmeasured())
    }

    /// W3: `processes` processes continue `each` times, and hit the gate.
    fn yields(&self, processes: u64, each: u64) -> Timed;

    /// W4: `pairs` pairs, set up, count a number down in turns by handle: `round_trips` round trips
    /// each. Both halves hit the gate.
    fn ping_pong(&self, pairs: u64, round_trips: u64) -> Timed;

    /// W4 by PID.
    fn ping_pong_by_pid(&self, pairs: u64, round_trips: u64) -> Timed {
        let _ = (pairs, round_trips);
        let why = "it sends by handle: processes have no PIDs to send to";
        Err(Error::Missing(why.to_owned()))
    }

    /// W5: a ring of `members`, set up. Each of the tokens, which start evenly spread, goes `hops`
    /// hops; then it hits the gate.
    fn ring(&self, members: u64, tokens: u64, hops: u64) -> Timed;

    /// W6: `producers` producers, whose start the clock sees, send the numbers below `messages`
    /// each, without a pause, to a consumer that is set up. The consumer brings the sum to the
    /// gate.
    fn fan_in(&self, producers: u64, messages: u64) -> Timed;

    /// W6 with a single call for all messages of a producer.
    fn fan_in_all(&self, producers: u64, messages: u64) -> Timed {
        let _ = (producers, messages);
        let why = "it has no call that sends many messages";
        Err(Error::Missing(why.to_owned()))
    }

    /// Q2: `threads` threads, whose start the clock sees, send the numbers below `messages` each to
    /// a consumer that is set up, and wait while its mailbox has `limit` messages. The consumer
    /// brings the sum to the gate.
    fn send_blocking(&self, threads: u64, messages: u64, limit: Option<usize>) -> Timed {
        let _ = (threads, messages, limit);
        let why = "only Ganger runs it, beside itself without a limit";
        Err(Error::Missing(why.to_owned()))
    }

    /// W7: a sender, whose start the clock sees, sends each of the numbers below `messages` to all
    /// receivers, which are set up. Each brings its sum to the gate.
    fn fan_out(&self, receivers: u64, messages: u64) -> Timed {
        let _ = (receivers, messages);
        Err(unmeasured())
    }

    /// W4t: as [`ping_pong`](Self::ping_pong), with an enum of 40 bytes as the message.
    fn typed_ping_pong(&self, pairs: u64, round_trips: u64) -> Timed {
        let _ = (pairs, round_trips);
        Err(untyped())
    }

    /// W5bt: as [`ring`](Self::ring), with an enum of 40 bytes as the message.
    fn typed_ring(&self, members: u64, tokens: u64, hops: u64) -> Timed {
        let _ = (members, tokens, hops);
        Err(untyped())
    }

    /// W6t: as [`fan_in`](Self::fan_in), with an enum of 40 bytes as the message.
    fn typed_fan_in(&self, producers: u64, messages: u64) -> Timed {
        let _ = (producers, messages);
        Err(untyped())
    }

    /// W7t: as [`fan_out`](Self::fan_out), with an enum of 40 bytes as the message.
    fn typed_fan_out(&self, receivers: u64, messages: u64) -> Timed {
        let _ = (receivers, messages);
        Err(untyped())
    }

    /// W8, W11: starts `processes` processes from here. Each hits the gate, and waits.
    fn crowd(&self, processes: u64) -> Result<(Duration, Self::Crowd), Error>;

    /// W8: sends each of them a message, from here, upon which it hits the gate and ends.
    fn wake(&self, crowd: Self::Crowd) -> Timed;

    /// W9: a process yields `commands` commands in sequence to a handler that completes each at
    /// once with its number: `commands` down to 1. The process brings the sum to the gate.
    fn command_inline(&self, commands: u64) -> Timed {
        let _ = commands;
        let why = "it has no commands with handlers: requests go to another process, as in W9ask";
        Err(Error::Missing(why.to_owned()))
    }

    /// W9: the same, where another process, set up, answers.
    fn command_asked(&self, commands: u64) -> Timed;

    /// S1: a process asks another process, set up, for the numbers from `calls` down to 1, each
    /// after the answer to the number before. It brings the sum to the gate.
    fn call(&self, calls: u64) -> Timed {
        self.command_asked(calls)
    }

    /// S1out: the same, where this thread asks, and waits.
    fn call_from_outside(&self, calls: u64) -> Timed {
        let _ = calls;
        let why = "it is not measured with calls of threads outside";
        Err(Error::Missing(why.to_owned()))
    }

    /// S2: a process, whose start the clock sees, starts `processes` others, which end at once. It
    /// brings the number of notices of their ends to the gate.
    fn spawn_monitored(&self, processes: u64) -> Timed {
        let _ = processes;
        let why = "no process is told of the ends of those that it starts";
        Err(Error::Missing(why.to_owned()))
    }

    /// S3: a process fails in its first step, and another is started in its place, `restarts`
    /// times. The last process does not fail, and brings the number of restarts to the gate.
    fn restart(&self, restarts: u64) -> Timed {
        let _ = restarts;
        let why = "it is not measured with processes that are started again";
        Err(Error::Missing(why.to_owned()))
    }

    /// S3in: the same, but the next process has the identity and the mailbox of the process before.
    fn restart_in_place(&self, restarts: u64) -> Timed {
        let _ = restarts;
        let why = "a process that has failed is gone";
        Err(Error::Missing(why.to_owned()))
    }

    /// S5: `callers` callers, whose start the clock sees, have jobs done with the numbers from
    /// `jobs` down to 1, each after the answer to the job before. At most `jobs::POOL` jobs are
    /// done at a time. The answer is the number. A caller brings the sum to the gate.
    fn pool(&self, callers: u64, jobs: u64, length: Duration) -> Timed {
        let _ = (callers, jobs, length);
        let why = "it is not measured with jobs";
        Err(Error::Missing(why.to_owned()))
    }

    /// S4: as [`fan_out`](Self::fan_out), but the receivers are members of a group, and each number
    /// takes a single call.
    fn broadcast(&self, members: u64, messages: u64) -> Timed {
        let _ = (members, messages);
        let why = "it has no groups that are sent to by one call";
        Err(Error::Missing(why.to_owned()))
    }

    /// S4each: as [`broadcast`](Self::broadcast), where each member has a mailbox of its own.
    fn broadcast_each(&self, members: u64, messages: u64) -> Timed {
        self.broadcast(members, messages)
    }

    /// W10: a process that strikes the bell with each received number, and ends when the bell says
    /// that the number was the last.
    fn sleeper(&self, bell: &'static Bell) -> Result<Deliver, Error> {
        let _ = bell;
        Err(unmeasured())
    }

    /// W12, W13b, W13c: as many processes as the board has rows, which note each received tick
    /// there. At the tick `LAST` they hit the gate and end. The result sends a tick to all of them,
    /// from any thread.
    fn due(&self, board: &Arc<Board>) -> Result<Deliver, Error> {
        let _ = board;
        Err(unmeasured())
    }

    /// W13d: a process that calls `heard` with each received number, hits the gate and ends when
    /// the answer is `true`. The result sends it a number, from any thread.
    fn herald(&self, heard: Heard) -> Result<Deliver, Error> {
        drop(heard);
        Err(unmeasured())
    }

    /// W12: how many threads run processes.
    fn workers(&self) -> usize;

    /// W12, W13b, W13c: starts `processes` processes that block and continue until `stuck` is over;
    /// then they hit the gate and end.
    fn block(&self, stuck: &'static Stuck, processes: u64) -> Result<(), Error> {
        let _ = (stuck, processes);
        Err(unmeasured())
    }

    /// W13: starts `processes` processes that run a lap and continue until the race is over; then
    /// they hand in their number of laps, hit the gate and end.
    fn race(&self, race: &'static Race, processes: u64) -> Result<(), Error> {
        let _ = (race, processes);
        Err(unmeasured())
    }

    /// W14: a process sets a timer for `churn_time` of its number and cancels it, so often; with
    /// `has_step` it continues before it cancels. Then it hits the gate.
    fn timer_churn(&self, rounds: u64, has_step: bool) -> Timed {
        let _ = (rounds, has_step);
        Err(timeless())
    }

    /// W14, W15, W17: as [`crowd`](Self::crowd), but each sets a timer before it waits, which hits
    /// the gate and ends it as a message does.
    fn timed_crowd(&self, processes: u64, due: Due) -> Result<(Duration, Self::Crowd), Error> {
        let _ = (processes, due);
        Err(timeless())
    }

    /// W16: starts `processes` processes that sleep again and again for the times of `naps`, until
    /// `naps` is over; then they hit the gate and end.
    fn nap(&self, naps: &'static Naps, processes: u64) -> Result<(), Error> {
        let _ = (naps, processes);
        Err(timeless())
    }
}
