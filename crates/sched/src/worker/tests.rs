use super::ladder::URGENT_STREAK;
use super::*;
use crate::Scheduler;
use crate::still::Still;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

/// Worker 1 of two, without threads, beside another one that searches; and a slot for a spare.
fn beside_a_searcher() -> (Scheduler, LocalQueue) {
    let builder = Scheduler::builder().workers(2).max_spares(1);
    let builder = builder.shutdown_deadline(Duration::ZERO);
    let scheduler = builder.build().unwrap();
    let shared = Arc::clone(&scheduler.shared);
    let mut deques = shared.take_deques().unwrap();
    let spare = deques.pop().unwrap();
    shared.worker_slots.set_free([(2, spare)].into_iter());
    assert!(shared.idle.begin_search());
    let deque = deques.pop().unwrap();
    (scheduler, LocalQueue::new(shared, 1, deque))
}

/// Whether what `meanwhile` does keeps the worker from sleeping for ever.
fn wakes_up(shared: &Arc<Shared>, queue: LocalQueue, meanwhile: impl FnOnce()) -> bool {
    let (woken, wakes) = mpsc::channel();
    let sleeper = std::thread::spawn(move || {
        Worker::new(&queue).sleep();
        woken.send(()).unwrap();
    });
    meanwhile();
    let has_woken = wakes.recv_timeout(Duration::from_secs(20)).is_ok();
    shared.idle.notify_all();
    sleeper.join().unwrap();
    has_woken
}

/// Nobody else can stand down for it.
// pins: G6
#[test]
fn who_is_relieved_before_it_falls_asleep_does_not() {
    let (scheduler, queue) = beside_a_searcher();
    let shared = &scheduler.shared;
    // Nobody wakes it for that.
    let relieved = shared.worker_slots.replace(1, |_, _| Ok(()), || ());
    assert!(relieved.unwrap());
    assert!(wakes_up(shared, queue, || ()));
}

/// Its step had ended while the thread for its place was started.
// pins: G6
#[test]
fn who_is_relieved_while_it_sleeps_is_woken() {
    let (scheduler, queue) = beside_a_searcher();
    let shared = &scheduler.shared;
    let relieve = || {
        while shared.idle.snapshot().sleeping == 0 {
            std::thread::yield_now();
        }
        assert!(shared.replace_worker(1, None));
    };
    assert!(wakes_up(shared, queue, relieve));
}

// pins: G6
#[test]
fn who_is_relieved_while_it_looks_stands_down_before_it_looks_again() {
    let (scheduler, queue) = beside_a_searcher();
    let shared = &scheduler.shared;
    let mut worker = Worker::new(&queue);
    assert_eq!(worker.rest(&Rest::Spin, 1), Some(1));
    assert!(
        shared
            .worker_slots
            .replace(1, |_, _| Ok(()), || ())
            .unwrap()
    );
    let calls_it = Arc::clone(shared);
    let caller = std::thread::spawn(move || {
        while !calls_it.replace_worker(2, None) {
            std::thread::yield_now();
        }
    });
    assert_eq!(worker.rest(&Rest::Spin, 2), Some(0), "it has come back");
    assert!(!shared.worker_slots.is_replaced(1) && shared.worker_slots.is_replaced(2));
    caller.join().unwrap();
}

// pins: G3, G4
#[test]
fn the_lane_is_passed_over_only_for_something_else() {
    const URGENT: u32 = 3 * URGENT_STREAK;
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let submit = |_| scheduler.submit(Still, "main", ()).unwrap();
    let handles: Vec<_> = (0..=URGENT).map(submit).collect();
    let shared = &scheduler.shared;
    let ordinary = shared.global.pop().unwrap();
    for token in std::iter::from_fn(|| shared.global.pop()) {
        shared.urgent.push(token);
    }
    let deque = shared.take_deques().unwrap().remove(0);
    let queue = LocalQueue::new(Arc::clone(shared), 0, deque);
    let mut worker = Worker::new(&queue);
    let pick = |worker: &mut Worker<'_>| assert!(worker.look().is_some());
    // There is nothing else that it could be passed over for.
    (0..=URGENT_STREAK).for_each(|_| pick(&mut worker));
    let urgent_picks = &worker.counters.urgent_picks;
    assert_eq!(urgent_picks.get(), u64::from(URGENT_STREAK) + 1);
    shared.global.push(ordinary);
    (URGENT_STREAK..URGENT).for_each(|_| pick(&mut worker));
    assert_eq!(urgent_picks.get(), u64::from(URGENT));
    assert!(worker.look().is_none());
    drop(handles);
    // Nobody has their tokens any more: there is nothing that would end them.
    std::mem::forget(scheduler);
}

