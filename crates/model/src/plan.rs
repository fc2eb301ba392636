//! What is to be done to a scheduler, as bytes.
//!
//! **Problem.** Random tests make sequences of operations, a fuzzer makes bytes, and a corpus has to mean the
//! same in ten years' time to both.
//!
//! **Rejected.** A type with a strategy for the one and a decoder for the other: two notions of what is likely,
//! and two formats.
//!
//! **Format.** Four bytes of settings, then four bytes an operation; what is left over is ignored, and so is
//! what is beyond [`MOST`]. Every sequence of bytes is a plan: numbers are taken modulo whatever there is. Zeros are the
//! simplest of everything, so that whoever makes bytes smaller makes plans simpler.

/// How many operations a plan has at the most.
pub const MOST: usize = 120;

/// A scheduler's settings, and what is to be done to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Decides who moves when.
    pub seed: u64,
    /// How many workers there are.
    pub workers: usize,
    /// The most new events that a step is shown.
    pub batch: usize,
    /// The most messages, and the most control messages, that a mailbox holds.
    pub mailbox: Option<usize>,
    /// The most processes that there are at once.
    pub processes: Option<usize>,
    /// If steps block at times: how many spares there are.
    pub blocks: Option<usize>,
    /// What is to be done, in order.
    pub ops: Vec<Op>,
}

/// One thing to be done from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Until nobody can move; then everything is compared.
    Settle,
    /// So many moves.
    Move(usize),
    /// Start a process, under a PID of its own if `chosen`.
    Submit {
        /// What it is like.
        nature: Nature,
        /// The entry point.
        start: Start,
        /// The id below 2^32 that is asked for.
        chosen: Option<u64>,
    },
    /// Send a message.
    Send {
        /// To whom.
        to: Target,
        /// What it has to do then.
        act: Act,
        /// As a control message.
        control: bool,
    },
    /// Ask for the end.
    Cancel(Target),
    /// Allow no further step.
    Terminate(Target),
    /// Ask for another process in its place.
    Upgrade(Target, Next),
    /// Use the completer that a handler has kept, counted round.
    Complete(usize, Answer),
    /// Stop the scheduler, with so many microseconds of time.
    Stop(u64),
    /// Send a message, and wait for room for it.
    Wait(Target, Act),
    /// Give up a send that waits, counted round.
    GiveUp(usize),
    /// Several senders send to one process at once.
    Volley {
        /// To whom.
        to: Target,
        /// How many there are.
        senders: usize,
        /// How many messages each of them sends.
        each: usize,
        /// What the process has to do at every third message.
        act: Act,
    },
    /// Send a package beyond the scheduler, in the name of a process.
    Far(Target, Far),
    /// A place beyond the scheduler is there from now on, or is not.
    Place(Place, bool),
}

/// A package to a place beyond the scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Far {
    /// Where to.
    pub place: Place,
    /// Whether who gets it refuses it.
    pub is_refused: bool,
    /// As a control message.
    pub control: bool,
}

/// A place beyond the scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// Another host of the same node.
    Host,
    /// Another node, which is a peer.
    Peer,
    /// All other nodes.
    Elsewhere,
}

/// One of all processes that have been started, counted round.
pub type Target = u8;

/// How a process behaves on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nature {
    /// What it does when it is asked to finish.
    pub manners: Manners,
    /// Whether it sends messages to itself where it must not get them: from `init`, `close` and the hooks.
    pub probes: bool,
}

/// What a process does when it is asked to finish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manners {
    /// It finishes.
    Finishes,
    /// It goes on.
    Ignores,
    /// It has something done first.
    CleansUp,
}

/// What becomes of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// It goes well.
    Well,
    /// `init` returns an error.
    InitFails,
    /// `init` panics.
    InitPanics,
    /// The lifecycle hook refuses.
    Refused,
    /// The lifecycle hook panics.
    HookPanics,
}

