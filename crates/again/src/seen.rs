//! The questions that a receiver has seen, with their answers.
//!
//! **Problem.** A question that comes again must not be done again. Memory is bounded, so answers
//! are forgotten, and a forgotten question must not pass for a new one.
//!
//! **Rejected.** To forget by time: an asker may be paused for longer than any time. A message from
//! the asker for each answer it has: traffic doubles, and a dead sender says nothing. (RIFL, C. Lee
//! et al., SOSP 2015, has both: leases of clients, and acknowledgements that ride on requests.)
//!
//! **Protocol.** Numbers of a run grow. A forgotten question leaves its number as a *floor*:
//! unknown questions at or below a floor are refused.
//! 1. The receiver keeps the last *answers* of a sender. The answer with the lowest number goes
//!    first, and raises the floor of the sender.
//! 2. The receiver keeps the *senders* heard last. A sender that goes raises the floor of its run
//!    to its greatest number.
//! 3. A *run* without senders goes when there are too many, and raises the floor of all runs.
//!    Numbers follow the clock, so a new run is above this floor.
//!
//! **Proof sketch.** A receiver does a question when the question is neither known nor at or below
//! a floor. The done question is known until a floor has reached its number, and floors never fall.

use crate::not_done::NotDone;
use crate::once::{Once, SenderId};
use crate::question::Question;
use crate::run::Run;
use ganger_proc_api::Reply;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Remembers the last answers of a receiver, by sender: a question asked twice is done once, for as
/// long as the `Seen` lives. See [`fresh`](Self::fresh).
///
/// Bounded: the senders heard last, and the last answers of each. Older questions are refused, and
/// never done again. With the feature `serde`, a `Seen` can be written down and restored with the
/// state of its receiver. The answer to a question under way is [`NotDone::Unknown`] afterwards.
pub struct Seen<T> {
    pub(crate) senders: usize,
    pub(crate) answers: usize,
    /// Counts the questions.
    pub(crate) time: u64,
    /// Of unknown runs.
    pub(crate) floor: u64,
    pub(crate) runs: BTreeMap<Run, OfRun<T>>,
    /// By the time when they were heard last.
    pub(crate) by_age: BTreeMap<u64, SenderId>,
}

pub(crate) struct OfRun<T> {
    /// Of unknown senders.
    pub(crate) floor: u64,
    pub(crate) heard: u64,
    pub(crate) senders: BTreeMap<u64, OfSender<T>>,
}

pub(crate) struct OfSender<T> {
    pub(crate) floor: u64,
    pub(crate) heard: u64,
    pub(crate) questions: BTreeMap<u64, Arc<Question<T>>>,
}

/// 1,024 senders, 32 answers of each.
impl<T> Default for Seen<T> {
    fn default() -> Self {
        Self::bounded(1024, 32)
    }
}

impl<T> Seen<T> {
    /// Remembers up to `senders` senders, and up to `answers` answers of each. Zero counts as 1.
    /// `answers` also limits the questions of a sender under way at a time.
    #[must_use]
    pub fn bounded(senders: usize, answers: usize) -> Self {
        Self {
            senders: senders.max(1),
            answers: answers.max(1),
            time: 0,
            floor: 0,
            runs: BTreeMap::new(),
            by_age: BTreeMap::new(),
        }
    }

    /// Returns the number of senders that are remembered.
    #[must_use]
    pub fn senders(&self) -> usize {
        self.by_age.len()
    }

    /// Returns the number of remembered questions of this sender, with the questions under way.
    #[must_use]
    pub fn answers(&self, sender: SenderId) -> usize {
        let run = self.runs.get(&sender.run);
        let sender = run.and_then(|it| it.senders.get(&sender.serial));
        sender.map_or(0, |it| it.questions.len())
    }
}

