//! Accounts of everything that enters a simulated scheduler, for `ganger-sim` alone.
//!
//! **Problem.** A message lost, shown out of order or to the wrong incarnation, a completion that
//! comes twice, a process closed never or twice: a test notices the faults it looks for, and hardly
//! looks for these.
//!
//! **Rejected.** Marks in the messages themselves: users would see the marks. Wrappers around
//! users' processes: they would move the processes in memory, and miss the events never shown to a
//! step.
//!
//! **Protocol.** The accounts are a probe: each place of the scheduler at which an event goes in or
//! comes out is a point. Each live process has an account of its events, in order, sent and shown
//! (`account.rs`); the thread that ends it closes the account, which must be balanced. At the end
//! of a run the sums are compared with the scheduler's own counts.
//!
//! | promise | what is compared |
//! |---|---|
//! | P2 | `close` once for each `init` that returned `Ok`, never in a step |
//! | P4, R4 | what a step sees is what the last one left, and then the oldest that none has seen |
//! | P6, P7 | a completion is seen while its yield is outstanding; others are counted as stale |
//! | P12 | each process ends once, and its handle knows |
//! | R2 | what was accepted has been taken by a step, or is dropped with its process, and counted |
//!
//! A simulation has a single thread. Once another thread has sent an event, no account is kept any
//! more.

mod account;

use crate::base::stats::WorkerStats;
use crate::config::Config;
use crate::probe::{Arrival, Decide, Decider, Probe};
use account::{Account, Entry, Tally};
use ganger_proc_api::{CommandId, Event, EventQueue, ExitReason, Pid, Symbol, Tag};
use ganger_sync::sync::{Mutex, lock};
use std::collections::HashMap;
use std::sync::OnceLock;
use std::thread::{self, ThreadId};

/// Without a ledger, as long as no simulation has begun: then the accounts cost a look.
pub(crate) struct Accounts(OnceLock<Mutex<Option<Ledger>>>);

struct Ledger {
    thread: ThreadId,
    /// By the PIDs' numbers.
    live: HashMap<u64, Account>,
    /// The sums of ended processes.
    tally: Tally,
    /// How many these are.
    ended: u64,
    /// Completers used or dropped, and handlers that failed with neither.
    answers: u64,
    /// How many answers came after the end of their process.
    refused: u64,
}

impl Probe for Accounts {
    type Process = ();
    type Sent = Vec<Entry>;
    type Observed = ();
    type Guard<'a> = ();

    /// Creates no accounts: none are kept before [`begin`](Self::begin).
    fn new(_: &Config, _: usize) -> Self {
        Self(OnceLock::new())
    }

    fn process(&self) {}

