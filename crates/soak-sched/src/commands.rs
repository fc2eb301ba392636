//! Commands, and all ways in which a handler can answer a command: at once, later from another
//! thread, with an error, with a panic, twice, or not at all.
//!
//! The site's threads hold the completers of later answers. They answer in random order, so that
//! answers overtake each other. A completer that is never answered is kept while any process that
//! could wait for it lives.

use crate::account::Account;
use crate::faults::ON_PURPOSE;
use fastrand::Rng;
use ganger::{BoxError, CommandError, CommandId, Completer, Handle, Payload, StepOutput, Tag};
use ganger::{Command, RegisterError};
use ganger_soak::chance::pick;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::{mem, thread};

/// The way in which a command is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    /// By the handler, before it returns.
    AtOnce,
    /// By another thread.
    Later,
    /// By an error of the handler.
    Fail,
    /// By an error, from another thread.
    FailLater,
    /// By a panic of the handler.
    Panic,
    /// By dropping the completer.
    Drop,
    /// By dropping the completer, on another thread.
    DropLater,
    /// The handler answers, and then reports an error.
    AnswerAndFail,
    /// The handler gives the completer away, and reports an error: so the command is answered
    /// twice.
    FailAndAnswer,
    /// Not before the process has ended.
    Never,
    /// No handler carries it out.
    Unknown,
}

const ALL: [Ask; 11] = [
    Ask::AtOnce,
    Ask::Later,
    Ask::Fail,
    Ask::FailLater,
    Ask::Panic,
    Ask::Drop,
    Ask::DropLater,
    Ask::AnswerAndFail,
    Ask::FailAndAnswer,
    Ask::Never,
    Ask::Unknown,
];

impl Ask {
    /// Returns any way that answers while the process lives.
    pub(crate) fn any_answered(random: &mut Rng) -> Self {
        loop {
            let ask = *pick(random, &ALL);
            if ask != Self::Never {
                return ask;
            }
        }
    }

    /// Picks any command at all.
    pub(crate) fn any(random: &mut Rng) -> Self {
        *pick(random, &ALL)
    }

    fn id(self) -> CommandId {
        let place = ALL.iter().position(|ask| *ask == self);
        // The scheduler looks up ids from 512 on in another way than ids below.
        let number = place.unwrap_or_default() * 100 + 300;
        CommandId::new(u16::try_from(number).unwrap_or_default())
    }

    /// Yields the command, with a tag of its own.
    pub(crate) fn yield_to(self, out: &mut StepOutput) -> Tag {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Ordering: Relaxed: the tags need only be distinct.
        let tag = NEXT.fetch_add(1, Ordering::Relaxed);
        out.yield_command(Command::new(self.id(), tag), tag);
        tag
    }

    /// Returns whether this way has such a result.
    pub(crate) fn is_answered_by(self, tag: Tag, result: &Result<Payload, CommandError>) -> bool {
        let is_own = result.as_ref().is_ok_and(|it| it.as_u64() == Some(tag));
        let is_failed = matches!(result, Err(CommandError::Failed(_)));
        match self {
            Self::AtOnce | Self::Later | Self::AnswerAndFail => is_own,
            Self::Fail | Self::FailLater => is_failed,
            Self::Panic => matches!(result, Err(CommandError::Panicked(_))),
            Self::Drop | Self::DropLater => matches!(result, Err(CommandError::Dropped)),
            // The answer and the error race; either may come first.
            Self::FailAndAnswer => is_own || is_failed,
            // The process has ended by then.
            Self::Never => false,
            Self::Unknown => matches!(result, Err(CommandError::Unknown(id)) if *id == self.id()),
        }
    }
}

/// A completer in another thread's hands.
struct Open {
    ask: Ask,
    tag: Tag,
    completer: Completer,
    account: Arc<Account>,
    /// The number of open completers.
    count: Arc<AtomicU64>,
}

impl Open {
    fn answer(self) {
        let Self {
            ask,
            tag,
            completer,
            account,
            count,
        } = self;
        match ask {
            Ask::FailLater => completer.fail(format!("{ON_PURPOSE}: later")),
            Ask::DropLater => drop(completer),
            _ => completer.complete(tag),
        }
        if ask == Ask::FailAndAnswer {
            account.extra_answers.bump();
        }
        // Ordering: Release pairs with the Acquire in `Answerers::are_idle`: the thread that
        // settles the account sees the counts of the answer.
        count.fetch_sub(1, Ordering::Release);
    }
}

/// The threads that answer later, and the kept completers. The threads end with the last handler.
pub(crate) struct Answerers {
    kept: Arc<Mutex<Vec<Open>>>,
    /// The number of their completers.
    open: Arc<AtomicU64>,
    inbox: Sender<Open>,
    threads: Vec<JoinHandle<()>>,
}