impl<T: Any + Clone + Send + Sync> Seen<T> {
    /// Gives the message of a new question, and the reply for its answer. The receiver may keep and
    /// move the reply as any. The reply is never `is_cancelled`: an asker that has gone may ask
    /// again.
    ///
    /// `None` for a question that has come before. Its asker gets the same answer: a value, an
    /// error by its text, or `Dropped`. While the question is under way, the asker waits. An asker
    /// with a question older than the remembered ones gets [`NotDone::TooOld`], inside of
    /// `CommandError::Failed`.
    ///
    /// Never blocks. Clones the answer for each asker but the first. O(log n) for n remembered
    /// answers; O(senders) when the senders heard longest ago have questions under way.
    ///
    /// ```
    /// use ganger_again::{Numbers, Seen};
    /// use ganger_proc_api::{BoxError, Reply};
    /// use ganger_sched::Call;
    ///
    /// let (mut numbers, mut seen, mut done) = (Numbers::new(), Seen::default(), 0);
    /// let question = numbers.once("how often?");
    /// let mut asked = Vec::new();
    /// for _ in 0..3 {
    ///     let (tell, told) = std::sync::mpsc::channel();
    ///     asked.push(Call::by(move |reply: Reply<u32>| Ok(tell.send(reply)?)).begin());
    ///     if let Some((_, reply)) = seen.fresh(question.clone(), told.recv()?) {
    ///         done += 1;
    ///         reply.complete(done);
    ///     }
    /// }
    /// for answer in asked {
    ///     assert_eq!(answer.wait()?, 1);
    /// }
    /// # Ok::<(), BoxError>(())
    /// ```
    pub fn fresh<M>(&mut self, once: Once<M>, reply: Reply<T>) -> Option<(M, Reply<T>)> {
        let place = self.place(once.sender, once.number);
        match place {
            Ok(Place::Known(question)) => question.join(reply),
            Ok(Place::New(questions)) => {
                let (question, work) = Question::begin(reply);
                questions.insert(once.number, question);
                return Some((once.message, work));
            }
            Err(why) => reply.fail(why),
        }
        None
    }

    fn place(&mut self, sender: SenderId, number: u64) -> Result<Place<'_, T>, NotDone> {
        self.time += 1;
        let known = self.runs.get(&sender.run);
        let floor = known.map_or(self.floor, |it| it.floor);
        let known = known.and_then(|it| it.senders.get(&sender.serial));
        match known {
            Some(known) => _ = self.by_age.remove(&known.heard),
            None if number <= floor => return Err(NotDone::TooOld),
            None => self.make_room()?,
        }
        let now = self.time;
        self.by_age.insert(now, sender);
        // A new run, and a new sender, may be forgotten ones, and begin above the floor.
        let run = (self.runs.entry(sender.run)).or_insert_with(|| OfRun::above(floor));
        run.heard = now;
        let of = run
            .senders
            .entry(sender.serial)
            .or_insert_with(|| OfSender {
                floor,
                heard: now,
                questions: BTreeMap::new(),
            });
        of.heard = now;
        if let Some(question) = of.questions.get(&number) {
            return Ok(Place::Known(Arc::clone(question)));
        }
        if number <= of.floor {
            return Err(NotDone::TooOld);
        }
        if of.questions.len() >= self.answers {
            let mut answered = of.questions.iter().filter(|(_, it)| it.known().is_some());
            match answered.next().map(|(lowest, _)| *lowest) {
                None => return Err(NotDone::Busy),
                Some(lowest) if number < lowest => return Err(NotDone::TooOld),
                Some(lowest) => {
                    of.questions.remove(&lowest);
                    of.floor = of.floor.max(lowest);
                }
            }
        }
        Ok(Place::New(&mut of.questions))
    }

    /// Forgets the sender heard longest ago, if the most senders are remembered.
    pub(crate) fn make_room(&mut self) -> Result<(), NotDone> {
        while self.by_age.len() >= self.senders {
            let is_idle = |it: &&SenderId| {
                let run = self.runs.get(&it.run);
                let sender = run.and_then(|run| run.senders.get(&it.serial));
                sender.is_none_or(|sender| sender.questions.values().all(|it| it.known().is_some()))
            };
            let oldest = self.by_age.values().find(is_idle).copied();
            self.forget(oldest.ok_or(NotDone::Busy)?);
        }
        Ok(())
    }

    fn forget(&mut self, sender: SenderId) {
        let Some(run) = self.runs.get_mut(&sender.run) else {
            return;
        };
        if let Some(gone) = run.senders.remove(&sender.serial) {
            self.by_age.remove(&gone.heard);
            let greatest = gone
                .questions
                .last_key_value()
                .map_or(0, |(number, _)| *number);
            run.floor = run.floor.max(gone.floor).max(greatest);
        }
        while self.runs.len() > self.senders {
            let idle = self.runs.iter().filter(|(_, run)| run.senders.is_empty());
            let Some(oldest) = idle.min_by_key(|(_, run)| run.heard).map(|(run, _)| *run) else {
                break;
            };
            if let Some(gone) = self.runs.remove(&oldest) {
                self.floor = self.floor.max(gone.floor);
            }
        }
    }
}

