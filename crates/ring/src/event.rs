//! The recorded events of the scheduler, in four words each.
//!
//! | word | bits | what |
//! |---|---|---|
//! | 0 | 64 | the time, in nanoseconds since the scheduler's start |
//! | 1 | 0 to 7 | the kind of the event |
//! | 1 | 8 to 31 | a detail: a code, a worker, or the low bits of a number |
//! | 1 | 32 to 63 | a name, as the number that the recorder's table gave it; 0 for none |
//! | 2 | 64 | the process, as the id in its PID; 0 for none |
//! | 3 | 64 | an argument: another process, a count, a tag or a value |
//!
//! A kind keeps its number for ever, and so does a code: a reader of an older version meets new
//! numbers, and says so ([`Unknown`]). A change of the layout is another [`VERSION`].
//!
//! ```
//! use ganger_ring::event::{Event, Pick};
//!
//! let begins = Event::TurnBegins { process: 42, name: 7, pick: Pick::Stolen };
//! let record = begins.record(1_000);
//! assert_eq!(Event::read(record), Ok((1_000, begins)));
//! ```

use std::fmt;

/// The number of words of a record.
pub const WORDS: usize = 4;

/// An event with its time, as the ring keeps it.
pub type Record = [u64; WORDS];

/// The version of the layout and of the kinds.
pub const VERSION: u32 = 1;

/// The bits of a token or key in a record: enough to tell apart all that are underway at a time.
pub const KEY_MASK: u32 = (1 << DETAIL_BITS) - 1;

const KIND_BITS: u32 = 8;
const DETAIL_BITS: u32 = 24;
const NAME_SHIFT: u32 = KIND_BITS + DETAIL_BITS;

