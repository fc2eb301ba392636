//! The acts, and the numbers of their rounds.

use crate::{one_worker, spawning, stream, timers};

/// An act that Ganger repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A process continues.
    Step,
    /// A send by address to an idle process, and its step.
    Send,
    /// A send by address to a process with a command outstanding, and its step.
    SendBlocked,
    /// A send by PID to an idle process, and its step.
    SendPid,
    /// A send by address to a process that is queued already, and the receipt.
    SendReady,
    /// The same, by PID.
    SendPidReady,
    /// A send by address to the process that is running, and its next step.
    SendRunning,
    /// The same, by PID.
    SendPidRunning,
    /// A process submits another, which runs once and ends.
    Spawn,
    /// A submit from a thread that is no worker; the process runs once and ends.
    SpawnOutside,
    /// A command whose handler answers at once.
    Command,
    /// A command that another process answers.
    Ask,
    /// A question of an actor to another, and the answer.
    Call,
    /// A question of a task to another, and the answer.
    CallTasks,
    /// A send of a message of one type to an idle actor, and its step.
    Typed,
    /// The same to a task.
    TypedTasks,
    /// A task yields.
    Yield,
    /// A value of a channel without room.
    Channel0,
    /// A value of a channel with room for one.
    Channel1,
    /// A value of a channel with room for many.
    Channel1024,
    /// A turn of a mutex that is free.
    MutexFree,
    /// A turn of a mutex that another task has.
    Mutex,
    /// A timer is set and cancelled.
    Timer,
    /// A sleep begins in a step, and is cancelled in the next.
    TimerStep,
    /// A request over a socket, and its answer.
    Socket,
    /// A push and a pop of a deque.
    Deque,
    /// A send to a mailbox and its receipt.
    Mailbox,
}

impl Act {
    /// All of them.
    pub const ALL: [Self; 27] = [
        Self::Step,
        Self::Send,
        Self::SendBlocked,
        Self::SendPid,
        Self::SendReady,
        Self::SendPidReady,
        Self::SendRunning,
        Self::SendPidRunning,
        Self::Spawn,
        Self::SpawnOutside,
        Self::Command,
        Self::Ask,
        Self::Call,
        Self::CallTasks,
        Self::Typed,
        Self::TypedTasks,
        Self::Yield,
        Self::Channel0,
        Self::Channel1,
        Self::Channel1024,
        Self::MutexFree,
        Self::Mutex,
        Self::Timer,
        Self::TimerStep,
        Self::Socket,
        Self::Deque,
        Self::Mailbox,
    ];

    /// Returns the act with a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|act| act.name() == name)
    }

    /// The name on the command line and in figures.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Send => "send",
            Self::SendBlocked => "send-blocked",
            Self::SendPid => "send-pid",
            Self::SendReady => "send-ready",
            Self::SendPidReady => "send-pid-ready",
            Self::SendRunning => "send-running",
            Self::SendPidRunning => "send-pid-running",
            Self::Spawn => "spawn",
            Self::SpawnOutside => "spawn-outside",
            Self::Command => "command",
            Self::Ask => "ask",
            Self::Call => "call",
            Self::CallTasks => "call-tasks",
            Self::Typed => "typed",
            Self::TypedTasks => "typed-tasks",
            Self::Yield => "yield",
            Self::Channel0 => "channel-0",
            Self::Channel1 => "channel-1",
            Self::Channel1024 => "channel-1024",
            Self::MutexFree => "mutex-free",
            Self::Mutex => "mutex",
            Self::Timer => "timer",
            Self::TimerStep => "timer-step",
            Self::Socket => "socket",
            Self::Deque => "deque",
            Self::Mailbox => "mailbox",
        }
    }

    /// Its description, for people.
    #[must_use]
    pub fn what(self) -> &'static str {
        match self {
            Self::Step => "a process continues: a step",
            Self::Send => {
                "a send that wakes an idle process, and the step in which it sends the next"
            }
            Self::SendBlocked => "the same, where the processes have commands outstanding",
            Self::SendPid => "the same as `send`, by PID",
            Self::SendReady => {
                "a send to a process that is queued, 63 times of 64, and its receipt"
            }
            Self::SendPidReady => "the same as `send-ready`, by PID",
            Self::SendRunning => {
                "a send of a process to itself, which runs, and the step in which it sends the next"
            }
            Self::SendPidRunning => "the same as `send-running`, by PID",
            Self::Spawn => "a process submits another, which runs once and ends",
            Self::SpawnOutside => {
                "a thread that is no worker submits a process, which runs once and ends"
            }
            Self::Command => "a command, its handler, the completion, and the step that takes it",
            Self::Ask => {
                "a command, a message to another process, the answer in its step, and the step \
                 that takes it"
            }
            Self::Call => "a question of an actor to another, with both steps",
            Self::CallTasks => "a question of a task to another, with both steps",
            Self::Typed => "a message of one type that wakes an actor, and its step",
            Self::TypedTasks => "a message of one type that wakes a task, and its step",
            Self::Yield => "a task yields and goes on",
            Self::Channel0 => "a value from task to task, by a channel without room",
            Self::Channel1 => "a value from task to task, by a channel with room for one",
            Self::Channel1024 => "a value from task to task, by a channel with room for 1,024",
            Self::MutexFree => "a task locks and unlocks a mutex that is free",
            Self::Mutex => "a turn of two tasks, each of which keeps the mutex over a step",
            Self::Timer => "a timer is set and cancelled, 128 in a step",
            Self::TimerStep => "a step begins a sleep and cancels that of the step before",
            Self::Socket => "64 bytes over a TCP connection and back, both ends tasks",
            Self::Deque => "a push and a pop of a deque that has up to 8 items",
            Self::Mailbox => "a send to a mailbox and its receipt",
        }
    }

    /// Returns the two numbers of rounds, few and many: the difference is the count, without start
    /// and end, whose noise it must drown.
    #[must_use]
    pub fn rounds(self) -> [u64; 2] {
        match self.is_scheduled() {
            true => [2_048, 12_288],
            false => [20_480, 122_880],
        }
    }

    /// Returns the number of rounds after which the same round comes again. Both numbers of
    /// [`rounds`](Self::rounds) are multiples of the period.
    #[must_use]
    pub fn period(self) -> u64 {
        match self {
            Self::SendReady | Self::SendPidReady => stream::BATCH,
            Self::SpawnOutside => spawning::AT_ONCE,
            Self::Deque => one_worker::DEPTH,
            Self::Channel1024 => one_worker::ROOM as u64,
            Self::Channel1 | Self::Mutex => 2,
            Self::Timer => timers::BATCH,
            _ => 1,
        }
    }

    /// Returns whether the scheduler does the act, and not a queue alone.
    #[must_use]
    pub fn is_scheduled(self) -> bool {
        !matches!(self, Self::Deque | Self::Mailbox)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_acts_apart() {
        for act in Act::ALL {
            assert_eq!(Act::named(act.name()), Some(act));
            assert!(!act.what().is_empty(), "{act:?}");
            for rounds in act.rounds() {
                assert_eq!(rounds % act.period(), 0, "{act:?}");
            }
        }
        assert_eq!(Act::named("sleep"), None);
    }
}