impl<T> OfRun<T> {
    pub(crate) fn above(floor: u64) -> Self {
        Self {
            floor,
            heard: 0,
            senders: BTreeMap::new(),
        }
    }
}

/// Where a question belongs.
enum Place<'a, T> {
    Known(Arc<Question<T>>),
    New(&'a mut BTreeMap<u64, Arc<Question<T>>>),
}

impl<T> fmt::Debug for Seen<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seen")
            .field("senders", &self.senders())
            .field("runs", &self.runs.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ganger_proc_api::Completer;

    /// Asks a question, and returns whether the question was fresh, and is answered.
    fn ask(seen: &mut Seen<u64>, (run, serial, number): (Run, u64, u64)) -> bool {
        let completer = Completer::from_fn("{test|1}".parse().unwrap(), 0, drop);
        let sender = SenderId { run, serial };
        let message = ();
        let once = Once {
            sender,
            number,
            message,
        };
        let work = seen.fresh(once, Reply::new(completer));
        work.map(|it| it.1.complete(number)).is_some()
    }

    // pins: C7
    #[test]
    fn a_forgotten_run_is_refused_whichever_of_its_senders_asks() {
        let mut seen = Seen::bounded(2, 2);
        for run in 1..=4_u64 {
            assert!(ask(&mut seen, (run.into(), 1, 10 + run)));
        }
        assert_eq!((seen.runs.len(), seen.floor), (3, 11));
        assert!(!ask(&mut seen, (1, 1, 11)));
        assert!(
            !ask(&mut seen, (9, 1, 11)),
            "a run as old as one that is forgotten"
        );
        assert!(ask(&mut seen, (9, 1, 20)), "a later one");
        // The run is back, and its questions from before are old all the same.
        assert!(ask(&mut seen, (1, 1, 30)));
        assert!(!ask(&mut seen, (1, 1, 11)));
        assert!(!ask(&mut seen, (1, 2, 11)));
        assert!(ask(&mut seen, (1, 2, 31)));
        assert!(seen.runs.len() <= 3 && seen.senders() <= 2);
    }

    // pins: C7
    #[test]
    fn a_forgotten_sender_is_refused_and_others_of_its_run_are_not() {
        let mut seen = Seen::bounded(2, 2);
        for serial in 1..=3 {
            assert!(ask(&mut seen, (1, serial, 10 * serial)));
        }
        assert!(!ask(&mut seen, (1, 1, 10)));
        assert!(ask(&mut seen, (1, 1, 40)));
        assert!(!ask(&mut seen, (1, 1, 10)));
        // The clock of another program is behind, and its numbers are its own.
        assert!(ask(&mut seen, (2, 1, 5)));
    }
}