/// Defines an enum whose variants have a text, and a number for ever.
macro_rules! codes {
    ($(
        $(#[$doc:meta])* $name:ident {
            $($(#[$of:meta])* $variant:ident = $code:literal, $text:literal;)+
        }
    )+) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
            #[repr(u8)]
            pub enum $name { $($(#[$of])* $variant = $code,)+ }

            impl $name {
                /// All of them, in the order of their numbers.
                pub const ALL: &[Self] = &[$(Self::$variant),+];

                /// Returns a word or two for people.
                #[must_use]
                pub const fn text(self) -> &'static str {
                    match self { $(Self::$variant => $text,)+ }
                }

                fn of(code: u32) -> Option<Self> {
                    match code {
                        $($code => Some(Self::$variant),)+
                        _ => None,
                    }
                }
            }
        )+
    };
}

codes! {
    /// From where a worker has taken a process.
    Pick {
        /// The worker's own deque.
        Local = 0, "own deque";
        /// The global queue.
        Global = 1, "global queue";
        /// The urgent lane.
        Urgent = 2, "urgent lane";
        /// The lane of arrivals, for processes woken by timers.
        Arrival = 3, "lane of arrivals";
        /// Another worker's deque.
        Stolen = 4, "stolen";
        /// No queue: the worker goes on with its process.
        Again = 5, "goes on";
    }

    /// The next state of a process at the end of a turn.
    After {
        /// The process waits for an event.
        Waits = 0, "waits";
        /// The process is queued again.
        Ready = 1, "queued again";
        /// The process has ended.
        Ended = 2, "ended";
    }

    /// Why a waiting process is queued.
    Cause {
        /// A message.
        Message = 0, "message";
        /// The completion of a yield.
        Completion = 1, "completion";
        /// A timer.
        Timer = 2, "timer";
        /// A system event: an exit, a cancellation, an upgrade.
        System = 3, "system event";
        /// A waker.
        Waker = 4, "waker";
        /// An event that came as the process was about to wait.
        Event = 5, "event at the last moment";
    }

    /// How a process has ended.
    End {
        /// By itself, with a result.
        Done = 0, "done";
        /// By an error of a step.
        Failed = 1, "failed";
        /// By a panic.
        Panicked = 2, "panicked";
        /// By a cancellation.
        Cancelled = 3, "cancelled";
        /// By a termination.
        Terminated = 4, "terminated";
        /// By a failed upgrade.
        UpgradeFailed = 5, "upgrade failed";
        /// By an exit signal.
        Exited = 6, "exited";
    }
}

/// An event on the thread of the ring.
///
/// Processes are the ids in their PIDs, names are numbers in a table of the recorder's. 0 stands
/// for no process and for no name. Of a token and of a key the low 24 bits are kept ([`KEY_MASK`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// A worker begins a turn of a process; `name` is its type or method.
    TurnBegins {
        /// The process.
        process: u64,
        /// Its type or method.
        name: u32,
        /// Where it comes from.
        pick: Pick,
    },
    /// The turn is over.
    TurnEnds {
        /// The process.
        process: u64,
        /// Its next state.
        after: After,
        /// How many steps the turn had.
        steps: u64,
    },
    /// A waiting process becomes ready.
    Woken {
        /// The waiting process.
        process: u64,
        /// The process whose turn has woken it, or 0.
        by: u64,
        /// Why.
        cause: Cause,
    },
    /// A message is in the mailbox of its receiver.
    Sent {
        /// The receiver.
        to: u64,
        /// The sender, or 0.
        from: u64,
        /// The topic, or the type of the value.
        message: u32,
        /// A number for the message, also in its event `Taken`, and different from the numbers of
        /// all messages underway to this receiver: the address of its node, for instance. 0 for
        /// none.
        key: u32,
    },
    /// A step takes a message.
    Taken {
        /// The receiver.
        process: u64,
        /// The topic, or the type of the value.
        message: u32,
        /// The number in the event `Sent`.
        key: u32,
    },
    /// A process waits for the answer to a command.
    Yielded {
        /// The process.
        process: u64,
        /// The command.
        command: u32,
        /// The process's own mark of the yield.
        tag: u64,
        /// The number of the yield.
        token: u32,
    },
    /// The answer is there, or the process has taken the yield back.
    Completed {
        /// The process.
        process: u64,
        /// The command, or 0 if the completer does not know.
        command: u32,
        /// The number of the yield.
        token: u32,
    },
    /// A timer of a process has fired.
    TimerFired {
        /// The process.
        process: u64,
        /// How long after its deadline, in nanoseconds.
        late: u64,
    },
    /// The worker goes to sleep.
    Parked,
    /// The worker is awake again.
    Unparked,
    /// The worker has taken processes of another worker.
    Stole {
        /// The other worker.
        victim: u32,
        /// How many.
        count: u64,
    },
    /// A spare thread takes the place of a worker whose step blocks or lasts long.
    Spare {
        /// The worker whose place it is.
        worker: u32,
    },
    /// A process is there.
    Spawned {
        /// The process.
        process: u64,
        /// The spawner, or 0.
        parent: u64,
        /// Its type or method.
        name: u32,
    },
    /// A process is gone.
    Ended {
        /// The process.
        process: u64,
        /// How.
        end: End,
    },
    /// An alarm is raised.
    Alarm {
        /// The process in question, or 0.
        process: u64,
        /// The alarm.
        name: u32,
        /// The value beyond the limit.
        value: u64,
    },
    /// A mark of a user.
    Mark {
        /// The process whose turn it is, or 0.
        process: u64,
        /// The text.
        name: u32,
        /// A number of the user's.
        value: u64,
    },
    /// The length of a queue.
    Queue {
        /// The queue.
        name: u32,
        /// How many processes are in it.
        length: u64,
    },
}

/// A record unknown to this version: a newer version has written it, or it is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unknown {
    /// The number of its kind.
    pub kind: u8,
    /// Its detail.
    pub detail: u32,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, detail } = self;
        write!(
            f,
            "a record of kind {kind} with detail {detail} is unknown to version {VERSION}"
        )
    }
}

impl std::error::Error for Unknown {}

/// The parts of the words 1 to 3.
struct Parts {
    kind: u8,
    detail: u32,
    name: u32,
    process: u64,
    argument: u64,
}

impl Event {
    /// Returns the record of this event at a time. O(1), without a branch where the kind is known.
    #[inline(always)]
    #[must_use]
    pub const fn record(self, at: u64) -> Record {
        let Parts {
            kind,
            detail,
            name,
            process,
            argument,
        } = self.parts();
        let detail = (detail & KEY_MASK) as u64;
        let word = kind as u64 | detail << KIND_BITS | (name as u64) << NAME_SHIFT;
        [at, word, process, argument]
    }

