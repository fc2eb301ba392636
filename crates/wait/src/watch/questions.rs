//! Unanswered questions, while a program watches for deadlocks.
//!
//! **Problem.** Most questions are answered soon, and should cost almost nothing. The watcher must
//! find the unanswered questions.
//!
//! **Rejected.** Registering questions as other waits: each question would take the registry's lock
//! twice.
//!
//! **Protocol.** The asker leaves a weak reference in the list of its thread, one of several. The
//! answer drops the question; the reference stays in the list. The watcher reads the live
//! references. An asker with a full list removes the dead references.
//!
//! **Waits for ends.** A future that waits for an end may live on while its process waits for
//! something else, or for messages as well, which end the wait. So a thread keeps the waits for
//! ends of its present turn. They are forgotten when the process waits for something else in the
//! same turn, or yields, and a process that waits for messages has none.
//!
//! A watcher marks all empty lists before it sleeps. The next asker with a marked list wakes it.

use super::{Party, SURROUNDINGS, Thing, Waiting, is_on, now, party};
use ganger_proc_api::internal::StepsCall;
use ganger_proc_api::{CommandError, Completer, CompletionSink, EndCall, Payload, Pid, Tag};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Wake, Waker};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// The number of lists.
const LISTS: usize = 16;

static ASKED: [Mutex<List>; LISTS] = [const { Mutex::new(List::new()) }; LISTS];

#[derive(Default)]
struct List {
    questions: Vec<Weak<Question>>,
    /// Whether a watcher sleeps until the next question.
    wakes: bool,
}

impl List {
    const fn new() -> Self {
        Self {
            questions: Vec::new(),
            wakes: false,
        }
    }
}

/// A question of a process, or of a thread, to a process; or another wait for a process.
struct Question {
    kind: &'static str,
    party: Party,
    /// The asked process, and the number of its scheduler.
    of: (Pid, u64),
    since: Duration,
    on: ThreadId,
    begin: u64,
    /// The receiver of the answer, and its token; `None` if the asker keeps the question.
    asker: Option<(Arc<dyn CompletionSink>, u64)>,
    /// Whether the wait of a waker is still its party's; `None` where that is so until the drop.
    holds: Option<Holds>,
    is_answered: AtomicBool,
}

/// Says whether a wait is still there.
pub type Holds = Box<dyn Fn() -> bool + Send + Sync>;

/// Keeps a question known until it is dropped. Empty without a watcher.
#[derive(Default)]
pub struct Asked(#[allow(dead_code, reason = "it is dropped")] Option<Arc<Question>>);

impl Asked {
    /// Returns whether no question is kept known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl std::fmt::Debug for Asked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Asked").field(&self.0.is_some()).finish()
    }
}

/// Notes a question of this thread's party to the process `of`, until the result is dropped. `of`
/// includes the number of the scheduler.
#[inline]
pub fn asks(of: (Pid, u64)) -> Asked {
    awaits(super::ANSWER, of)
}

/// Notes a wait of this thread's party for the process `of`, of another kind, until the result is
/// dropped. `of` includes the number of the scheduler.
#[inline]
pub fn awaits(kind: &'static str, of: (Pid, u64)) -> Asked {
    Asked(is_on().then(|| Question::begin(kind, party(), of, None)))
}

/// Registers a wait as [`awaits`] does, for a process of the same scheduler as the process that
/// this thread works for. Empty for a thread outside of all processes.
#[inline]
pub fn awaits_beside(kind: &'static str, pid: Pid) -> Asked {
    if !is_on() {
        return Asked(None);
    }
    match party() {
        of @ Party::Process(_, scheduler) => Asked(Question::end(kind, of, (pid, scheduler), None)),
        Party::Thread(_) => Asked(None),
    }
}

/// Registers a wait as [`awaits`] does, until the returned waker is dropped, and as long as `holds`
/// says so. The waker wakes what `waker` does. For a wait whose future may live on without being
/// polled.
#[must_use]
pub fn awaits_by(
    waker: &Waker,
    kind: &'static str,
    of: (Pid, u64),
    holds: impl Fn() -> bool + Send + Sync + 'static,
) -> Waker {
    let waker = waker.clone();
    match Question::end(kind, party(), of, Some(Box::new(holds))) {
        Some(question) => Waker::from(Arc::new(Noted { waker, question })),
        None => waker,
    }
}

/// The waits for ends of a turn.
#[derive(Default)]
struct Turn {
    /// The party, and its turn; 0 outside of a turn.
    of: Option<(Party, u64)>,
    ends: Vec<Weak<Question>>,
    /// Whether the process waits for messages, too.
    has_messages: bool,
}

thread_local! {
    static TURN: RefCell<Turn> = const {
        RefCell::new(Turn {
            of: None,
            ends: Vec::new(),
            has_messages: false,
        })
    };
}

