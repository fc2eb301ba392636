//! Plans: what is done to a scheduler, as bytes.
//!
//! **Problem.** Random tests make sequences of operations, a fuzzer makes bytes, and a corpus must
//! mean the same to both for years.
//!
//! **Rejected.** A type with a strategy for the tests, and a decoder for the fuzzer. That gives two
//! notions of what is likely, and two formats.
//!
//! **Format.** Four bytes of settings, then four bytes for each operation. A rest is ignored, and
//! so is everything beyond [`MOST`]. Every sequence of bytes is a plan: each number is taken modulo
//! the number of alternatives. Zeros mean the simplest alternative, so that smaller bytes are
//! simpler plans.

/// How many operations a plan has at most.
pub const MOST: usize = 120;

/// A scheduler's settings, and what is done to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Decides the order of moves.
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
    /// The operations, in order.
    pub ops: Vec<Op>,
}

/// One thing to be done from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Go on until no actor can move; then everything is compared.
    Settle,
    /// Make this number of moves.
    Move(usize),
    /// Start a process, under a PID of its own if `chosen`.
    Submit {
        /// How the process behaves.
        nature: Nature,
        /// The entry point.
        start: Start,
        /// The id below 2^32 that is asked for.
        chosen: Option<u64>,
    },
    /// Send a message.
    Send {
        /// The receiver.
        to: Target,
        /// What the receiver does with the message.
        act: Act,
        /// As a control message.
        control: bool,
    },
    /// Ask a process to finish.
    Cancel(Target),
    /// Terminate a process.
    Terminate(Target),
    /// Ask a process to become another one.
    Upgrade(Target, Next),
    /// Use the completer that a handler has kept, counted round.
    Complete(usize, Answer),
    /// Stop the scheduler, with a deadline in microseconds.
    Stop(u64),
    /// Send a message, and wait for room for it.
    Wait(Target, Act),
    /// Give up a send that waits, counted round.
    GiveUp(usize),
    /// Several senders send to one process at once.
    Volley {
        /// The receiver.
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
    /// Add a place beyond the scheduler, or remove it.
    Place(Place, bool),
    /// Several threads submit processes at once. Every second process of each thread has a PID of
    /// the scheduler's choice; all threads ask for the PIDs of the others.
    Crowd {
        /// How the processes behave.
        nature: Nature,
        /// The entry point of every third of all.
        start: Start,
        /// How many submit.
        submitters: usize,
        /// How many processes each of them submits.
        each: usize,
        /// The first of the ids that they ask for.
        first: u64,
    },
    /// Several senders send to one process at once, and wait for room for each message.
    Press {
        /// The receiver.
        to: Target,
        /// How many there are.
        senders: usize,
        /// How many messages each of them sends.
        each: usize,
        /// What the process has to do at every third message.
        act: Act,
        /// When the process takes them.
        way: Way,
    },
}

/// When a process takes messages that wait for room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// It takes them all the while.
    Open,
    /// It takes none until its mailbox is full; then a control message has it do this act.
    Then(Act),
    /// It takes none until its mailbox is full; then it is terminated.
    Terminated,
}

/// A package to a place beyond the scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Far {
    /// Where to.
    pub place: Place,
    /// Whether the receiver refuses it.
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
    /// Whether it sends itself messages that must not arrive: from `init`, `close` and the hooks.
    pub probes: bool,
}

/// What a process does when it is asked to finish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manners {
    /// It finishes, with a result.
    Finishes,
    /// It says nothing, and so ends.
    Obeys,
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

/// The process that takes another's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Another process.
    Process(Start),
    /// What a factory makes.
    Factory,
    /// What a factory makes, which panics.
    PanickingFactory,
    /// What a factory makes that is not registered.
    UnknownFactory,
}

/// What a message makes its receiver do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Nothing.
    Note,
    /// Leave messages in the mailbox until a control message says otherwise.
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
    /// Pass something on, which goes no further.
    Pass(Target, Passed),
    /// Send something to another process, or to itself, and have it wait for room.
    Wait(Target, Passed),
    /// Send a package beyond the scheduler.
    Far(Far),
    /// Start a process.
    Spawn(Nature, Start),
    /// Cancel another process, or itself.
    Cancel(Target),
    /// Terminate another process, or itself.
    Terminate(Target),
    /// Monitor another process, or itself.
    Monitor(Target),
    /// Take a monitor back, counted round.
    Demonitor(usize),
}

/// What a forwarded message makes its receiver do.
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
    /// Terminates the process that has yielded the command, and answers.
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

impl From<Passed> for Act {
    fn from(passed: Passed) -> Self {
        match passed {
            Passed::Note | Passed::Control => Self::Note,
            Passed::Finish => Self::Finish,
            Passed::Ask => Self::Ask(Kind::Kept),
        }
    }
}

mod bytes;
