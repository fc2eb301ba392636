//! Compares the events shown to a process with a model of two queues.

use crate::base::stats::Counters;
use crate::limits::room::{CONTROL, MESSAGE};
use crate::policy::SYSTEM_STREAK;
use crate::process::about::About;
use crate::process::asked::Asked;
use crate::process::process_box::ProcessBox;
use crate::process::state::State;
use crate::runtime::item::Item;
use crate::runtime::owned::{Core, Frequent, Gathered};
use ganger_mpsc::Single;
use ganger_proc_api::{
    Completion, Context, Event, EventQueue, Events, Message, Payload, Process, StepOutput,
    StepResult, UpgradeRequest,
};
use proptest::prelude::*;
use std::collections::VecDeque;

/// An item, waiting or shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thing {
    Message(u64),
    Completion(u64),
    Control(u64),
    Cancel,
    Upgrade,
}

impl Thing {
    fn is_system(self) -> bool {
        !matches!(self, Self::Message(_) | Self::Completion(_))
    }

    fn of(event: Event) -> Self {
        let number = |message: Message| message.payloads.into_first().as_u64().unwrap();
        match event {
            Event::Message(message) => Self::Message(number(message)),
            Event::Control(message) => Self::Control(number(*message)),
            Event::Completion(completion) => Self::Completion(completion.tag),
            Event::Cancel(_) => Self::Cancel,
            other => panic!("{other:?}"),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Message,
    Completion,
    /// A completion before its handler has returned.
    Answer,
    Control,
    Cancel,
    Upgrade,
    /// A turn whose step takes the events whose places, modulo eight, are in the set.
    Turn(u8),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => Just(Act::Message),
        1 => Just(Act::Completion),
        3 => Just(Act::Answer),
        4 => Just(Act::Control),
        1 => Just(Act::Cancel),
        1 => Just(Act::Upgrade),
        5 => any::<u8>().prop_map(Act::Turn),
    ]
}

/// A lane: left items, and new ones.
#[derive(Default)]
struct Lane {
    left: VecDeque<Thing>,
    new: VecDeque<Thing>,
}

#[derive(Default)]
struct Model {
    system: Lane,
    others: Lane,
    streak: u8,
}

impl Model {
    fn arrive(&mut self, thing: Thing) {
        let lane = if thing.is_system() {
            &mut self.system
        } else {
            &mut self.others
        };
        lane.new.push_back(thing);
    }

    /// Returns the next batch: an upgrade alone, or none if nothing is new.
    fn turn(&mut self, limit: usize) -> Vec<Thing> {
        let others_wait = !self.others.new.is_empty();
        let is_passed_over =
            others_wait && !self.system.new.is_empty() && self.streak == SYSTEM_STREAK;
        let had_system = !self.system.new.is_empty();
        let mut system = Vec::new();
        let mut is_cut = false;
        while !is_passed_over && system.len() < limit && !is_cut {
            match self.system.new.front() {
                None => break,
                Some(Thing::Upgrade) if system.is_empty() => {
                    self.system.new.pop_front();
                    self.streak = if others_wait { self.streak + 1 } else { 0 };
                    return vec![Thing::Upgrade];
                }
                Some(Thing::Upgrade) => is_cut = true,
                Some(_) => system.extend(self.system.new.pop_front()),
            }
        }
        let kept_out = had_system && !is_passed_over && (is_cut || system.len() == limit);
        self.streak = if others_wait && kept_out {
            self.streak + 1
        } else {
            0
        };
        let room = if is_cut { 0 } else { limit - system.len() };
        let others: Vec<_> = (0..room)
            .map_while(|_| self.others.new.pop_front())
            .collect();
        if system.is_empty() && others.is_empty() {
            return Vec::new();
        }
        let left = |lane: &mut Lane| std::mem::take(&mut lane.left);
        let mut batch: Vec<Thing> = left(&mut self.system).into();
        batch.extend(system);
        batch.extend(left(&mut self.others));
        batch.extend(others);
        batch
    }

    fn leave(&mut self, thing: Thing) {
        if thing.is_system() {
            self.system.left.push_back(thing);
        } else {
            self.others.left.push_back(thing);
        }
    }

    fn is_empty(&self) -> bool {
        self.system.new.is_empty() && self.others.new.is_empty()
    }
}

struct NoopProcess;

impl Process for NoopProcess {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
        Ok(())
    }
}

