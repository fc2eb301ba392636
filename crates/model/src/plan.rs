//! Plans: operations on a scheduler, as bytes.
//!
//! **Problem.** Random tests make sequences of operations, a fuzzer makes bytes, and a corpus must
//! mean the same to both for years.
//!
//! **Rejected.** A type with a strategy for the tests, and a decoder for the fuzzer: that gives two
//! notions of likely plans, and two formats.
//!
//! **Format.** Four bytes of settings, then four bytes for each operation. A rest is ignored, and
//! so is everything beyond [`MOST`]. Every sequence of bytes is a plan: each number is taken modulo
//! the number of alternatives. Zeros mean the simplest alternative, so smaller bytes are simpler
//! plans.

/// How many operations a plan has at most.
pub const MOST: usize = 120;

/// A scheduler's settings, and the operations on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Decides the order of moves.
    pub seed: u64,
    /// The number of workers.
    pub workers: usize,
    /// The limit of new events in a step.
    pub batch: usize,
    /// The limit of messages, and of control messages, in a mailbox.
    pub mailbox: Option<usize>,
    /// The limit of live processes.
    pub processes: Option<usize>,
    /// If steps block at times: the number of spares.
    pub blocks: Option<usize>,
    /// The operations, in order.
    pub ops: Vec<Op>,
}

/// An operation from outside.
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
        /// The requested id, below 2^32.
        chosen: Option<u64>,
    },
    /// Send a message.
    Send {
        /// The receiver.
        to: Target,
        /// The receiver's act.
        act: Act,
        /// As a control message.
        control: bool,
    },
    /// Ask a process to finish.
    Cancel(Target),
    /// Terminate a process.
    Terminate(Target),
    /// Ask a process to become another process.
    Upgrade(Target, Next),
    /// Use a kept completer, counted round.
    Complete(usize, Answer),
    /// Stop the scheduler, with a deadline in microseconds.
    Stop(u64),
    /// Send a message, and wait for room for it.
    Wait(Target, Act),
    /// Give up a waiting send, counted round.
    GiveUp(usize),
    /// Several senders send to a single process at once.
    Volley {
        /// The receiver.
        to: Target,
        /// The number of senders.
        senders: usize,
        /// How many messages each of them sends.
        each: usize,
        /// The act of the process at every third message.
        act: Act,
    },
    /// Send an envelope beyond the scheduler, in the name of a process.
    Far(Target, Far),
    /// Add a place beyond the scheduler, or remove it.
    Place(Place, bool),
    /// Several threads submit processes at once. Every second process of each thread has a PID of
    /// the scheduler's choice. All threads ask for the same PIDs for the rest.
    Crowd {
        /// How the processes behave.
        nature: Nature,
        /// The entry point of every third of all.
        start: Start,
        /// How many submit.
        submitters: usize,
        /// How many processes each of them submits.
        each: usize,
        /// The first of the requested ids.
        first: u64,
    },
    /// Several senders send to a single process at once, and wait for room for each message.
    Press {
        /// The receiver.
        to: Target,
        /// The number of senders.
        senders: usize,
        /// How many messages each of them sends.
        each: usize,
        /// The act of the process at every third message.
        act: Act,
        /// When the process takes them.
        way: Way,
    },
}

/// A process's way to take messages from a wait for room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The process takes messages all the while.
    Open,
    /// The process takes none until its mailbox is full; then a control message makes it do this
    /// act.
    Then(Act),
    /// The process takes none until its mailbox is full; then it is terminated.
    Terminated,
}

/// An envelope to a place beyond the scheduler.
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
    /// Another node: a peer.
    Peer,
    /// All other nodes.
    Elsewhere,
}

/// A process among all started processes, counted round.
pub type Target = u8;

/// How a process behaves on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nature {
    /// The reaction to a request to finish.
    pub manners: Manners,
    /// Whether the process sends itself messages that must not arrive: from `init`, `close` and the
    /// hooks.
    pub probes: bool,
}

/// A process's reaction to a request to finish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manners {
    /// The process finishes, with a result.
    Finishes,
    /// The process says nothing, and so ends.
    Obeys,
    /// It goes on.
    Ignores,
    /// The process first waits for a yield.
    CleansUp,
}

/// The result of a start.
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

/// The heir of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Another process.
    Process(Start),
    /// The product of a factory.
    Factory,
    /// A panicking factory.
    PanickingFactory,
    /// An unregistered factory.
    UnknownFactory,
}

/// The receiver's act at a message.
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
    /// Pass a message on, which goes no further.
    Pass(Target, Passed),
    /// Send something to another process, or to itself, and have it wait for room.
    Wait(Target, Passed),
    /// Send an envelope beyond the scheduler.
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

/// The receiver's act at a forwarded message.
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

/// The act of a command's handler.
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
    /// No handler exists.
    Unknown,
}

/// The use of a completer.
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