/// A worker of two that has yielded its thread for so long, while a process waited, and another worker slept.
fn refrains_after(lasted: Duration, is_searching: bool) -> bool {
    let scheduler = Scheduler::builder().workers(2).build().unwrap();
    let shared = &scheduler.shared;
    let deque = shared.take_deques().unwrap().remove(0);
    let queue = LocalQueue::new(Arc::clone(shared), 0, deque);
    let mut worker = Worker::new(&queue);
    worker.searching = is_searching && shared.idle.begin_search();
    shared.idle.announce(1, false);
    drop(scheduler.submit(Still, "main", ()).unwrap());
    worker.come_back_after(lasted);
    let refrains = worker.courtesy.refrains();
    if refrains {
        // It finds what waits, and does not block: that counts as well.
        (0..1_000).for_each(|_| worker.sleep());
        assert!(!worker.courtesy.refrains(), "for ever");
    }
    // Nobody has the process's token any more: there is nothing that would end it.
    assert!(shared.global.pop().is_some());
    std::mem::forget(scheduler);
    refrains
}

// pins: G5
#[test]
fn a_searcher_that_was_away_while_something_waited_yields_no_more_for_a_while() {
    assert!(refrains_after(Duration::from_millis(1), true));
    assert!(!refrains_after(Duration::from_millis(1), false));
    assert!(!refrains_after(Duration::from_micros(1), true));
}

// pins: G5
#[test]
fn a_worker_whose_yields_are_in_vain_sleeps_in_their_place_until_one_finds_something() {
    let scheduler = Scheduler::builder().workers(2).build().unwrap();
    let shared = &scheduler.shared;
    let deque = shared.take_deques().unwrap().remove(0);
    let queue = LocalQueue::new(Arc::clone(shared), 0, deque);
    let mut worker = Worker::new(&queue);
    // So that it withdraws.
    drop(scheduler.submit(Still, "main", ()).unwrap());
    let yields = |worker: &mut Worker<'_>| {
        let looks = [4, 5].map(|looks| worker.rest(&Rest::Yield, looks) == Some(looks));
        looks == [true; 2]
    };
    // It would block.
    let sleeps = |worker: &mut Worker<'_>, times: u32| {
        (0..times).all(|_| {
            let has_yielded = yields(worker);
            worker.courtesy.fall_asleep();
            has_yielded
        })
    };
    let in_vain = courtesy::VAIN_SLEEPS;
    for times in [in_vain - 1, in_vain] {
        // And then it finds something, the first time.
        assert!(sleeps(&mut worker, times) && (times == in_vain || yields(&mut worker)));
    }
    let before = worker.counters.sleeps.get();
    assert_eq!(worker.rest(&Rest::Yield, 4), Some(0), "it has slept");
    assert_eq!(worker.counters.sleeps.get(), before + 1);
    assert!(
        yields(&mut worker),
        "there was something: it has not slept in the end"
    );
    assert!(shared.global.pop().is_some());
    std::mem::forget(scheduler);
}

/// Runs itself again, to see the program end.
#[test]
fn a_search_that_panics_ends_the_program_with_a_message() {
    const CHILD: &str = "GANGER_TEST_PANICS_IN_A_SEARCH";
    if std::env::var_os(CHILD).is_some() {
        or_abort(|| panic!("no membarrier"));
    }
    let name = "worker::tests::a_search_that_panics_ends_the_program_with_a_message";
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{stderr}");
    assert!(stderr.contains("no membarrier") && stderr.contains("aborting"));
}