/// The real thing, without a scheduler.
struct Real {
    state: State<Item>,
    core: Core,
    counters: Counters,
}

impl Real {
    fn new() -> Self {
        let mut core = Core::default();
        core.process = Some(ProcessBox::boxed(Box::new(NoopProcess)));
        Self {
            state: State::new(),
            core,
            counters: Counters::new(false),
        }
    }

    fn arrive(&mut self, thing: Thing) {
        let item = match thing {
            Thing::Message(n) => Item::Event(Event::Message(Message::new("n", n))),
            Thing::Control(n) => Item::Event(Event::Control(Box::new(Message::new("n", n)))),
            Thing::Cancel => Item::Event(Event::Cancel("now".into())),
            Thing::Upgrade => {
                let request = UpgradeRequest::process(NoopProcess, "main", ());
                Item::Upgrade(Box::new(request))
            }
            Thing::Completion(tag) => {
                let token = self.core.yields.number();
                self.core.yields.insert(token, tag, Asked::default());
                Item::Event(Event::Completion(completion(tag, token)))
            }
        };
        let pushed = if thing.is_system() {
            self.state.push_system(item)
        } else {
            self.state.push(item)
        };
        assert!(pushed.is_ok());
    }

    /// Answers a yield as a dispatch does.
    fn answer(&mut self, tag: u64) {
        self.core.receive(&self.state, |_| 0);
        let token = self.core.yields.number();
        let answer = Item::Event(Event::Completion(completion(tag, token)));
        self.core.push_answer(tag, token, Single::of(answer));
        self.core.expect_answers();
    }

    /// Runs the next batch, of which the step takes the places chosen by `takes`.
    fn turn(&mut self, limit: usize, lends: bool, takes: impl Fn(usize) -> bool) -> Vec<Thing> {
        self.core.receive(&self.state, |_| 0);
        let core = &mut self.core;
        let gathered = match core.gather(limit) {
            Frequent::Rare(events) => core.gather_rare(&self.state, events, limit, &self.counters),
            Frequent::Step(events) => Gathered::Step(events),
            Frequent::Nothing => Gathered::Nothing,
        };
        let events = match gathered {
            Gathered::Nothing => return Vec::new(),
            Gathered::Upgrade(_) => return vec![Thing::Upgrade],
            Gathered::Signal(..) => unreachable!("none was sent"),
            Gathered::Terminated => unreachable!("nothing terminates it"),
            Gathered::Step(events) | Gathered::Cancel(_, events) => events,
            Gathered::HeldByTimer(_) => unreachable!("no message here can be taken back"),
        };
        // The step does not go on.
        core.repeats = 0;
        let cursor = core.cursor(events);
        let (_, mut queue) = core.begin_step(&cursor).unwrap();
        let mut shown = Vec::new();
        queue.visit(&mut |event| shown.push(peek(event)));
        let mut left = if lends {
            queue.events()
        } else {
            Events::new(&mut queue)
        };
        let wanted = (0..shown.len()).filter(|place| takes(*place));
        let taken = wanted.enumerate().map(|(before, place)| {
            assert_eq!(left.len(), shown.len() - before);
            let first_left = (0..place).find(|place| !takes(*place)).unwrap_or(place);
            assert_eq!(left.peek().map(peek), Some(shown[first_left]));
            // The number of events left in front.
            match place - before {
                0 => Thing::of(left.next().unwrap()),
                count => take(&mut left, count),
            }
        });
        let taken: Vec<Thing> = taken.collect();
        let mut rest = Vec::new();
        queue.visit(&mut |event| rest.push(peek(event)));
        let untaken = (0..).zip(&shown).filter(|(place, _)| !takes(*place));
        assert!(rest.iter().eq(untaken.map(|(_, thing)| thing)));
        let first = queue.front().map(peek);
        assert_eq!((first, queue.len()), (rest.first().copied(), rest.len()));
        let wanted = (0..).zip(&shown).filter(|(place, _)| takes(*place));
        assert!(taken.iter().eq(wanted.map(|(_, thing)| thing)));
        queue.count();
        let left = queue.settle();
        assert_eq!(queue.places, places(&taken));
        let mut kept = Vec::new();
        queue.visit(&mut |event| kept.push(peek(event)));
        assert_eq!(kept, rest);
        core.keep(left, &About::new(|| ""));
        shown
    }
}

