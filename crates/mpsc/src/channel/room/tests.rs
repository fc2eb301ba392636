//! The room compared with a model, on one thread: the number of places, the order of wake-ups, and
//! that no waiter sleeps beside room.

use super::*;
use ganger_sync::Parker;
use proptest::collection::vec;
use proptest::prelude::*;

/// A waiter, and whether it has been woken since its last look.
struct Sleeper<'a> {
    waiting: Waiting<'a>,
    parker: Arc<Parker>,
    is_awake: bool,
}

/// A room, its receiver, and their expected state.
struct Model<'a> {
    room: &'a Room,
    giver: &'a Giver,
    /// How many places are taken.
    taken: usize,
    /// How many have been given back since the receiver last looked for waiters.
    unseen: usize,
    /// In the order in which they came.
    line: Vec<Sleeper<'a>>,
}

impl<'a> Model<'a> {
    fn new(room: &'a Room, giver: &'a Giver) -> Self {
        Self {
            room,
            giver,
            taken: 0,
            unseen: 0,
            line: Vec::new(),
        }
    }

    fn free(&self) -> usize {
        self.room.capacity - self.taken
    }

    fn try_take(&mut self) {
        assert_eq!(self.room.try_take(), self.free() > 0);
        self.taken += usize::from(self.free() > 0);
    }

    /// Adds a sender that takes a place, or waits.
    fn enter(&mut self) {
        self.line.push(Sleeper {
            waiting: Waiting::new(self.room),
            parker: Arc::default(),
            is_awake: false,
        });
        self.look_again(self.line.len() - 1);
    }

    /// Makes a waiter check again, woken or not.
    fn look_again(&mut self, place: usize) {
        let is_there = self.free() > 0;
        let Sleeper {
            waiting,
            parker,
            is_awake,
        } = &mut self.line[place];
        *is_awake = false;
        let waited = waiting.wait(&Arc::clone(parker).into(), || false);
        assert_eq!(waited, is_there.then_some(Waited::Place));
        if is_there {
            self.taken += 1;
            self.line.remove(place);
        }
    }

    fn receive(&mut self, items: usize) {
        let items = items.min(self.taken);
        self.taken -= items;
        self.unseen += items;
        if self.unseen >= self.room.lot {
            self.unseen = 0;
        }
        self.giver.give(items);
    }

    fn find_nothing(&mut self) {
        self.receive(self.taken);
        self.unseen = 0;
        self.giver.look();
    }

    /// Checks the free places, and records which waiters have been woken.
    fn check(&mut self) {
        assert_eq!(self.room.free(), self.free());
        let asleep = self.line.iter_mut().filter(|sleeper| !sleeper.is_awake);
        let mut woken = 0;
        for (place, sleeper) in asleep.enumerate() {
            if sleeper.parker.has_token() {
                assert_eq!(place, 0, "woken before one that has waited longer");
                sleeper.parker.park();
                sleeper.is_awake = true;
                woken += 1;
            }
        }
        assert!(woken <= 1, "{woken} were woken at once");
        let is_one_awake = self.line.iter().any(|sleeper| sleeper.is_awake);
        assert!(
            self.line.is_empty() || is_one_awake || self.free() < self.room.lot + self.unseen,
            "all sleep beside {} places",
            self.free()
        );
    }

    /// Lets all waiters get a place in the end.
    fn settle(&mut self) {
        for _ in 0..2 * self.line.len() {
            self.find_nothing();
            self.check();
            while let Some(place) = self.line.iter().position(|sleeper| sleeper.is_awake) {
                self.look_again(place);
                self.check();
            }
        }
        assert!(self.line.is_empty(), "{} wait for ever", self.line.len());
        self.find_nothing();
        assert_eq!(self.room.free(), self.room.capacity);
    }
}

#[derive(Debug, Clone)]
enum Op {
    TryTake(usize),
    Enter,
    LookAgain(usize),
    GiveUp(usize),
    Receive(usize),
    FindNothing,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (1..20_usize).prop_map(Op::TryTake),
        6 => Just(Op::Enter),
        6 => any::<usize>().prop_map(Op::LookAgain),
        2 => any::<usize>().prop_map(Op::GiveUp),
        4 => (0..6_usize).prop_map(Op::Receive),
        1 => Just(Op::FindNothing),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_waiter_sleeps_beside_room(capacity in 1..20_usize, ops in vec(op(), 0..100)) {
        let room = Arc::new(Room::new(capacity));
        let giver = Giver::new(Arc::clone(&room));
        let mut model = Model::new(&room, &giver);
        for op in ops {
            match op {
                Op::TryTake(times) => (0..times).for_each(|_| model.try_take()),
                Op::Enter => model.enter(),
                Op::Receive(items) => model.receive(items),
                Op::FindNothing => model.find_nothing(),
                Op::LookAgain(which) if !model.line.is_empty() => {
                    model.look_again(which % model.line.len());
                }
                Op::GiveUp(which) if !model.line.is_empty() => {
                    let which = which % model.line.len();
                    drop(model.line.remove(which));
                }
                Op::LookAgain(_) | Op::GiveUp(_) => {}
            }
            model.check();
        }
        model.settle();
    }
}

/// Checks that no wake-up comes before the lot, and a single wake-up for it.
#[test]
fn a_waiter_is_woken_for_a_lot() {
    for (capacity, lot) in [(1, 1), (4, 1), (5, 2), (16, 4), (1_024, 256)] {
        let room = Arc::new(Room::new(capacity));
        let giver = Giver::new(Arc::clone(&room));
        let mut model = Model::new(&room, &giver);
        (0..capacity).for_each(|_| model.try_take());
        (0..3).for_each(|_| model.enter());
        let awake = |model: &mut Model<'_>| {
            model.check();
            model.line.iter().filter(|sleeper| sleeper.is_awake).count()
        };
        (1..lot).for_each(|_| model.receive(1));
        assert_eq!(awake(&mut model), 0);
        model.receive(1);
        assert_eq!(awake(&mut model), 1);
        model.settle();
    }
}

/// Checks that a receive wakes no waiter in vain once all have gone.
#[test]
fn the_line_is_empty_when_all_have_left() {
    let room = Arc::new(Room::new(2));
    let giver = Giver::new(Arc::clone(&room));
    let mut model = Model::new(&room, &giver);
    (0..10).for_each(|_| model.enter());
    assert_eq!((model.line.len(), room.line.len()), (8, 8));
    model.receive(1);
    model.check();
    // The first waiter is woken, and is not counted any more.
    assert_eq!(room.line.len(), 7);
    model.line.truncate(3);
    // The woken waiter is the first, and stays.
    assert_eq!(room.line.len(), 2);
    model.line.clear();
    assert_eq!(room.line.len(), 0);
}

/// Counts waiters, however often each of them checks.
#[test]
fn a_waiter_that_looks_again_counts_once() {
    let line = Line::new();
    let mut ticket = None;
    for _ in 0..3 {
        line.enter(&mut ticket, Waker::noop());
        assert_eq!(line.len(), 1);
    }
    assert!(line.leave(ticket.unwrap()).is_some());
    assert_eq!(line.len(), 0);
}

#[test]
fn the_line_keeps_no_memory_of_a_burst() {
    let line = Line::new();
    let mut tickets = [None; 10_000];
    for ticket in &mut tickets {
        line.enter(ticket, Waker::noop());
    }
    assert!(line.room() >= 10_000);
    for ticket in tickets.into_iter().flatten() {
        assert!(line.leave(ticket).is_some());
    }
    assert!(line.room() <= 256);
}