    fn sending<'a>(&self, items: impl Iterator<Item = Arrival<'a>> + Clone) -> Vec<Entry> {
        let is_kept = self.0.get().is_some();
        let items = items.take_while(|_| is_kept);
        items.filter_map(Entry::of).collect()
    }

    /// Accepts events, also for a process whose `init` has not returned.
    fn accepted(&self, pid: Pid, sent: Vec<Entry>) {
        self.with_ledger(|ledger| {
            let account = ledger.live.entry(pid.id()).or_default();
            sent.into_iter().for_each(|entry| account.accept(entry));
        });
    }

    fn yielded(&self, pid: Pid, _: CommandId, tag: Tag, token: u64) {
        self.with_account(pid, |account| account.begin_yield(token, tag));
    }

    fn revoked(&self, pid: Pid, tag: Tag) {
        self.with_account(pid, |account| {
            account.take_back(tag);
            Ok(())
        });
    }

    fn answered(&self) {
        self.with_ledger(|ledger| ledger.answers += 1);
    }

    fn answered_inline(&self, pid: Pid, tag: Tag, token: u64) {
        self.accepted(pid, vec![Entry::Completion(tag, token)]);
    }

    fn answer_refused(&self) {
        self.with_ledger(|ledger| ledger.refused += 1);
    }

    fn shown(
        &self,
        pid: Pid,
        _: Symbol,
        _: impl Fn() -> &'static str + Copy,
        events: &impl EventQueue,
    ) {
        self.with_account(pid, |account| account.show(entries(events)));
    }

    fn stepped(&self, pid: Pid, left: &impl EventQueue) {
        self.with_account(pid, |account| account.settle(entries(left)));
    }

    fn arrived_next(&self, pid: Pid, event: &Event) {
        self.with_account(pid, |account| {
            Entry::of_event(event)
                .into_iter()
                .for_each(|it| account.accept_next(it));
            Ok(())
        });
    }

    fn signalled(&self, pid: Pid, notice: Option<&Event>) {
        let notice = notice.and_then(Entry::of_event);
        self.with_account(pid, |account| account.take_signal(notice));
    }

    fn upgrading(&self, pid: Pid) {
        self.with_account(pid, Account::take_upgrade);
    }

    fn upgraded(&self, pid: Pid) {
        self.with_account(pid, |account| {
            account.upgrade();
            Ok(())
        });
    }

    fn initialised(&self, pid: Pid) {
        self.with_ledger(|ledger| ledger.live.entry(pid.id()).or_default().open());
    }

    fn withdrawn(&self, pid: Pid) {
        if self.has(pid) {
            self.with_account(pid, |account| account.end());
            self.with_ledger(|ledger| ledger.remove(pid));
        }
    }

    fn closing(&self, pid: Pid) {
        self.with_account(pid, Account::close);
    }

    fn dropping<'a>(&self, pid: Pid, items: impl Iterator<Item = Arrival<'a>> + Clone) {
        let dropped = self.sending(items);
        if !dropped.is_empty() || self.has(pid) {
            self.with_account(pid, |account| account.drop_rest(dropped));
        }
    }

    fn ended(&self, pid: Pid, _: Symbol, _: &ExitReason) {
        self.with_account(pid, |account| account.end());
        self.with_ledger(|ledger| {
            ledger.ended += 1;
            ledger.remove(pid);
        });
    }

    fn told(&self, pid: Pid, is_told: impl Fn() -> bool + Copy) {
        if self.with_ledger(|_| ()).is_some() && !is_told() {
            Decider::note_violation(&format!(
                "P12 is broken: {pid}: its handle does not know how it has ended"
            ));
        }
    }
}

impl Accounts {
    /// Keeps accounts from now on, of this thread's acts.
    pub(crate) fn begin(&self) {
        let ledger = Ledger {
            thread: thread::current().id(),
            live: HashMap::new(),
            tally: Tally::default(),
            ended: 0,
            answers: 0,
            refused: 0,
        };
        self.0.get_or_init(|| Mutex::new(Some(ledger)));
    }

    /// Returns the differences between the accounts of a stopped scheduler and its own counts.
    pub(crate) fn difference(&self, stats: &WorkerStats) -> Option<String> {
        self.with_ledger(|ledger| ledger.difference(stats))
            .flatten()
    }

    fn has(&self, pid: Pid) -> bool {
        self.with_ledger(|ledger| ledger.live.contains_key(&pid.id()))
            .unwrap_or(false)
    }

    fn with_ledger<R>(&self, f: impl FnOnce(&mut Ledger) -> R) -> Option<R> {
        let mut ledger = lock(self.0.get()?);
        if ledger.as_ref()?.thread != thread::current().id() {
            *ledger = None;
        }
        ledger.as_mut().map(f)
    }

    fn with_account(
        &self,
        pid: Pid,
        f: impl FnOnce(&mut Account) -> Result<(), (&'static str, String)>,
    ) {
        let result = self.with_ledger(|ledger| match ledger.live.get_mut(&pid.id()) {
            Some(account) => f(account),
            None => Err(("P12", "something happens to it after its end".to_owned())),
        });
        if let Some(Err((promise, found))) = result {
            // Not a panic: it would be contained, or end the program.
            Decider::note_violation(&format!("{promise} is broken: {pid}: {found}"));
        }
    }
}

impl Ledger {
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

fn entries(events: &impl EventQueue) -> Vec<Entry> {
    let mut entries = Vec::new();
    events.visit(&mut |event: &Event| entries.extend(Entry::of_event(event)));
    entries
}
