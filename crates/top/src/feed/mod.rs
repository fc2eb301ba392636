//! The threads that ask a source, again and again, and tell the screen.
//!
//! **Problem.** An answer may take seconds, or may never come, and keys have to act at once. A list
//! over a window takes as long as its window, and the head goes on meanwhile.
//!
//! **Protocol.** The screen writes its [`Wish`]. The first thread asks for snapshots, and the
//! second for the list of the view; both sleep for a period between questions, and wake up for a
//! new wish. After a fault that may pass they wait for longer each time. The screen takes [`News`],
//! each with the wish behind it, and drops news of an earlier wish.

use crate::fault::Fault;
use crate::measure::Key;
use crate::source::Source;
use ganger_observe::api::{
    Groups, Letters, Nodes, Processes, ProcessesQuery, Snapshot, Sockets, SocketsQuery, Tree, Waits,
};
use std::collections::HashSet;
use std::io;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The first pause after a fault, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));

/// The most questions for missing processes after each list.
const ASKED: usize = 16;

/// The snapshots between two looks for cycles.
const CYCLES: u32 = 5;

/// A wait for a change.
const LONG: Duration = Duration::from_secs(24 * 60 * 60);

/// The needs of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    Processes(ProcessesQuery),
    Process(Key),
    Groups,
    Tree,
    Waits,
    Sockets(SocketsQuery),
    Nodes,
    Letters,
    /// The snapshots are enough.
    Nothing,
}

/// An answer to a wish.
#[derive(Debug)]
pub(crate) enum Answer {
    /// With the ended processes of the list before.
    Processes(Processes, Vec<Key>),
    /// None, where it has ended.
    Process(Option<Box<ganger_observe::api::Process>>),
    Groups(Groups),
    Tree(Tree),
    Waits(Waits),
    Sockets(Sockets),
    Nodes(Nodes),
    Letters(Letters),
}

/// The messages of the threads.
#[derive(Debug)]
pub(crate) enum News {
    Snapshot(Snapshot),
    /// No snapshot; the next attempt is after this pause.
    Lost(Fault, Duration),
    /// The number of cycles of waits; none where the source does not know.
    Cycles(Option<usize>),
    Answer(Wish, Answer),
    /// No answer.
    Fault(Wish, Fault),
}

/// The screen writes it, and the threads read it.
struct Shared {
    wish: Wish,
    is_paused: bool,
    /// Each change has a number.
    change: u64,
}

/// The threads' side of the wish.
pub(crate) struct Feed {
    shared: Mutex<Shared>,
    changed: Condvar,
}