impl Answerers {
    /// Starts `threads` threads, with random generators from `seed`.
    pub(crate) fn start(threads: usize, seed: u64) -> Self {
        let (inbox, receiver) = channel();
        let receiver = Arc::new(Mutex::new(receiver));
        let start = |nth: usize| {
            let receiver = Arc::clone(&receiver);
            let random = Rng::with_seed(seed ^ nth as u64);
            let builder = thread::Builder::new().name(format!("answerer-{nth}"));
            builder
                .spawn(move || answer_all(&receiver, random))
                .expect("the system grants a thread")
        };
        Self {
            kept: Arc::default(),
            open: Arc::default(),
            inbox,
            threads: (0..threads).map(start).collect(),
        }
    }

    /// Registers a handler for each way of answering.
    pub(crate) fn register(
        &self,
        scheduler: &Handle,
        account: &Arc<Account>,
    ) -> Result<(), RegisterError> {
        for ask in ALL.into_iter().filter(|ask| *ask != Ask::Unknown) {
            let (account, inbox) = (Arc::clone(account), Mutex::new(self.inbox.clone()));
            let (kept, count) = (Arc::clone(&self.kept), Arc::clone(&self.open));
            let handler = move |command: Command, completer: Completer| {
                account.commands.bump();
                let tag = completer.tag();
                if command.payloads.into_first().as_u64() != Some(tag) {
                    account.fault(format!("the command of {tag} came with another's value"));
                }
                let open = |completer| {
                    // Ordering: Relaxed: the thread that waits for zero has seen the asking process
                    // end.
                    count.fetch_add(1, Ordering::Relaxed);
                    Open {
                        ask,
                        tag,
                        completer,
                        account: Arc::clone(&account),
                        count: Arc::clone(&count),
                    }
                };
                handle(ask, completer, open, &account, &inbox, &kept)
            };
            scheduler.register(ask.id(), "a way of answering", handler)?;
        }
        Ok(())
    }

    /// Answers the completers that stayed open while a process was alive.
    pub(crate) fn answer_kept(&self) {
        let kept = mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        kept.into_iter().for_each(Open::answer);
    }

    /// Returns whether nothing is left to be answered.
    pub(crate) fn are_idle(&self) -> bool {
        // Ordering: Acquire pairs with the Release in `Open::answer`.
        self.open.load(Ordering::Acquire) == 0
    }

    /// Waits until everything has been answered, when the handlers are gone.
    pub(crate) fn join(self) -> thread::Result<()> {
        self.answer_kept();
        drop(self.inbox);
        self.threads.into_iter().try_for_each(JoinHandle::join)
    }
}

fn handle(
    ask: Ask,
    completer: Completer,
    open: impl Fn(Completer) -> Open,
    account: &Account,
    inbox: &Mutex<Sender<Open>>,
    kept: &Mutex<Vec<Open>>,
) -> Result<(), BoxError> {
    let later = |completer| {
        let inbox = inbox.lock().unwrap_or_else(PoisonError::into_inner);
        // Its threads are there for as long as the handlers are.
        inbox
            .send(open(completer))
            .map_err(|_| "nobody answers later")
    };
    let tag = completer.tag();
    match ask {
        Ask::AtOnce => completer.complete(tag),
        Ask::Later | Ask::FailLater | Ask::DropLater => later(completer)?,
        Ask::Fail => return Err(format!("{ON_PURPOSE}: a handler").into()),
        Ask::Panic => {
            account.panics.bump();
            panic!("{ON_PURPOSE}: a handler");
        }
        Ask::Drop | Ask::Unknown => drop(completer),
        Ask::AnswerAndFail => {
            completer.complete(tag);
            return Err(format!("{ON_PURPOSE}: after the answer").into());
        }
        Ask::FailAndAnswer => {
            later(completer)?;
            return Err(format!("{ON_PURPOSE}: before the answer").into());
        }
        Ask::Never => {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push(open(completer));
        }
    }
    Ok(())
}

/// Answers completers in any order, until the last sender is gone.
fn answer_all(receiver: &Mutex<Receiver<Open>>, mut random: Rng) {
    let mut waiting = Vec::new();
    loop {
        let next = if waiting.is_empty() {
            let receiver = receiver.lock().unwrap_or_else(PoisonError::into_inner);
            receiver.recv().ok()
        } else {
            // A thread without an answer to give may wait inside of the lock.
            receiver.try_lock().ok().and_then(|it| it.try_recv().ok())
        };
        match next {
            Some(open) => {
                waiting.push(open);
                if random.bool() {
                    continue;
                }
            }
            None if waiting.is_empty() => return,
            None => {}
        }
        waiting.swap_remove(random.usize(..waiting.len())).answer();
    }
}
