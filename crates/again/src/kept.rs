//! Remembered answers by serde: for journals, and for receivers that move to another node.

use crate::once::SenderId;
use crate::question::{Answer, Question};
use crate::run::Run;
use crate::seen::{OfRun, OfSender, Seen};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::any::Any;
use std::collections::BTreeMap;

#[derive(Serialize, Deserialize)]
struct Kept<T> {
    senders: usize,
    answers: usize,
    floor: u64,
    runs: Vec<(Run, u64, u64)>,
    /// The senders heard longest ago are first.
    by_age: Vec<(SenderId, u64, Answers<T>)>,
}

/// By their numbers.
type Answers<T> = Vec<(u64, Answer<T>)>;

impl<T: Any + Clone + Send + Sync + Serialize> Serialize for Seen<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let of = |id: &SenderId| {
            let sender = self.runs.get(&id.run)?.senders.get(&id.serial)?;
            let answers = sender.questions.iter().map(|(number, question)| {
                let known = question.known();
                let answer = known.map_or(Answer::Unknown, |it| Answer::clone(&it));
                (*number, answer)
            });
            Some((*id, sender.floor, answers.collect()))
        };
        let runs = self.runs.iter();
        let kept = Kept {
            senders: self.senders,
            answers: self.answers,
            floor: self.floor,
            runs: runs.map(|(run, it)| (*run, it.floor, it.heard)).collect(),
            by_age: self.by_age.values().filter_map(of).collect(),
        };
        kept.serialize(serializer)
    }
}

impl<'de, T: Any + Clone + Send + Sync + Deserialize<'de>> Deserialize<'de> for Seen<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let kept = Kept::<T>::deserialize(deserializer)?;
        let mut seen = Self::bounded(kept.senders, kept.answers);
        seen.floor = kept.floor;
        for (run, floor, heard) in kept.runs {
            let mut of = OfRun::above(floor);
            of.heard = heard;
            seen.runs.insert(run, of);
            seen.time = seen.time.max(heard);
        }
        for (sender, floor, answers) in kept.by_age {
            seen.time += 1;
            let answers = answers.into_iter();
            let questions = answers.map(|(number, it)| (number, Question::answered(it)));
            let questions: BTreeMap<_, _> = questions.collect();
            let heard = seen.time;
            let of = OfSender {
                floor,
                heard,
                questions,
            };
            let run = seen
                .runs
                .entry(sender.run)
                .or_insert_with(|| OfRun::above(floor));
            run.heard = heard;
            if run.senders.insert(sender.serial, of).is_none() {
                seen.by_age.insert(heard, sender);
            }
        }
        Ok(seen)
    }
}
