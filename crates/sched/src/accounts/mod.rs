//! What becomes of everything that goes into a simulated scheduler, for `ganger-sim` alone.
//!
//! **Problem.** A message that is lost, shown out of order or to the wrong incarnation, a
//! completion that comes twice, a process that is closed never or twice: a test notices what it
//! looks for, and hardly looks for these.
//!
//! **Rejected.** Marks in the messages themselves, which users would see. Wrappers around users'
//! processes: they would live elsewhere in memory than they do, and see nothing of what no step is
//! shown.
//!
//! **Protocol.** Each place of the scheduler at which an event goes in or comes out says so here.
//! For each live process there is an account of what it has been sent, in order, and been shown
//! (`account.rs`); the thread that ends it closes the account, which has to be balanced. At the end
//! of a run the sums are compared with what the scheduler has counted itself.
//!
//! | promise | what is compared |
//! |---|---|
//! | P2 | `close` once for each `init` that returned `Ok`, never in a step |
//! | P4, R4 | what a step sees is what the last one left, and then the oldest that none has seen |
//! | P6, P7 | a completion is seen while its yield is outstanding; others are counted as stale |
//! | P12 | each process ends once, and its handle knows |
//! | R2 | what was accepted has been taken by a step, or is dropped with its process, and counted |
//!
//! A simulation has one thread. Should another one send something after all, no account is kept any
//! more.

mod account;

use crate::base::stats::WorkerStats;
use crate::core::item::Item;
use crate::core::step_events::StepEvents;
use crate::sim::note_broken;
use account::{Account, Entry, Tally};
use ganger_mpsc::Batch;
use ganger_proc_api::{EventQueue, Pid, Tag};
use ganger_sync::sync::{Mutex, lock};
use std::collections::HashMap;
use std::sync::OnceLock;
use std::thread::{self, ThreadId};

/// Without a book, as long as no simulation has begun: all that it costs then is a look.
pub(crate) struct Accounts(OnceLock<Mutex<Option<Book>>>);

struct Book {
    thread: ThreadId,
    /// By the PIDs' numbers.
    live: HashMap<u64, Account>,
    /// Of those that have ended.
    tally: Tally,
    /// How many these are.
    ended: u64,
    /// Completers that have been used or dropped, and handlers that have failed without.
    answers: u64,
    /// How many of those came after the end of their process.
    refused: u64,
}

/// What is about to be put into a mailbox.
pub(crate) struct Noted(Vec<Entry>);

/// Says that a process has been closed.
#[derive(Clone, Copy)]
pub(crate) struct Closing<'a>(&'a Accounts, Pid);

impl Closing<'_> {
    pub(crate) fn close(self) {
        self.0.with_account(self.1, Account::close);
    }
}

impl Accounts {
    /// None are kept before [`begin`](Self::begin).
    pub(crate) fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Keeps accounts from now on, of what this thread does.
    pub(crate) fn begin(&self) {
        let book = Book {
            thread: thread::current().id(),
            live: HashMap::new(),
            tally: Tally::default(),
            ended: 0,
            answers: 0,
            refused: 0,
        };
        self.0.get_or_init(|| Mutex::new(Some(book)));
    }

    pub(crate) fn note(&self, items: &Batch<Item>) -> Noted {
        self.noted(items.iter())
    }

    pub(crate) fn note_item(&self, item: &Item) -> Noted {
        self.noted([item])
    }

    /// The mailbox has taken that; also that of a process whose `init` has not returned.
    pub(crate) fn accept(&self, pid: Pid, noted: Noted) {
        self.with_book(|book| {
            let account = book.live.entry(pid.id()).or_default();
            noted.0.into_iter().for_each(|entry| account.accept(entry));
        });
    }

    pub(crate) fn begin_yield(&self, pid: Pid, token: u64, tag: Tag) {
        self.with_account(pid, |account| account.begin_yield(token, tag));
    }

    /// A yield is being answered.
    pub(crate) fn answer(&self) {
        self.with_book(|book| book.answers += 1);
    }

    /// The answer comes after the end of its process.
    pub(crate) fn refuse_answer(&self) {
        self.with_book(|book| book.refused += 1);
    }

    /// The answer has been put behind all that has arrived.
    pub(crate) fn accept_answer(&self, pid: Pid, tag: Tag, token: u64) {
        self.accept(pid, Noted(vec![Entry::Completion(tag, token)]));
    }

    /// A step is about to see these.
    pub(crate) fn show(&self, pid: Pid, shown: &StepEvents<'_>) {
        self.with_account(pid, |account| account.show(entries(shown)));
    }

    /// The step is over, and has left these.
    pub(crate) fn settle(&self, pid: Pid, left: &StepEvents<'_>) {
        self.with_account(pid, |account| account.settle(entries(left)));
    }

    /// A request for an upgrade has been taken out.
    pub(crate) fn take_upgrade(&self, pid: Pid) {
        self.with_account(pid, Account::take_upgrade);
    }