/// Takes the event behind the first `before`.
fn take(events: &mut Events<'_>, mut before: usize) -> Thing {
    let taken = events.take_where(|_| {
        let is_next = before == 0;
        before = before.saturating_sub(1);
        is_next
    });
    Thing::of(taken.unwrap())
}

fn completion(tag: u64, token: u64) -> Completion {
    Completion::of(tag, token, Ok(Payload::from(tag)))
}

fn places(taken: &[Thing]) -> u64 {
    let place = |thing: &Thing| match thing {
        Thing::Message(_) => MESSAGE,
        Thing::Control(_) => CONTROL,
        _ => 0,
    };
    taken.iter().map(place).sum()
}

fn peek(event: &Event) -> Thing {
    let number = |message: &Message| message.payloads.first().unwrap().as_u64().unwrap();
    match event {
        Event::Message(message) => Thing::Message(number(message)),
        Event::Control(message) => Thing::Control(number(message)),
        Event::Completion(completion) => Thing::Completion(completion.tag),
        Event::Cancel(_) => Thing::Cancel,
        other => panic!("{other:?}"),
    }
}

fn run(acts: &[Act], limit: usize, lends: bool) {
    let (mut model, mut real, mut number) = (Model::default(), Real::new(), 0);
    let turn = |model: &mut Model, real: &mut Real, set: u8| {
        let takes = |place: usize| set >> (place % 8) & 1 == 1;
        let expected = model.turn(limit);
        let shown = real.turn(limit, lends, takes);
        assert_eq!(shown, expected);
        if shown != [Thing::Upgrade] {
            let left = (0..).zip(shown).filter(|(place, _)| !takes(*place));
            left.for_each(|(_, thing)| model.leave(thing));
        }
        let has_new = real.core.has_system() || !real.core.pending.is_empty();
        assert_eq!(has_new, !model.is_empty());
        let counts_system = !model.system.new.is_empty();
        assert_eq!(real.state.may_hold_system(), counts_system);
    };
    for &act in acts {
        number += 1;
        let thing = match act {
            Act::Message => Thing::Message(number),
            Act::Completion => Thing::Completion(number),
            Act::Answer => {
                model.arrive(Thing::Completion(number));
                real.answer(number);
                continue;
            }
            Act::Control => Thing::Control(number),
            Act::Cancel => Thing::Cancel,
            Act::Upgrade => Thing::Upgrade,
            Act::Turn(set) => {
                turn(&mut model, &mut real, set);
                continue;
            }
        };
        model.arrive(thing);
        real.arrive(thing);
    }
    while !model.is_empty() {
        turn(&mut model, &mut real, u8::MAX);
    }
}

proptest! {
    // pins: P4, P10, P11
    #[test]
    fn the_batches_are_those_of_two_queues(
        acts in proptest::collection::vec(act(), 1..200),
        limit in 1_usize..12,
        lends in any::<bool>(),
    ) {
        run(&acts, limit, lends);
    }
}

/// Checks that a stale completion between an answer and messages hides none of them.
// pins: P4, P7
#[test]
fn a_stale_completion_hides_nobody() {
    for limit in 1..6 {
        for messages in 0..4 {
            let mut real = Real::new();
            real.answer(100);
            let stale = completion(7, real.core.yields.number());
            let pushed = real.state.push(Item::Event(Event::Completion(stale)));
            assert!(pushed.is_ok());
            (0..messages).for_each(|n| real.arrive(Thing::Message(n)));
            let mut shown = Vec::new();
            loop {
                let batch = real.turn(limit, limit % 2 == 0, |_| true);
                assert!(batch.len() <= limit);
                if batch.is_empty() && real.core.pending.is_empty() {
                    break;
                }
                shown.extend(batch);
            }
            let expected = (0..messages).map(Thing::Message);
            let expected: Vec<_> = [Thing::Completion(100)]
                .into_iter()
                .chain(expected)
                .collect();
            assert_eq!(shown, expected, "at most {limit}");
            assert_eq!(real.counters.stale_completions.get(), 1);
        }
    }
}

// pins: P4
#[test]
fn others_get_every_ninth_batch_of_a_flood() {
    let flood = [Act::Message, Act::Message, Act::Control, Act::Turn(u8::MAX)];
    let mut acts = vec![Act::Control; 100];
    acts.extend(flood.repeat(100));
    for limit in 1..4 {
        run(&acts, limit, true);
        run(&acts, limit, false);
    }
}