/// Calls `f` with the turn of that party on this thread.
fn in_turn<R>(party: Party, f: impl FnOnce(&mut Turn) -> R) -> Option<R> {
    let turn = SURROUNDINGS.get().and_then(|it| (it.turn)());
    let of = Some((party, turn.unwrap_or_default()));
    // None where the thread ends.
    let called = TURN.try_with(|turn| {
        let mut turn = turn.borrow_mut();
        if turn.of != of {
            // The waits not polled again by this party are left.
            match turn.of.is_some_and(|(before, _)| before == party) {
                true => turn.leave(),
                false => turn.ends.clear(),
            }
            (turn.of, turn.has_messages) = (of, false);
        }
        f(&mut turn)
    });
    called.ok()
}

impl Turn {
    fn leave(&mut self) {
        for end in self.ends.drain(..).filter_map(|it| it.upgrade()) {
            // Ordering: Relaxed: the watcher's `is_open` may see the wait for a moment longer.
            end.is_answered.store(true, Ordering::Relaxed);
        }
    }
}

/// Notes that the process that this thread works for waits for messages. So a wait for an end is no
/// need, in this turn: it is left, or one of two waits.
#[inline]
pub fn goes_on() {
    if is_on() {
        in_turn(party(), |turn| {
            turn.leave();
            // A thread outside has no later turn, in which it would wait for an end alone.
            turn.has_messages = turn.of.is_some_and(|(_, turn)| turn != 0);
        });
    }
}

/// Notes that the process that this thread works for waits for messages no longer.
#[cold]
pub fn leaves_messages() {
    if is_on() {
        in_turn(party(), |turn| turn.has_messages = false);
    }
}

/// Begins another step of the process that this thread works for: its waits for ends are left,
/// unless the process polls them again.
#[inline]
pub fn leaves() {
    if is_on() {
        leave_ends(party());
    }
}

/// Forgets the waits for ends of this thread's last turn, if they are of that party: it waits for
/// something else.
pub(super) fn leave_ends(party: Party) {
    // None where the thread ends.
    let _none = TURN.try_with(|turn| {
        let mut turn = turn.borrow_mut();
        if turn.of.is_some_and(|(of, _)| of == party) {
            turn.leave();
        }
    });
}

/// A waker with the question that is known as long as it is there.
struct Noted {
    waker: Waker,
    #[allow(dead_code, reason = "it is dropped")]
    question: Arc<Question>,
}

impl Wake for Noted {
    fn wake(self: Arc<Self>) {
        self.waker.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.waker.wake_by_ref();
    }
}

/// Notes a question of the completer's process to the process `of`. The returned completer
/// completes the same yield, and the question is known until then.
#[inline]
pub fn asked_by(completer: Completer, of: (Pid, u64)) -> Completer {
    if !is_on() {
        return completer;
    }
    match completer.asker() {
        Some((pid, scheduler)) => completer.through(|sink, token| {
            let asker = Some((sink, token));
            Question::begin(super::ANSWER, Party::Process(pid, scheduler), of, asker)
        }),
        _ => completer,
    }
}

impl Question {
    fn begin(
        kind: &'static str,
        party: Party,
        of: (Pid, u64),
        asker: Option<(Arc<dyn CompletionSink>, u64)>,
    ) -> Arc<Self> {
        leave_ends(party);
        Self::new(kind, party, of, asker, None).list()
    }

    /// Creates a wait for an end; none in a turn with a wait for messages.
    fn end(
        kind: &'static str,
        party: Party,
        of: (Pid, u64),
        holds: Option<Holds>,
    ) -> Option<Arc<Self>> {
        if in_turn(party, |turn| turn.has_messages) == Some(true) {
            return None;
        }
        // Asks its surroundings, and so is made outside of the turn.
        let question = Self::new(kind, party, of, None, holds).list();
        in_turn(party, |turn| {
            turn.ends.retain(|it| it.strong_count() > 0);
            turn.ends.push(Arc::downgrade(&question));
        });
        Some(question)
    }

    fn new(
        kind: &'static str,
        party: Party,
        of: (Pid, u64),
        asker: Option<(Arc<dyn CompletionSink>, u64)>,
        holds: Option<Holds>,
    ) -> Self {
        Self {
            kind,
            party,
            of,
            since: now(),
            on: thread::current().id(),
            begin: super::begins(),
            asker,
            holds,
            is_answered: AtomicBool::new(false),
        }
    }

    /// Puts it into the list of its thread.
    fn list(self) -> Arc<Self> {
        let question = Arc::new(self);
        let mut list = lock(own());
        let questions = &mut list.questions;
        if questions.len() == questions.capacity() {
            questions.retain(|it| it.strong_count() > 0);
            // So at least as many questions come before the next such pass.
            questions.reserve(questions.len() + 1);
        }
        questions.push(Arc::downgrade(&question));
        let wakes = std::mem::take(&mut list.wakes);
        drop(list);
        if wakes {
            super::registry().tell_sleepers();
        }
        question
    }

