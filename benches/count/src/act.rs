//! The acts, and the numbers of their rounds.

/// The acts: a name on the command line and in figures, and a description for people.
macro_rules! acts {
    ($($act:ident $name:literal $what:literal;)+) => {
        /// An act for Ganger to repeat.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Act {
            $(#[doc = $what] $act,)+
        }

        impl Act {
            /// All of them.
            pub(crate) const ALL: &[Self] = &[$(Self::$act,)+];

            /// Returns the name on the command line and in figures.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$act => $name,)+
                }
            }

            /// Returns the description, for people.
            pub(crate) fn what(self) -> &'static str {
                match self {
                    $(Self::$act => $what,)+
                }
            }
        }
    };
}

acts! {
    Step "step" "a process continues: a step";
    Send "send" "a send that wakes an idle process, and the step in which it sends the next";
    SendBlocked "send-blocked" "the same, where the processes have commands outstanding";
    SendPid "send-pid" "the same as `send`, by PID";
    SendReady "send-ready" "a send to a process that is queued, 63 times of 64, and its receipt";
    SendPidReady "send-pid-ready" "the same as `send-ready`, by PID";
    SendRunning "send-running"
        "a send of a process to itself, which runs, and the step in which it sends the next";
    SendPidRunning "send-pid-running" "the same as `send-running`, by PID";
    Spawn "spawn" "a process submits another, which runs once and ends";
    SpawnOutside "spawn-outside"
        "a thread that is no worker submits a process, which runs once and ends";
    Command "command" "a command, its handler, the completion, and the step that takes it";
    Ask "ask"
        "a command, a message to another process, the answer in its step, and the step that \
         takes it";
    Call "call" "a question of an actor to another, with both steps";
    CallTasks "call-tasks" "a question of a task to another, with both steps";
    Typed "typed" "a message of one type that wakes an actor, and its step";
    TypedTasks "typed-tasks" "a message of one type that wakes a task, and its step";
    Yield "yield" "a task yields and goes on";
    Channel0 "channel-0" "a value from task to task, by a channel without room";
    Channel1 "channel-1" "a value from task to task, by a channel with room for one";
    Channel1024 "channel-1024" "a value from task to task, by a channel with room for 1,024";
    MutexFree "mutex-free" "a task locks and unlocks a mutex that is free";
    Mutex "mutex" "a turn of two tasks, each of which keeps the mutex over a step";
    Timer "timer" "a timer is set and cancelled, 128 in a step";
    TimerStep "timer-step" "a step begins a sleep and cancels that of the step before";
    Socket "socket" "64 bytes over a TCP connection and back, both ends tasks";
    Deque "deque" "a push and a pop of a deque that has up to 8 items";
    Mailbox "mailbox" "a send to a mailbox and its receipt";
}

impl Act {
    /// Returns the act with a name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|act| act.name() == name)
    }

    /// Returns the two numbers of rounds, few and many: the difference is the count, without start
    /// and end, whose noise it must drown.
    pub(crate) fn rounds(self) -> [u64; 2] {
        match self.is_scheduled() {
            true => [2_048, 12_288],
            false => [20_480, 122_880],
        }
    }

    /// Returns whether the scheduler does the act, and not a queue alone.
    pub(crate) fn is_scheduled(self) -> bool {
        !matches!(self, Self::Deque | Self::Mailbox)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{one_worker, spawning, stream, timers};

    /// Returns the number of rounds until the same round comes again.
    fn period(act: Act) -> u64 {
        match act {
            Act::SendReady | Act::SendPidReady => stream::BATCH,
            Act::SpawnOutside => spawning::AT_ONCE,
            Act::Deque => one_worker::DEPTH,
            Act::Channel1024 => one_worker::ROOM as u64,
            Act::Channel1 | Act::Mutex => 2,
            Act::Timer => timers::BATCH,
            _ => 1,
        }
    }

    #[test]
    fn names_tell_acts_apart() {
        for &act in Act::ALL {
            assert_eq!(Act::named(act.name()), Some(act));
            for rounds in act.rounds() {
                assert_eq!(rounds % period(act), 0, "{act:?}");
            }
        }
        assert_eq!(Act::named("sleep"), None);
    }
}