    #[inline(always)]
    const fn parts(self) -> Parts {
        let (kind, detail, name, process, argument) = match self {
            Self::TurnBegins {
                process,
                name,
                pick,
            } => (1, pick as u32, name, process, 0),
            Self::TurnEnds {
                process,
                after,
                steps,
            } => (2, after as u32, 0, process, steps),
            Self::Woken { process, by, cause } => (3, cause as u32, 0, process, by),
            Self::Sent {
                to,
                from,
                message,
                key,
            } => (4, key, message, to, from),
            Self::Taken {
                process,
                message,
                key,
            } => (5, key, message, process, 0),
            Self::Yielded {
                process,
                command,
                tag,
                token,
            } => (6, token, command, process, tag),
            Self::Completed {
                process,
                command,
                token,
            } => (7, token, command, process, 0),
            Self::TimerFired { process, late } => (8, 0, 0, process, late),
            Self::Parked => (9, 0, 0, 0, 0),
            Self::Unparked => (10, 0, 0, 0, 0),
            Self::Stole { victim, count } => (11, victim, 0, 0, count),
            Self::Spare { worker } => (12, worker, 0, 0, 0),
            Self::Spawned {
                process,
                parent,
                name,
            } => (13, 0, name, process, parent),
            Self::Ended { process, end } => (14, end as u32, 0, process, 0),
            Self::Alarm {
                process,
                name,
                value,
            } => (15, 0, name, process, value),
            Self::Mark {
                process,
                name,
                value,
            } => (16, 0, name, process, value),
            Self::Queue { name, length } => (17, 0, name, 0, length),
        };
        Parts {
            kind,
            detail,
            name,
            process,
            argument,
        }
    }

    /// Returns the time and the event of a record. O(1).
    ///
    /// # Errors
    /// [`Unknown`], if no event of this version has the kind, or the code in the detail.
    pub fn read(record: Record) -> Result<(u64, Self), Unknown> {
        let [at, word, process, argument] = record;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "each part is cut out of the word"
        )]
        let (kind, detail, name) = (
            word as u8,
            (word >> KIND_BITS) as u32 & KEY_MASK,
            (word >> NAME_SHIFT) as u32,
        );
        let parts = Parts {
            kind,
            detail,
            name,
            process,
            argument,
        };
        let event = Self::of(&parts).ok_or(Unknown { kind, detail })?;
        Ok((at, event))
    }

    fn of(parts: &Parts) -> Option<Self> {
        let &Parts {
            kind,
            detail,
            name,
            process,
            argument,
        } = parts;
        Some(match kind {
            1 => Self::TurnBegins {
                process,
                name,
                pick: Pick::of(detail)?,
            },
            2 => Self::TurnEnds {
                process,
                after: After::of(detail)?,
                steps: argument,
            },
            3 => Self::Woken {
                process,
                by: argument,
                cause: Cause::of(detail)?,
            },
            4 => Self::Sent {
                to: process,
                from: argument,
                message: name,
                key: detail,
            },
            5 => Self::Taken {
                process,
                message: name,
                key: detail,
            },
            6 => Self::Yielded {
                process,
                command: name,
                tag: argument,
                token: detail,
            },
            7 => Self::Completed {
                process,
                command: name,
                token: detail,
            },
            8 => Self::TimerFired {
                process,
                late: argument,
            },
            9 => Self::Parked,
            10 => Self::Unparked,
            11 => Self::Stole {
                victim: detail,
                count: argument,
            },
            12 => Self::Spare { worker: detail },
            13 => Self::Spawned {
                process,
                parent: argument,
                name,
            },
            14 => Self::Ended {
                process,
                end: End::of(detail)?,
            },
            15 => Self::Alarm {
                process,
                name,
                value: argument,
            },
            16 => Self::Mark {
                process,
                name,
                value: argument,
            },
            17 => Self::Queue {
                name,
                length: argument,
            },
            _ => return None,
        })
    }
}