    /// Returns whether the answer is wanted and still missing.
    fn is_open(&self) -> bool {
        let is_wanted = |(sink, token): &(Arc<dyn CompletionSink>, u64)| !sink.is_cancelled(*token);
        if self.holds.as_ref().is_some_and(|holds| !holds()) {
            return false;
        }
        // Ordering: Relaxed: the watcher may miss an answer of this moment.
        !self.is_answered.load(Ordering::Relaxed) && self.asker.as_ref().is_none_or(is_wanted)
    }

    fn waiting(&self) -> Waiting {
        Waiting {
            party: self.party,
            thing: Thing::of(self.kind, self),
            owners: vec![Party::Process(self.of.0, self.of.1)],
            since: self.since,
            on: self.on,
            begin: self.begin,
        }
    }
}

/// A question stands between the answering process and the asker.
impl CompletionSink for Question {
    fn complete(self: Arc<Self>, tag: Tag, token: u64, result: Result<Payload, CommandError>) {
        // Ordering: Relaxed: the completion orders the store before the asker's next actions.
        self.is_answered.store(true, Ordering::Relaxed);
        if let Some((sink, _)) = &self.asker {
            Arc::clone(sink).complete(tag, token, result);
        }
    }

    fn complete_dropped(self: Arc<Self>, tag: Tag, token: u64) {
        // Ordering: Relaxed: the completion orders the store before the asker's next actions.
        self.is_answered.store(true, Ordering::Relaxed);
        if let Some((sink, _)) = &self.asker {
            Arc::clone(sink).complete_dropped(tag, token);
        }
    }

    fn pid(&self) -> Option<Pid> {
        self.asker.as_ref().and_then(|(sink, _)| sink.pid())
    }

    fn scheduler(&self) -> u64 {
        self.asker.as_ref().map_or(0, |(sink, _)| sink.scheduler())
    }

    fn is_cancelled(&self, token: u64) -> bool {
        let mut asker = self.asker.iter();
        asker.all(|(sink, _)| sink.is_cancelled(token))
    }

    fn on_end(self: Arc<Self>, token: u64, call: Weak<EndCall>) -> bool {
        let mut asker = self.asker.iter();
        asker.any(|(sink, _)| Arc::clone(sink).on_end(token, call.clone()))
    }

    fn between_steps(self: Arc<Self>, call: Box<StepsCall>) -> Result<(), Box<StepsCall>> {
        match &self.asker {
            Some((sink, _)) => Arc::clone(sink).between_steps(call),
            None => Err(call),
        }
    }
}

/// Returns the list of this thread.
fn own() -> &'static Mutex<List> {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        // Ordering: Relaxed, because the count only spreads threads.
        static OWN: Cell<usize> = Cell::new(THREADS.fetch_add(1, Ordering::Relaxed));
    }
    // An ending thread has lost its thread-locals.
    &ASKED[OWN.try_with(Cell::get).unwrap_or_default() % LISTS]
}

fn lock(list: &Mutex<List>) -> std::sync::MutexGuard<'_, List> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the unanswered questions.
pub(super) fn open() -> Vec<Waiting> {
    let mut there = Vec::new();
    for list in &ASKED {
        let mut list = lock(list);
        list.questions.retain(|it| it.strong_count() > 0);
        there.extend(list.questions.iter().filter_map(Weak::upgrade));
    }
    // Without a lock: an asker is foreign code here, and its last reference may be dropped here.
    let open = there.iter().filter(|it| it.is_open());
    open.map(|it| it.waiting()).collect()
}

/// Prepares a watcher's sleep: the next asker wakes it. Returns `false` if a list has a question.
pub(super) fn wake_at_next() -> bool {
    ASKED.iter().all(|list| {
        let mut list = lock(list);
        list.questions.retain(|it| it.strong_count() > 0);
        list.wakes = list.questions.is_empty();
        list.wakes
    })
}