impl Feed {
    /// Starts the threads, until the receiver has gone.
    pub(crate) fn start<T: From<News> + Send + 'static>(
        source: &Arc<dyn Source>,
        every: Duration,
        tell: &Sender<T>,
    ) -> io::Result<Arc<Self>> {
        let feed = Arc::new(Self {
            shared: Mutex::new(Shared {
                wish: Wish::Nothing,
                is_paused: false,
                change: 0,
            }),
            changed: Condvar::new(),
        });
        for (name, run) in [("head", head as fn(&Task<T>)), ("list", list)] {
            let task = Task {
                feed: Arc::clone(&feed),
                source: Arc::clone(source),
                every,
                tell: tell.clone(),
            };
            let body = move || run(&task);
            thread::Builder::new().name(name.to_owned()).spawn(body)?;
        }
        Ok(feed)
    }

    /// Tells the threads the wish of the screen.
    pub(crate) fn wish(&self, wish: Wish, is_paused: bool) {
        let mut shared = self.lock();
        if (&shared.wish, shared.is_paused) != (&wish, is_paused) {
            shared.wish = wish;
            shared.is_paused = is_paused;
            shared.change += 1;
            self.changed.notify_all();
        }
    }

    /// Ends the pauses of the thread of the lists: the program is back.
    fn nudge(&self) {
        self.lock().change += 1;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns after a time, or earlier when `is_awake`, and not while the screen is paused.
    fn wait(&self, time: Duration, is_awake: impl Fn(&Shared) -> bool) -> Wish {
        let end = Instant::now() + time;
        let mut shared = self.lock();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if !shared.is_paused && (left.is_zero() || is_awake(&shared)) {
                return shared.wish.clone();
            }
            // A pause ends with a change.
            let left = if shared.is_paused {
                Duration::MAX
            } else {
                left
            };
            let waited = self.changed.wait_timeout(shared, left);
            shared = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The parts of a thread of the feed.
struct Task<T: From<News>> {
    feed: Arc<Feed>,
    source: Arc<dyn Source>,
    every: Duration,
    tell: Sender<T>,
}

impl<T: From<News>> Task<T> {
    /// Tells the screen news; returns false when the screen has gone.
    fn tell(&self, news: News) -> bool {
        self.tell.send(news.into()).is_ok()
    }
}

/// A pause after each fault in a row, twice as long as the pause before.
struct BackOff(Duration);

impl BackOff {
    fn next(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (2 * pause).min(PAUSES.1);
        pause
    }
}

/// Asks for snapshots.
fn head<T: From<News>>(task: &Task<T>) {
    let mut back_off = BackOff(PAUSES.0);
    let mut count = 0;
    loop {
        let (news, pause) = match task.source.snapshot() {
            Ok(snapshot) => {
                if back_off.0 > PAUSES.0 {
                    task.feed.nudge();
                }
                back_off = BackOff(PAUSES.0);
                (News::Snapshot(snapshot), task.every)
            }
            Err(fault) => {
                let pause = back_off.next();
                (News::Lost(fault, pause), pause)
            }
        };
        let has_answered = matches!(news, News::Snapshot(_));
        if !task.tell(news) {
            return;
        }
        if has_answered && count % CYCLES == 0 {
            let cycles = task.source.waits().ok().map(|it| it.cycles.len());
            if !task.tell(News::Cycles(cycles)) {
                return;
            }
        }
        count += u32::from(has_answered);
        task.feed.wait(pause, |_| false);
    }
}

/// Asks for the list of the view.
fn list<T: From<News>>(task: &Task<T>) {
    let mut back_off = BackOff(PAUSES.0);
    let mut before = (Wish::Nothing, Vec::new());
    let mut pause = LONG;
    let mut seen = 0;
    loop {
        let wish = task.feed.wait(pause, |shared| shared.change != seen);
        seen = task.feed.lock().change;
        if before.0 != wish {
            before = (wish.clone(), Vec::new());
        }
        let answer = ask(&*task.source, &wish, &mut before.1);
        pause = match &answer {
            Some(Err(fault)) if fault.may_pass() => back_off.next(),
            _ => {
                back_off = BackOff(PAUSES.0);
                task.every
            }
        };
        let has_screen = match answer {
            None => true,
            Some(Ok(answer)) => task.tell(News::Answer(wish, answer)),
            Some(Err(fault)) => task.tell(News::Fault(wish, fault)),
        };
        if !has_screen {
            return;
        }
    }
}

/// Asks once. `before` has the processes of the list before, and afterwards of this list.
pub(crate) fn ask(
    source: &dyn Source,
    wish: &Wish,
    before: &mut Vec<Key>,
) -> Option<Result<Answer, Fault>> {
    Some(match wish {
        Wish::Nothing => return None,
        Wish::Groups => source.groups().map(Answer::Groups),
        Wish::Tree => source.tree().map(Answer::Tree),
        Wish::Waits => source.waits().map(Answer::Waits),
        Wish::Sockets(query) => source.sockets(query).map(Answer::Sockets),
        Wish::Nodes => source.nodes().map(Answer::Nodes),
        Wish::Letters => source.letters().map(Answer::Letters),
        Wish::Process((scheduler, pid)) => match source.process(*scheduler, pid) {
            Ok(mut answer) => Ok(Answer::Process(answer.processes.pop().map(Box::new))),
            Err(Fault::NotHere(_)) => Ok(Answer::Process(None)),
            Err(fault) => Err(fault),
        },
        Wish::Processes(query) => source.processes(query).map(|answer| {
            let processes = answer.processes.iter();
            let keys: Vec<Key> = processes.map(|it| (it.scheduler, it.pid.clone())).collect();
            let gone = gone(source, before, &keys);
            *before = keys;
            Answer::Processes(answer, gone)
        }),
    })
}

/// Returns the ended processes among the missing processes of a list.
fn gone(source: &dyn Source, before: &[Key], now: &[Key]) -> Vec<Key> {
    let listed: HashSet<_> = now.iter().collect();
    let missing = before.iter().filter(|it| !listed.contains(it)).take(ASKED);
    let has_ended = |it: &&Key| matches!(source.process(it.0, &it.1), Err(Fault::NotHere(_)));
    missing.filter(has_ended).cloned().collect()
}

#[cfg(test)]
mod tests;