    /// Another process is in its place.
    pub(crate) fn upgrade(&self, pid: Pid) {
        self.with_account(pid, |account| {
            account.upgrade();
            Ok(())
        });
    }

    /// The `init` of a process with that PID has returned `Ok`.
    pub(crate) fn open(&self, pid: Pid) {
        self.with_book(|book| book.live.entry(pid.id()).or_default().open());
    }

    /// For the thread that closes a process with that PID.
    pub(crate) fn closing(&self, pid: Pid) -> Closing<'_> {
        Closing(self, pid)
    }

    /// The process has ended, and these are dropped with it.
    pub(crate) fn drop_rest(&self, pid: Pid, items: &Batch<Item>) {
        let Noted(dropped) = self.noted(items.iter());
        if !dropped.is_empty() || self.has(pid) {
            self.with_account(pid, |account| account.drop_rest(dropped));
        }
    }

    /// All is over with the process, and its PID is about to be free.
    pub(crate) fn exit(&self, pid: Pid) {
        self.with_account(pid, |account| account.end());
        self.with_book(|book| {
            book.ended += 1;
            book.remove(pid);
        });
    }

    /// The process was not started after all, if it was initialised.
    pub(crate) fn forget(&self, pid: Pid) {
        if self.has(pid) {
            self.with_account(pid, |account| account.end());
            self.with_book(|book| book.remove(pid));
        }
    }

    /// The waiter for the end of a process that had that PID has been told, or there is none;
    /// `is_told` says whether it is so.
    pub(crate) fn tell(&self, pid: Pid, is_told: impl FnOnce() -> bool) {
        if self.with_book(|_| ()).is_some() && !is_told() {
            note_broken(&format!(
                "P12 is broken: {pid}: its handle does not know how it has ended"
            ));
        }
    }

    /// What the accounts of a scheduler that has stopped do not agree about with what it has
    /// counted.
    pub(crate) fn difference(&self, stats: &WorkerStats) -> Option<String> {
        self.with_book(|book| book.difference(stats)).flatten()
    }

    fn noted<'a>(&self, items: impl IntoIterator<Item = &'a Item>) -> Noted {
        let is_kept = self.0.get().is_some();
        Noted(
            items
                .into_iter()
                .take_while(|_| is_kept)
                .filter_map(Entry::of)
                .collect(),
        )
    }

    fn has(&self, pid: Pid) -> bool {
        self.with_book(|book| book.live.contains_key(&pid.id()))
            .unwrap_or(false)
    }

    fn with_book<R>(&self, f: impl FnOnce(&mut Book) -> R) -> Option<R> {
        let mut book = lock(self.0.get()?);
        if book.as_ref()?.thread != thread::current().id() {
            *book = None;
        }
        book.as_mut().map(f)
    }

    fn with_account(
        &self,
        pid: Pid,
        f: impl FnOnce(&mut Account) -> Result<(), (&'static str, String)>,
    ) {
        let result = self.with_book(|book| match book.live.get_mut(&pid.id()) {
            Some(account) => f(account),
            None => Err(("P12", "something happens to it after its end".to_owned())),
        });
        if let Some(Err((promise, found))) = result {
            // Not a panic: that would be contained, or end the program.
            note_broken(&format!("{promise} is broken: {pid}: {found}"));
        }
    }
}

impl Book {
    fn remove(&mut self, pid: Pid) {
        if let Some(account) = self.live.remove(&pid.id()) {
            self.tally.add(&account.tally);
        }
    }

    fn difference(&self, stats: &WorkerStats) -> Option<String> {
        let tally = &self.tally;
        let pairs = [
            ("live processes", self.live.len() as u64, 0),
            ("ended processes", self.ended, stats.ended()),
            ("started processes", self.ended, stats.started),
            ("upgrades", tally.upgrades, stats.upgrades),
            (
                "accepted messages that were handled or dropped",
                tally.messages,
                tally.handled + tally.undelivered,
            ),
            ("dropped messages", tally.undelivered, stats.undelivered),
            ("yields", tally.yields, stats.yields),
            (
                "answers that were accepted or refused",
                self.answers,
                tally.completions + self.refused,
            ),
            (
                "accepted completions that were delivered or stale",
                tally.completions,
                tally.delivered + tally.stale,
            ),
            (
                "stale completions",
                tally.stale + self.refused,
                stats.stale_completions,
            ),
        ];
        let differs = pairs.iter().filter(|(_, known, counted)| known != counted);
        let found: Vec<_> = differs
            .map(|(what, known, counted)| {
                format!("{what}: {known} are known, {counted} are counted")
            })
            .collect();
        (!found.is_empty()).then(|| found.join("; "))
    }
}

fn entries(shown: &StepEvents<'_>) -> Vec<Entry> {
    let mut entries = Vec::new();
    shown.visit(&mut |event| entries.extend(Entry::of_event(event)));
    entries
}
