use super::*;
use crate::Scheduler;
use crate::core::local::{self, LocalQueue};
use crate::still::Still;
use crate::turn::run::Runner;
use proptest::prelude::*;
use std::collections::VecDeque;

/// Processes of a scheduler that has not been started.
const PROCESSES: usize = 4;

#[derive(Clone, Copy, Debug)]
enum Act {
    Begin(usize, Tag),
    End(usize, Tag),
    /// That process ends.
    Close(usize),
}

fn act() -> impl Strategy<Value = Act> {
    let (who, tag) = (0..PROCESSES, 0..3_u64);
    prop_oneof![
        30 => (who.clone(), tag.clone()).prop_map(|(who, tag)| Act::Begin(who, tag)),
        2 => (who.clone(), tag).prop_map(|(who, tag)| Act::End(who, tag)),
        1 => who.prop_map(Act::Close),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    // pins: P12
    #[test]
    fn the_list_is_that_of_those_alive_and_not_much_longer(
        acts in proptest::collection::vec(act(), 0..400)
    ) {
        let scheduler = Scheduler::builder().workers(1).build().unwrap();
        let submit = |_| scheduler.submit(Still, "main", ()).unwrap();
        let handles: [_; PROCESSES] = std::array::from_fn(submit);
        let shared = &scheduler.shared;
        let tasks = handles.each_ref().map(|it| shared.find(it.pid()).unwrap());
        let mut tokens = [(); PROCESSES].map(|()| shared.global.pop());
        let queue = LocalQueue::of_first(shared);
        local::enter(&queue, || {
            let mut runner = Runner::new(shared, Some(&queue));
            let mut end = |who: usize| {
                if let Some(token) = tokens[who].take() {
                    tasks[who].terminate();
                    runner.run(token);
                }
            };
            check(&acts, &tasks, &mut end);
            (0..PROCESSES).for_each(end);
        });
    }
}

/// `end` ends the process that has that place among the tasks.
fn check(acts: &[Act], tasks: &[Task], end: &mut impl FnMut(usize)) {
    let counters = Counters::new(false);
    let target: Pid = "{other|1}".parse().unwrap();
    let references: Vec<_> = tasks.iter().map(Arc::strong_count).collect();
    let (mut watchers, mut model, mut most) = (Watchers::default(), Vec::new(), 0);
    for &act in acts {
        match act {
            Act::Begin(who, tag) => {
                let task = Arc::clone(&tasks[who]);
                let watcher = Watcher { task, target, tag };
                watchers.apply(Watch::Begin(watcher), &counters);
                if !tasks[who].state.is_closed() {
                    model.push((who, tag));
                }
            }
            Act::End(who, tag) => {
                let watcher = tasks[who].key();
                watchers.apply(Watch::End { watcher, tag }, &counters);
                model.retain(|it| *it != (who, tag));
            }
            Act::Close(who) => {
                end(who);
                model.retain(|it| it.0 != who);
            }
        }
        most = most.max(model.len());
        assert!(watchers.list.len() <= SWEEP + 2 * most);
        let alive = (watchers.list.iter()).filter(|it| !it.task.state.is_closed());
        let who = |task| (tasks.iter()).position(|it| Arc::ptr_eq(it, task));
        let alive = alive.map(|it| (who(&it.task), it.tag));
        assert!(alive.eq(model.iter().map(|&(who, tag)| (Some(who), tag))));
    }
    let watchers = Some(Box::new(watchers));
    Watchers::tell(watchers, &tasks[0], || ExitCause::Done, &counters);
    for (who, task) in tasks.iter().enumerate() {
        if !task.state.is_closed() {
            let told = model.iter().filter(|it| it.0 == who).count();
            assert_eq!(task.state.system_events(), told);
        }
        // Its handle has what the registry had.
        assert_eq!(Arc::strong_count(task), references[who], "{who} is kept");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// `true` begins a watch, and `false` takes the oldest back.
    // pins: P12
    #[test]
    fn calls_that_were_taken_back_do_not_pile_up(
        acts in proptest::collection::vec(proptest::bool::weighted(0.6), 0..600)
    ) {
        let counters = Counters::new(false);
        let (mut watchers, mut alive, mut most) = (Watchers::default(), VecDeque::new(), 0);
        for begins in acts {
            if begins {
                let call = Arc::new(EndCall::new(|| ()));
                watchers.apply(Watch::Call(1, Arc::downgrade(&call)), &counters);
                alive.push_back(call);
            } else {
                drop(alive.pop_front());
            }
            most = most.max(alive.len());
            prop_assert!(watchers.calls.len() <= SWEEP + 2 * most);
            let kept = watchers.calls.iter().filter_map(|(_, call)| call.upgrade());
            prop_assert!(kept.map(|it| Arc::as_ptr(&it)).eq(alive.iter().map(Arc::as_ptr)));
        }
    }
}

// pins: P12
#[test]
fn calls_that_were_taken_back_leave_no_memory() {
    const BURST: usize = 10_000;
    let counters = Counters::new(false);
    let mut watchers = Watchers::default();
    let mut add = || {
        let call = Arc::new(EndCall::new(|| ()));
        watchers.apply(Watch::Call(1, Arc::downgrade(&call)), &counters);
        call
    };
    let alive: Vec<_> = (0..BURST).map(|_| add()).collect();
    drop(alive);
    // The next sweep comes when the list has doubled.
    (0..2 * BURST).for_each(|_| drop(add()));
    let (calls, room) = (watchers.calls.len(), watchers.calls.capacity());
    assert!(room <= 4 * calls.max(SWEEP), "{room} for {calls}");
}
