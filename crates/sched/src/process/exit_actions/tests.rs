use super::*;
use ganger_sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

const OWNERS: usize = 4;

/// The calls made to actions, by their numbers.
#[derive(Debug, PartialEq, Eq)]
enum Done {
    Released(usize),
    Told(usize),
    Dropped(usize),
}

#[derive(Default)]
struct World {
    /// The owners whose actions are over.
    over: [AtomicBool; OWNERS],
    done: Mutex<Vec<Done>>,
}

impl World {
    fn note(&self, done: Done) {
        self.done.lock().unwrap().push(done);
    }

    fn is_over(&self, owner: usize) -> bool {
        // Ordering: Relaxed: a single thread uses it.
        self.over[owner].load(Ordering::Relaxed)
    }

    fn action(self: &Arc<Self>, owner: usize, tag: u64, number: usize) -> Box<dyn ExitAction> {
        let world = Arc::clone(self);
        Box::new(Noting {
            world,
            owner,
            tag,
            number,
        })
    }
}

/// Notes its calls. The third of each five panics as often as it can.
struct Noting {
    world: Arc<World>,
    owner: usize,
    tag: u64,
    number: usize,
}

impl Noting {
    fn may_panic(&self) {
        assert!(self.number % 5 != 3, "on purpose");
    }
}

impl ExitAction for Noting {
    fn release(&mut self, process: Pid) {
        assert_eq!(process, pid());
        self.world.note(Done::Released(self.number));
        self.may_panic();
    }

    fn tell(self: Box<Self>, process: Pid, cause: &ExitCause) {
        assert_eq!((process, cause), (pid(), &ExitCause::Done));
        self.world.note(Done::Told(self.number));
        self.may_panic();
    }

    fn is_over(&self) -> bool {
        self.world.is_over(self.owner)
    }

    fn key(&self) -> Option<ExitKey> {
        Some(key(self.owner, self.tag))
    }
}

impl Drop for Noting {
    fn drop(&mut self) {
        self.world.note(Done::Dropped(self.number));
    }
}

fn pid() -> Pid {
    "{other|1}".parse().unwrap()
}

fn key(owner: usize, tag: u64) -> ExitKey {
    ExitKey::new(owner as u64, tag)
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Add(usize, u64),
    Remove(usize, u64),
    /// Finishes the actions of the owner.
    GetOver(usize),
    /// Counts events.
    Pass(usize),
}

fn act() -> impl Strategy<Value = Act> {
    let (owner, tag) = (0..OWNERS, 0..3_u64);
    prop_oneof![
        30 => (owner.clone(), tag.clone()).prop_map(|(owner, tag)| Act::Add(owner, tag)),
        2 => (owner.clone(), tag).prop_map(|(owner, tag)| Act::Remove(owner, tag)),
        1 => owner.prop_map(Act::GetOver),
        2 => (0..200_usize).prop_map(Act::Pass),
    ]
}

/// The actions as a plain list: owner, tag and number of each, in the order of their arrival.
type Model = Vec<(usize, u64, usize)>;

