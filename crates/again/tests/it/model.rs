//! `Seen` compared with a plain model, which forgets no question.

use crate::support::{Answer, ask};
use ganger_again::{Numbers, Once, Seen};
use ganger_proc_api::{CommandError, Reply};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::sync::mpsc::Receiver;

#[derive(Debug, Clone)]
enum Act {
    /// The sender asks something new.
    Ask(usize),
    /// The sender asks an earlier question again, counted back from its newest question.
    Again(usize, usize),
    /// The sender draws a number, and keeps the question for later.
    Draw(usize),
    /// Some work is answered, or its reply is dropped.
    Answer(usize, bool),
    /// The receiver is written down and restored; no work is under way.
    Restore,
}

fn act() -> impl Strategy<Value = Act> {
    let sender = 0..6_usize;
    prop_oneof![
        4 => sender.clone().prop_map(Act::Ask),
        4 => (sender.clone(), 0..8_usize).prop_map(|(sender, back)| Act::Again(sender, back)),
        1 => sender.prop_map(Act::Draw),
        5 => any::<(usize, bool)>().prop_map(|(which, is_value)| Act::Answer(which, is_value)),
        1 => Just(Act::Restore),
    ]
}

#[derive(Default)]
struct Model {
    /// All questions given out as new.
    done: HashSet<usize>,
    /// Their answers: a value, or a drop.
    answers: HashMap<usize, Option<u64>>,
    /// Waiting askers, by question.
    waiting: HashMap<usize, Vec<Receiver<Answer>>>,
    /// The questions under way.
    work: Vec<(usize, Reply<u64>)>,
}

impl Model {
    /// Asks a question, and returns whether it was refused.
    fn ask(&mut self, seen: &mut Seen<u64>, question: usize, once: &Once<&'static str>) -> bool {
        let (fresh, told) = ask(seen, once);
        if let Some(work) = fresh {
            assert!(self.done.insert(question), "{question} is done twice");
            self.work.push((question, work));
        } else if let Ok(answer) = told.try_recv() {
            if let Err(CommandError::Failed(_)) = answer {
                return true;
            }
            check(&answer, self.answers[&question]);
            return false;
        }
        assert!(self.done.contains(&question), "it waits for nothing");
        self.waiting.entry(question).or_default().push(told);
        false
    }

    fn answer(&mut self, which: usize, is_value: bool) {
        if self.work.is_empty() {
            return;
        }
        let (question, work) = self.work.swap_remove(which % self.work.len());
        let answer = is_value.then_some(question as u64);
        match answer {
            Some(value) => work.complete(value),
            None => drop(work),
        }
        self.answers.insert(question, answer);
        for told in self.waiting.remove(&question).unwrap_or_default() {
            check(&told.try_recv().expect("each is told"), answer);
            assert!(told.try_recv().is_err(), "once");
        }
    }
}

fn check(answer: &Answer, expected: Option<u64>) {
    match (answer, expected) {
        (Ok(value), Some(expected)) => assert_eq!(*value, expected),
        (Err(CommandError::Dropped), None) => {}
        other => panic!("{other:?}"),
    }
}

fn play(acts: &[Act], (most_senders, most_answers): (usize, usize)) {
    let mut seen = Seen::bounded(most_senders, most_answers);
    let mut model = Model::default();
    let mut senders: Vec<_> = (0..6).map(|_| Numbers::new()).collect();
    // By sender, in the order of their numbers.
    let mut asked: Vec<Vec<(usize, Once<&'static str>)>> = vec![Vec::new(); 6];
    let (mut drawn, mut heard) = (0, HashSet::new());
    for act in acts {
        match *act {
            Act::Ask(sender) | Act::Draw(sender) => {
                drawn += 1;
                asked[sender].push((drawn, senders[sender].once("")));
                if let Act::Ask(_) = act {
                    heard.insert(sender);
                    let (question, once) = &asked[sender][asked[sender].len() - 1];
                    let is_refused = model.ask(&mut seen, *question, once);
                    let is_within =
                        asked[sender].len() <= most_answers && heard.len() <= most_senders;
                    assert!(!is_refused || !is_within, "{question} is refused");
                }
            }
            Act::Again(sender, back) => {
                let of = &asked[sender];
                if let Some(at) = of.len().checked_sub(back + 1) {
                    heard.insert(sender);
                    let is_refused = model.ask(&mut seen, of[at].0, &of[at].1);
                    let is_within = of.len() <= most_answers && heard.len() <= most_senders;
                    assert!(!is_refused || !is_within, "{} is refused", of[at].0);
                }
            }
            Act::Answer(which, is_value) => model.answer(which, is_value),
            Act::Restore if model.work.is_empty() => {
                let bytes = postcard::to_stdvec(&seen).unwrap();
                seen = postcard::from_bytes(&bytes).unwrap();
            }
            Act::Restore => {}
        }
        assert!(seen.senders() <= most_senders);
        for sender in &senders {
            assert!(seen.answers(sender.sender()) <= most_answers);
        }
    }
    // All questions under way are answered, and no asker waits for ever.
    while !model.work.is_empty() {
        model.answer(0, true);
    }
    assert!(model.waiting.is_empty());
}

proptest! {
    // pins: C7
    // case: 44
    #[test]
    fn nothing_is_done_twice_and_each_asker_has_the_one_answer(
        acts in proptest::collection::vec(act(), 0..120),
        bounds in (1..8_usize, 1..8_usize),
    ) {
        play(&acts, bounds);
    }

    // pins: C7
    #[test]
    fn within_the_bounds_nothing_is_refused(
        acts in proptest::collection::vec(act(), 0..60),
    ) {
        play(&acts, (6, 60));
    }
}