/// Forgets all questions at the end of the last watch.
pub(super) fn forget() {
    ASKED
        .iter()
        .for_each(|it| drop(std::mem::take(&mut *lock(it))));
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use crate::watch::{Watching, begin, pause};

    fn pid(number: u32) -> Pid {
        format!("{{main|{number}}}").parse().unwrap()
    }

    fn watching() -> Watching {
        begin(|| None, || Duration::ZERO)
    }

    /// A process; the flag says whether its answer is unwanted.
    struct Asker(Pid, AtomicBool);

    impl CompletionSink for Asker {
        fn complete(self: Arc<Self>, _: Tag, _: u64, _: Result<Payload, CommandError>) {}

        fn pid(&self) -> Option<Pid> {
            Some(self.0)
        }

        fn is_cancelled(&self, _: u64) -> bool {
            // Ordering: Relaxed, because only this thread uses the flag.
            self.1.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn a_question_is_known_until_it_is_answered_dropped_or_unwanted() {
        let watching = watching();
        let asker = Arc::new(Asker(pid(1), AtomicBool::new(false)));
        let ask = |of| {
            asked_by(
                Completer::new(Arc::<Asker>::clone(&asker), 1, 1),
                (pid(of), 1),
            )
        };
        let (answered, dropped, unwanted) = (ask(2), ask(3), ask(4));
        let lines = || {
            let waits = watching.own_waits();
            waits.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let all = [2, 3, 4].map(|of| format!("{} waits for the answer of {}", pid(1), pid(of)));
        assert_eq!(lines(), all);
        answered.complete(());
        assert_eq!(lines(), all[1..]);
        drop(dropped);
        assert_eq!(lines(), all[2..]);
        // Ordering: Relaxed, because only this thread uses the flag.
        asker.1.store(true, Ordering::Relaxed);
        assert!(lines().is_empty() && unwanted.is_cancelled());
    }

    #[test]
    fn a_thread_asks_until_it_waits_no_longer() {
        let watching = watching();
        let asked = asks((pid(2), 1));
        let waits = watching.own_waits();
        assert_eq!(waits.len(), 1);
        assert_eq!(waits[0].party, Party::Thread(thread::current().id()));
        assert_eq!(waits[0].owners, [Party::Process(pid(2), 1)]);
        drop(asked);
        assert!(watching.own_waits().is_empty());
    }

    #[test]
    fn waits_for_room_and_for_an_end_say_so() {
        let watching = watching();
        let waits = [
            awaits(crate::watch::MAILBOX, (pid(2), 1)),
            awaits(crate::watch::END, (pid(3), 1)),
        ];
        let me = thread::current().id();
        let lines: Vec<_> = watching
            .own_waits()
            .iter()
            .map(ToString::to_string)
            .collect();
        let room = format!("{me:?} waits for room in the mailbox of {}", pid(2));
        let end = format!("{me:?} waits for the end of {}", pid(3));
        assert_eq!(lines, [room, end]);
        drop(waits);
        assert!(watching.own_waits().is_empty());
    }

    #[test]
    fn a_wait_of_a_waker_lasts_as_long_as_the_waker_and_holds() {
        struct Woken(AtomicBool);
        impl Wake for Woken {
            fn wake(self: Arc<Self>) {
                // Ordering: Relaxed, because only this thread uses the flag.
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let watching = watching();
        let (woken, holds) = (
            Arc::new(Woken(AtomicBool::new(false))),
            Arc::new(AtomicBool::new(true)),
        );
        let waker = Waker::from(Arc::clone(&woken));
        let held = Arc::clone(&holds);
        // Ordering: Relaxed: only this thread uses the flags.
        let is_held = move || held.load(Ordering::Relaxed);
        let noted = awaits_by(&waker, crate::watch::END, (pid(2), 1), is_held);
        let other = noted.clone();
        assert_eq!(watching.own_waits()[0].owners, [Party::Process(pid(2), 1)]);
        // Ordering: Relaxed: only this thread uses the flags.
        holds.store(false, Ordering::Relaxed);
        assert!(watching.own_waits().is_empty());
        // Ordering: Relaxed: only this thread uses the flags.
        holds.store(true, Ordering::Relaxed);
        drop(noted);
        assert_eq!(watching.own_waits().len(), 1);
        other.wake();
        // Ordering: Relaxed: only this thread uses the flags.
        assert!(woken.0.load(Ordering::Relaxed) && watching.own_waits().is_empty());
        // A thread is in no scheduler.
        let _none = awaits_beside(crate::watch::END, pid(2));
        assert!(watching.own_waits().is_empty());
    }

    #[test]
    fn questions_that_are_answered_leave_no_memory() {
        let _watching = watching();
        for _ in 0..100_000 {
            drop(asks((pid(2), 1)));
        }
        assert!(lock(own()).questions.capacity() < 100);
    }

    #[test]
    fn a_watcher_that_sleeps_is_woken_by_a_question() {
        let _watching = watching();
        let watcher = thread::spawn(|| {
            let mut seen = u64::MAX;
            while seen == u64::MAX {
                seen = pause(seen, Duration::ZERO, || false);
            }
            // Returns at the next question: nothing else begins in this program.
            pause(seen, Duration::ZERO, || false)
        });
        while !watcher.is_finished() {
            drop(asks((pid(2), 1)));
            thread::yield_now();
        }
        watcher.join().unwrap();
    }
}