/// What is to take a process's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Another process.
    Process(Start),
    /// What a factory makes.
    Factory,
    /// What a factory makes that panics.
    PanickingFactory,
    /// What no factory makes.
    UnknownFactory,
}

/// What a message has its receiver do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Nothing.
    Note,
    /// Leave messages where they are, until it is told otherwise.
    Hold,
    /// Take messages again.
    Release,
    /// Have a command carried out.
    Ask(Kind),
    /// Step again, with events or without.
    GoOn,
    /// Finish.
    Finish,
    /// Return an error.
    Fail,
    /// Panic.
    Panic,
    /// Become another process.
    Become(Next),
    /// Pass something on, which does no such thing.
    Pass(Target, Passed),
    /// Have something wait for room with another process, or with itself.
    Wait(Target, Passed),
    /// Send a package beyond the scheduler.
    Far(Far),
    /// Start a process.
    Spawn(Nature, Start),
    /// Cancel another, or itself.
    Cancel(Target),
    /// Terminate another, or itself.
    Terminate(Target),
}

/// What a message that is passed on has its receiver do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passed {
    /// Nothing.
    Note,
    /// Finish.
    Finish,
    /// Have a command carried out later.
    Ask,
    /// Nothing, with a control message.
    Control,
}

/// What the handler of a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Answers at once.
    AtOnce,
    /// Keeps the completer.
    Kept,
    /// Answers after some time.
    Delayed,
    /// Drops the completer.
    Drops,
    /// Returns an error.
    Errs,
    /// Panics.
    Panics,
    /// Answers, and returns an error.
    AnswersAndErrs,
    /// Terminates whoever has asked, and answers.
    Terminates,
    /// There is no handler.
    Unknown,
}

/// What a completer is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// A result.
    Result,
    /// An error.
    Error,
    /// Nothing: it is dropped.
    Dropped,
}

/// All kinds, the simplest first.
pub const KINDS: [Kind; 9] = [
    Kind::AtOnce,
    Kind::Kept,
    Kind::Delayed,
    Kind::Drops,
    Kind::Errs,
    Kind::Panics,
    Kind::AnswersAndErrs,
    Kind::Unknown,
    Kind::Terminates,
];

const STARTS: [Start; 8] = [
    Start::Well,
    Start::Well,
    Start::Well,
    Start::Well,
    Start::InitFails,
    Start::InitPanics,
    Start::Refused,
    Start::HookPanics,
];

/// What is mixed in among the messages of several senders.
const MIXED_IN: [Act; 8] = [
    Act::Note,
    Act::GoOn,
    Act::Ask(Kind::AtOnce),
    Act::Hold,
    Act::Note,
    Act::Ask(Kind::Drops),
    Act::Finish,
    Act::Panic,
];

impl Plan {
    /// The plan that these bytes are.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut records = bytes.chunks_exact(4).map(|it| [it[0], it[1], it[2], it[3]]);
        let [sizes, limits, low, high] = records.next().unwrap_or_default();
        let limit = |number: u8, base: usize| (number > 0).then(|| base + usize::from(number));
        Self {
            seed: u64::from(u16::from_le_bytes([low, high])),
            workers: 1 + usize::from(sizes % 3),
            batch: [256, 1, 2, 5][usize::from(sizes / 3 % 4)],
            mailbox: limit(limits % 4, 0),
            processes: limit(limits / 4 % 4, 2),
            blocks: usize::from(sizes / 12 % 4).checked_sub(1),
            ops: records.take(MOST).map(Op::from_record).collect(),
        }
    }
}