/// Returns the request for an act, already carried out by the model; the number is the next
/// action's.
fn request(
    act: Act,
    world: &Arc<World>,
    model: &mut Model,
    number: usize,
) -> Result<ExitRequest, Act> {
    match act {
        Act::Add(owner, tag) => {
            model.push((owner, tag, number));
            Ok(ExitRequest::Add(world.action(owner, tag, number)))
        }
        Act::Remove(owner, tag) => {
            model.retain(|it| (it.0, it.1) != (owner, tag));
            Ok(ExitRequest::Remove(Box::new(key(owner, tag))))
        }
        other => Err(other),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Applies some acts while the process lives, some from its mailbox at its close, and some
    /// late.
    // pins: P12
    #[test]
    fn what_is_not_taken_back_is_released_and_then_told_once_and_in_order(
        living in proptest::collection::vec(act(), 0..400),
        left in proptest::collection::vec(act(), 0..30),
        late in proptest::collection::vec(act(), 0..30),
    ) {
        let counters = Counters::new(false);
        let (world, mut model, mut numbers) = (Arc::<World>::default(), Model::new(), 0..);
        let (mut actions, mut most) = (ExitActions::default(), 0);
        for act in living {
            let number = numbers.next().unwrap();
            match request(act, &world, &mut model, number) {
                Ok(request) => _ = actions.apply(request, &counters),
                // Ordering: Relaxed: a single thread uses it.
                Err(Act::GetOver(owner)) => world.over[owner].store(true, Ordering::Relaxed),
                Err(Act::Pass(events)) => actions.pass(events, &counters),
                Err(_) => unreachable!(),
            }
            let wanted = || model.iter().filter(|it| !world.is_over(it.0));
            most = most.max(wanted().count());
            prop_assert!(actions.actions.list.len() <= SWEEP + 2 * most);
            let is_kept = |it: &&(usize, u64, usize)| {
                !world.done.lock().unwrap().contains(&Done::Dropped(it.2))
            };
            prop_assert!(wanted().all(|it| is_kept(&it)));
            // The model drops the swept entries.
            model.retain(|it| is_kept(&it));
        }
        prop_assert!(world.done.lock().unwrap().iter().all(|it| matches!(it, Done::Dropped(_))));
        let mut requests = |acts: Vec<Act>, model: &mut Model| -> Vec<ExitRequest> {
            let acts = acts.into_iter();
            acts.filter_map(|act| request(act, &world, model, numbers.next().unwrap()).ok())
                .collect()
        };
        actions.apply_all(requests(left, &mut model), &counters);
        actions.release(pid(), &counters);
        let mut expected: Vec<_> = model.iter().map(|it| Done::Released(it.2)).collect();
        let released = model.len();
        let mut actions = (!actions.is_empty()).then(|| Box::new(actions));
        let late = requests(late, &mut model);
        let before: Vec<usize> = model.iter().map(|it| it.2).collect();
        ExitActions::apply_late(&mut actions, late, pid(), &counters);
        // Only late actions are released then.
        let on_time = expected.iter().map(|it| match it {
            Done::Released(number) => *number,
            _ => unreachable!(),
        });
        let on_time: HashSet<usize> = on_time.collect();
        prop_assert_eq!(on_time.len(), released);
        let lately = before.iter().filter(|it| !on_time.contains(it));
        expected.extend(lately.map(|it| Done::Released(*it)));
        expected.extend(before.iter().map(|it| Done::Told(*it)));
        if let Some(actions) = actions {
            tell_all(*actions, &counters);
        }
        let done = world.done.lock().unwrap();
        let run: Vec<_> = done.iter().filter(|it| !matches!(it, Done::Dropped(_))).collect();
        prop_assert_eq!(run, expected.iter().collect::<Vec<_>>());
        // Nothing is kept: no action refers to the world any more.
        prop_assert_eq!(Arc::strong_count(&world), 1);
        let panics = expected.iter().filter(|it| {
            matches!(it, Done::Released(number) | Done::Told(number) if number % 5 == 3)
        });
        prop_assert_eq!(counters.read().panics, panics.count() as u64);
    }

    /// Begins a watch for each `true`, and takes the oldest back for each `false`.
    // pins: P12
    #[test]
    fn calls_that_were_taken_back_do_not_pile_up(
        acts in proptest::collection::vec(proptest::bool::weighted(0.6), 0..600)
    ) {
        let counters = Counters::new(false);
        let (mut actions, mut alive, mut most) = (ExitActions::default(), VecDeque::new(), 0);
        for begins in acts {
            if begins {
                let call = Arc::new(EndCall::new(|| ()));
                actions.apply(request_of(&call), &counters);
                alive.push_back(call);
            } else {
                drop(alive.pop_front());
            }
            most = most.max(alive.len());
            prop_assert!(actions.calls.list.len() <= SWEEP + 2 * most);
            let kept = actions.calls.list.iter().filter_map(|it| it.call.upgrade());
            prop_assert!(kept.map(|it| Arc::as_ptr(&it)).eq(alive.iter().map(Arc::as_ptr)));
        }
    }
}

fn request_of(call: &Arc<EndCall>) -> ExitRequest {
    let call = Arc::downgrade(call);
    ExitRequest::Call(Box::new(YieldCall { token: 1, call }))
}

// pins: P12
#[test]
fn calls_that_were_taken_back_leave_no_memory() {
    const BURST: usize = 10_000;
    let counters = Counters::new(false);
    let mut actions = ExitActions::default();
    let mut add = || {
        let call = Arc::new(EndCall::new(|| ()));
        actions.apply(request_of(&call), &counters);
        call
    };
    let alive: Vec<_> = (0..BURST).map(|_| add()).collect();
    drop(alive);
    // The next sweep comes when the list has doubled.
    (0..2 * BURST).for_each(|_| drop(add()));
    let list = &actions.calls.list;
    let (calls, room) = (list.len(), list.capacity());
    assert!(calls <= SWEEP, "{calls} are left");
    assert!(room <= 4 * calls.max(SWEEP), "{room} for {calls}");
}

/// Panics when it is asked whether it is over, and for its key.
struct Odd(Arc<AtomicBool>);

impl ExitAction for Odd {
    fn tell(self: Box<Self>, _: Pid, _: &ExitCause) {
        // Ordering: Relaxed: a single thread uses it.
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        panic!("on purpose")
    }

    fn key(&self) -> Option<ExitKey> {
        panic!("on purpose")
    }
}

// pins: P8
#[test]
fn an_action_that_panics_when_it_is_asked_stays_and_is_told() {
    let (counters, is_told) = (Counters::new(false), Arc::<AtomicBool>::default());
    let mut actions = ExitActions::default();
    let odd = Box::new(Odd(Arc::clone(&is_told)));
    actions.apply(ExitRequest::Add(odd), &counters);
    let world = Arc::<World>::default();
    for number in 0..SWEEP {
        actions.apply(ExitRequest::Add(world.action(0, 7, 5 * number)), &counters);
    }
    let before = counters.read().panics;
    assert_eq!(before, 1, "the sweep asks whether it is over");
    actions.apply(ExitRequest::Remove(Box::new(key(0, 7))), &counters);
    actions.release(pid(), &counters);
    assert_eq!(actions.actions.list.len(), 1);
    assert_eq!(counters.read().panics, before + 1);
    tell_all(actions, &counters);
    // Ordering: Relaxed: a single thread uses it.
    assert!(is_told.load(Ordering::Relaxed));
}

/// Returns how many turns it has taken.
fn tell_all(actions: ExitActions, counters: &Counters) -> usize {
    let mut telling = actions.telling(|| ExitCause::Done);
    let mut turns = 1;
    while telling.go_on(pid(), counters) {
        turns += 1;
    }
    turns
}

// pins: P12
#[test]
fn each_turn_of_an_end_releases_and_tells_one_portion() {
    const MANY: usize = 2 * PORTION + 1;
    let counters = Counters::new(false);
    let (world, mut actions) = (Arc::<World>::default(), ExitActions::default());
    for number in 0..MANY {
        actions.apply(ExitRequest::Add(world.action(0, 7, number)), &counters);
    }
    let done = || world.done.lock().unwrap().len();
    let (mut from, mut released) = (Some(0), vec![]);
    while let Some(place) = from {
        from = actions.release_some(place, pid(), &counters);
        released.push(done());
    }
    assert_eq!(released, [PORTION, 2 * PORTION, MANY]);
    let mut telling = actions.telling(|| ExitCause::Done);
    let mut left = MANY;
    loop {
        let before = done();
        let has_more = telling.go_on(pid(), &counters);
        // Each is told, and is dropped.
        let told = (done() - before) / 2;
        assert_eq!(told, PORTION.min(left));
        left -= told;
        assert_eq!(has_more, left > 0);
        if !has_more {
            break;
        }
    }
}

/// Has many others to notify, and never subtracts them.
struct Broad(usize, Arc<Mutex<Vec<usize>>>);

impl ExitAction for Broad {
    fn tell_some(
        mut self: Box<Self>,
        _: Pid,
        _: &ExitCause,
        budget: &mut usize,
    ) -> Option<Box<dyn ExitAction>> {
        let told = self.0.min(*budget);
        self.1.lock().unwrap().push(told);
        self.0 -= told;
        (self.0 > 0).then_some(self as _)
    }
}

// pins: P12
#[test]
fn an_action_with_many_to_tell_goes_on_in_the_next_turn() {
    let (counters, told) = (Counters::new(false), Arc::<Mutex<Vec<usize>>>::default());
    let mut actions = ExitActions::default();
    for _ in 0..2 {
        let broad = Box::new(Broad(PORTION + 10, Arc::clone(&told)));
        actions.apply(ExitRequest::Add(broad), &counters);
    }
    assert!(tell_all(actions, &counters) >= 1);
    assert_eq!(
        told.lock().unwrap().iter().sum::<usize>(),
        2 * (PORTION + 10)
    );
    assert!(told.lock().unwrap().iter().all(|it| *it <= PORTION));
}

/// Counts the looks at its key.
struct Looked(ExitKey, Arc<AtomicUsize>);

impl ExitAction for Looked {
    fn key(&self) -> Option<ExitKey> {
        // Ordering: Relaxed: a single thread uses it.
        self.1.fetch_add(1, Ordering::Relaxed);
        Some(self.0)
    }
}

// pins: P12
#[test]
fn many_take_backs_look_at_each_action_a_few_times() {
    const MANY: usize = 10_000;
    let (counters, looks) = (Counters::new(false), Arc::<AtomicUsize>::default());
    let mut actions = ExitActions::default();
    for number in 0..MANY {
        let action = Box::new(Looked(key(1, number as u64), Arc::clone(&looks)));
        actions.apply(ExitRequest::Add(action), &counters);
    }
    for number in 0..MANY {
        let key = Box::new(key(1, number as u64));
        actions.apply(ExitRequest::Remove(key), &counters);
    }
    // Ordering: Relaxed: a single thread uses it.
    let looks = looks.load(Ordering::Relaxed);
    assert!(looks <= 4 * MANY, "{looks} looks");
    actions.release(pid(), &counters);
    assert!(actions.is_empty());
}