impl Op {
    fn from_record([op, to, what, how]: [u8; 4]) -> Self {
        if op / 32 == 7 {
            return Self::among_others(op % 32, to, what, how);
        }
        match op % 32 {
            0 | 1 => Self::Settle,
            2..=5 => Self::Move(usize::from(to)),
            6..=9 => Self::Submit {
                nature: Nature::from_byte(to),
                start: STARTS[usize::from(what % 8)],
                chosen: (how % 4 == 3).then_some(u64::from(how / 4 % 3)),
            },
            10..=22 => Self::Send {
                to,
                act: Act::from_bytes(what, how),
                control: op / 32 % 4 == 3,
            },
            23 | 24 => Self::Cancel(to),
            25 => Self::Terminate(to),
            26 | 27 => Self::Upgrade(to, Next::from_byte(what)),
            28..=30 => Self::Complete(
                usize::from(to),
                [Answer::Result, Answer::Error, Answer::Dropped][usize::from(what % 3)],
            ),
            _ => Self::Stop([0, 50, 3_600_000_000][usize::from(what % 3)]),
        }
    }

    /// What has to do with others: several senders, those who wait, and other places.
    fn among_others(op: u8, to: u8, what: u8, how: u8) -> Self {
        match op {
            0..=9 => Self::Wait(to, Act::from_bytes(what, how)),
            10..=13 => Self::GiveUp(usize::from(to)),
            14..=17 => Self::Volley {
                to,
                senders: 2 + usize::from(how % 3),
                each: 1 + usize::from(how / 3 % 8),
                act: MIXED_IN[usize::from(what % 8)],
            },
            18..=26 => Self::Far(to, Far::from_byte(what)),
            _ => Self::Place(Place::from_byte(what), how % 2 == 1),
        }
    }
}

impl Far {
    fn from_byte(byte: u8) -> Self {
        Self {
            place: Place::from_byte(byte),
            is_refused: byte / 3 % 4 == 3,
            control: byte / 12 % 3 == 2,
        }
    }
}

impl Place {
    fn from_byte(byte: u8) -> Self {
        [Self::Host, Self::Peer, Self::Elsewhere][usize::from(byte % 3)]
    }
}

impl Nature {
    fn from_byte(byte: u8) -> Self {
        let manners = [Manners::Finishes, Manners::Ignores, Manners::CleansUp];
        Self {
            manners: manners[usize::from(byte % 3)],
            probes: byte / 3 % 2 == 1,
        }
    }
}

impl Next {
    fn from_byte(byte: u8) -> Self {
        match byte % 8 {
            0..=2 => Self::Process(Start::Well),
            3 => Self::Process(Start::InitFails),
            4 => Self::Process(Start::InitPanics),
            5 => Self::Factory,
            6 => Self::PanickingFactory,
            _ => Self::UnknownFactory,
        }
    }
}

impl Act {
    fn from_bytes(what: u8, how: u8) -> Self {
        match what % 24 {
            0 | 1 => Self::Note,
            2 => Self::Far(Far::from_byte(how)),
            3 | 4 => Self::Hold,
            5 | 6 => Self::Release,
            7..=11 => Self::Ask(KINDS[usize::from(how % 9)]),
            12 => Self::GoOn,
            13 => Self::Finish,
            14 => Self::Fail,
            15 => Self::Panic,
            16 | 17 => Self::Become(Next::from_byte(how)),
            18..=20 => {
                let passed = [Passed::Note, Passed::Finish, Passed::Ask, Passed::Control];
                let passed = passed[usize::from(how % 4)];
                if what % 24 == 20 {
                    Self::Wait(how / 4, passed)
                } else {
                    Self::Pass(how / 4, passed)
                }
            }
            21 => Self::Spawn(Nature::from_byte(how), STARTS[usize::from(how / 8 % 8)]),
            22 => Self::Cancel(how),
            _ => Self::Terminate(how),
        }
    }
}

impl From<Passed> for Act {
    fn from(passed: Passed) -> Self {
        match passed {
            Passed::Note | Passed::Control => Self::Note,
            Passed::Finish => Self::Finish,
            Passed::Ask => Self::Ask(Kind::Kept),
        }
    }
}

#[cfg(test)]
mod tests;
