use super::*;
use crate::noop_process::NoopProcess;
use crate::policy::{ARRIVALS_STREAK, LATE_AT_WORKERS, URGENT_STREAK};
use crate::{Driver, Scheduler};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

/// Creates worker 1 of two, without threads, while the other worker searches; and a slot for a
/// spare.
fn beside_a_searcher() -> (Scheduler, LocalQueue) {
    let builder = Scheduler::builder().workers(2).max_spares(1);
    let builder = builder.shutdown_deadline(Duration::ZERO);
    let scheduler = builder.build().unwrap();
    let shared = Arc::clone(&scheduler.shared);
    let mut deques = shared.start.take_deques().unwrap();
    let spare = deques.pop().unwrap();
    shared.worker_slots.set_free([(2, spare)].into_iter());
    assert!(shared.queues.idle.begin_search());
    let deque = deques.pop().unwrap();
    (scheduler, LocalQueue::new(shared, 1, deque))
}

/// Returns whether `meanwhile` keeps the worker from sleeping for ever.
fn wakes_up(shared: &Arc<Shared>, queue: LocalQueue, meanwhile: impl FnOnce()) -> bool {
    let (woken, wakes) = mpsc::channel();
    let sleeper = std::thread::spawn(move || {
        Worker::new(&queue).sleep();
        woken.send(()).unwrap();
    });
    meanwhile();
    let has_woken = wakes.recv_timeout(Duration::from_secs(20)).is_ok();
    shared.queues.idle.notify_all();
    sleeper.join().unwrap();
    has_woken
}

/// Checks that a relieved worker wakes up, for which no other worker can stand down.
// pins: G6
#[test]
fn who_is_relieved_before_it_falls_asleep_does_not() {
    let (scheduler, queue) = beside_a_searcher();
    let shared = &scheduler.shared;
    // No thread wakes the worker for its replacement.
    let relieved = shared.worker_slots.replace(1, |_, _| Ok(()), || ());
    assert!(relieved.unwrap());
    assert!(wakes_up(shared, queue, || ()));
}

/// Checks that a worker is woken whose step had ended while the thread for its place was started.
// pins: G6
#[test]
fn who_is_relieved_while_it_sleeps_is_woken() {
    let (scheduler, queue) = beside_a_searcher();
    let shared = &scheduler.shared;
    let relieve = || {
        while shared.queues.idle.snapshot().sleeping == 0 {
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
    assert_eq!(worker.back_off(&Backoff::Spin, 1), Some(1));
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
    assert_eq!(
        worker.back_off(&Backoff::Spin, 2),
        Some(0),
        "it has come back"
    );
    assert!(!shared.worker_slots.is_replaced(1) && shared.worker_slots.is_replaced(2));
    caller.join().unwrap();
}

/// Checks that a rotation takes over a waiting process: else it waits until the step is over, as a
/// worker that never runs out does not steal.
// pins: G4, G6
#[test]
fn a_rotation_takes_over_what_waits_behind_a_worker_that_was_relieved() {
    let (scheduler, relieved) = beside_a_searcher();
    let shared = &scheduler.shared;
    let handles = [(); 2].map(|()| scheduler.submit(NoopProcess, "main", ()).unwrap());
    std::iter::from_fn(|| shared.queues.global.pop()).for_each(|it| relieved.deque.push(it));
    let mut spare = None;
    let start = |index, deque| {
        spare = Some(LocalQueue::new(Arc::clone(shared), index, deque));
        Ok(())
    };
    assert!(shared.worker_slots.replace(1, start, || ()).unwrap());
    let spare = spare.unwrap();
    let mut worker = Worker::new(&spare);
    let oldest = worker.rotate(0).map(|token| token.cell().pid());
    assert_eq!(oldest, Some(handles[0].pid()));
    assert_eq!(relieved.deque.len(), 1);
}

// pins: G3
#[test]
fn who_gives_way_is_behind_the_others_and_the_global_queue_comes_after_each_round() {
    let builder = Scheduler::builder().workers(1);
    let scheduler = builder.shutdown_deadline(Duration::ZERO).build().unwrap();
    let shared = &scheduler.shared;
    let handles = [(); 5].map(|()| scheduler.submit(NoopProcess, "main", ()).unwrap());
    let [a, b, c, d, e] = [(); 5].map(|()| shared.queues.global.pop().unwrap());
    let queue = LocalQueue::of_first(shared);
    let mut worker = Worker::new(&queue);
    let mut pick = || {
        let token = worker.find_work().unwrap();
        let pid = token.cell().pid();
        (handles.iter().position(|it| it.pid() == pid), token)
    };
    queue.deque.push(a);
    queue.deque.push(b);
    shared.requeue_last(Some(&queue), c);
    shared.queues.global.push(d);
    assert_eq!(
        pick().0,
        Some(0),
        "the oldest of those that others give way to"
    );
    let (second, token) = pick();
    assert_eq!(second, Some(1));
    shared.requeue_last(Some(&queue), token);
    assert_eq!(pick().0, Some(3), "the round is over");
    shared.schedule_here(&queue, e);
    assert_eq!(pick().0, Some(4), "what is woken has not given way");
    assert_eq!(pick().0, Some(2));
    assert_eq!(pick().0, Some(1));
    assert!(worker.find_work().is_none() && !queue.round.is_on());
}

/// Checks the same beside an empty deque: all others are in the global queue.
// pins: G3
#[test]
fn who_gives_way_beside_an_empty_deque_is_behind_the_global_queue() {
    let builder = Scheduler::builder().workers(1);
    let scheduler = builder.shutdown_deadline(Duration::ZERO).build().unwrap();
    let shared = &scheduler.shared;
    let _handles = [(); 2].map(|()| scheduler.submit(NoopProcess, "main", ()).unwrap());
    let [polite, other] = [(); 2].map(|()| shared.queues.global.pop().unwrap());
    let pids = [&other, &polite].map(|it| it.cell().pid());
    let queue = LocalQueue::of_first(shared);
    let mut worker = Worker::new(&queue);
    shared.queues.global.push(other);
    shared.requeue_last(Some(&queue), polite);
    assert_eq!(pids.map(|_| worker.find_work().unwrap().cell().pid()), pids);
}

/// A driver without any ready events.
struct Quiet;

impl Driver for Quiet {
    fn wait(&self, _: Option<Duration>) {}

    fn interrupt(&self) {}
}

/// Checks that the monitor is woken: the turn may last for long, and no other thread is in the
/// driver.
// pins: I2
#[test]
fn who_begins_a_turn_wakes_the_monitor_for_the_driver() {
    for has_driver in [false, true] {
        let mut builder = Scheduler::builder().workers(1);
        builder = builder.shutdown_deadline(Duration::ZERO);
        if has_driver {
            builder = builder.driver(Quiet);
        }
        let scheduler = builder.build().unwrap();
        let shared = &scheduler.shared;
        let queue = LocalQueue::of_first(shared);
        let mut worker = Worker::new(&queue);
        assert!(worker.begin() == Next::Active);
        // Its submit wakes the monitor, too.
        let _handle = scheduler.submit(NoopProcess, "main", ()).unwrap();
        shared.queues.idle.announce_monitor_sleep(|| false);
        assert!(matches!(worker.look_once(&mut 0), Looked::Found(_)));
        assert_eq!(shared.queues.idle.snapshot().unwatched, !has_driver);
    }
}

/// Checks a worker that has waited for the next timer and leaves the driver with a process. By the
/// measure of its last visit the turn is short, or long.
// pins: T4
#[test]
fn who_is_soon_back_in_the_driver_leaves_the_timers_to_the_monitor() {
    for (turn, searches) in [
        (1_000, true),
        (1_000, false),
        (200_000, true),
        (200_000, false),
    ] {
        let builder = Scheduler::builder().workers(2).driver(Quiet);
        let builder = builder.shutdown_deadline(Duration::ZERO);
        let scheduler = builder.build().unwrap();
        let shared = &scheduler.shared;
        let idle = &shared.queues.idle;
        let queue = LocalQueue::of_first(shared);
        let mut worker = Worker::new(&queue);
        assert!(worker.begin() == Next::Active);
        let _handle = scheduler.submit(NoopProcess, "main", ()).unwrap();
        let token = shared.queues.global.pop().unwrap();
        shared.timing.timer_waiter.dues.set(0, u64::MAX - 1);
        worker.searching = searches && idle.begin_search();
        idle.announce(1, false);
        idle.announce_monitor_sleep(|| false);
        worker.batch.leave(0, 0);
        worker.batch.enter(1, || turn);
        worker.leave_driver(vec![token]);
        // For a worker that leaves the driver, the monitor is woken in any case. So another thread
        // is there.
        let driven = shared.timing.driven.as_ref().unwrap();
        driven.waiter.enter(|| {
            let Looked::Found(_) = worker.look_once(&mut 0) else {
                panic!("nothing was found");
            };
            worker.announce_found();
            0
        });
        let is_short = turn < LATE_AT_WORKERS;
        let now = idle.snapshot();
        assert_eq!((now.sleeping == 1, now.unwatched), (is_short, !is_short));
    }
}

// pins: G3, G4
#[test]
fn the_lane_is_passed_over_only_for_something_else() {
    const URGENT: u32 = 3 * URGENT_STREAK;
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let submit = |_| scheduler.submit(NoopProcess, "main", ()).unwrap();
    let handles: Vec<_> = (0..=URGENT).map(submit).collect();
    let shared = &scheduler.shared;
    let ordinary = shared.queues.global.pop().unwrap();
    for token in std::iter::from_fn(|| shared.queues.global.pop()) {
        shared.queues.urgent.push(token);
    }
    let deque = shared.start.take_deques().unwrap().remove(0);
    let queue = LocalQueue::new(Arc::clone(shared), 0, deque);
    let mut worker = Worker::new(&queue);
    let pick = |worker: &mut Worker<'_>| assert!(worker.find_work().is_some());
    // No other process is queued to pass the lane over for.
    (0..=URGENT_STREAK).for_each(|_| pick(&mut worker));
    let urgent_picks = &worker.counters.urgent_picks;
    assert_eq!(urgent_picks.get(), u64::from(URGENT_STREAK) + 1);
    shared.queues.global.push(ordinary);
    (URGENT_STREAK..URGENT).for_each(|_| pick(&mut worker));
    assert_eq!(urgent_picks.get(), u64::from(URGENT));
    assert!(worker.find_work().is_none());
    drop(handles);
    // No owner has their tokens any more: nothing would end them.
    std::mem::forget(scheduler);
}

// pins: G3, G4
#[test]
fn arrivals_come_in_their_order_and_others_between_them() {
    const COUNT: usize = 2 * ARRIVALS_STREAK as usize;
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let submit = |_| scheduler.submit(NoopProcess, "main", ()).unwrap();
    let handles: Vec<_> = (0..=COUNT).map(submit).collect();
    let shared = &scheduler.shared;
    let ordinary = shared.queues.global.pop().unwrap();
    for token in std::iter::from_fn(|| shared.queues.global.pop()) {
        shared.queues.arrivals.push(token);
    }
    shared.queues.global.push(ordinary);
    let deque = shared.start.take_deques().unwrap().remove(0);
    let queue = LocalQueue::new(Arc::clone(shared), 0, deque);
    let mut worker = Worker::new(&queue);
    let mut picked: Vec<_> = std::iter::from_fn(|| worker.find_work())
        .map(|token| token.into_task().pid())
        .collect();
    let at = picked.iter().position(|&pid| pid == handles[0].pid());
    // Earlier if it has taken a millisecond so far.
    assert!(
        at.is_some_and(|at| at <= ARRIVALS_STREAK as usize),
        "{at:?}"
    );
    picked.remove(at.unwrap());
    assert!(
        picked.iter().eq(handles[1..]
            .iter()
            .map(|it| it.pid())
            .collect::<Vec<_>>()
            .iter())
    );
    assert_eq!(worker.counters.arrival_picks.get(), COUNT as u64);
    drop(handles);
    // No owner has their tokens any more: nothing would end them.
    std::mem::forget(scheduler);
}

// pins: G5
#[test]
fn a_worker_without_work_spins_then_sleeps_and_yields_only_when_that_is_asked_for() {
    let builder = || Scheduler::builder().workers(1);
    for (builder, spin, yields) in [
        (builder(), 4, 4),
        (builder().spin_limits(4, 12), 4, 12),
        (builder().spin_limits(4, 3), 4, 4),
    ] {
        let scheduler = builder.build().unwrap();
        let queue = LocalQueue::of_first(&scheduler.shared);
        let mut worker = Worker::new(&queue);
        let mut empty_looks = 0;
        for look in 1..=20 {
            let backoff = match worker.look_once(&mut empty_looks) {
                Looked::Nothing(backoff) => backoff,
                Looked::Found(_) | Looked::Halted => panic!("there is nothing"),
            };
            let expected = if look < spin {
                Backoff::Spin
            } else if look < yields {
                Backoff::Yield
            } else {
                Backoff::Sleep
            };
            assert_eq!((backoff, empty_looks), (expected, look));
        }
    }
}

/// Returns the first look after which a worker of this scheduler would sleep.
fn first_of(scheduler: &Scheduler) -> u32 {
    let config = &scheduler.shared.config;
    config.spin_looks.max(config.yield_looks)
}

// pins: G5
#[test]
fn a_worker_looks_on_for_a_while_where_its_last_wait_was_brief() {
    let (scheduler, queue) = beside_a_searcher();
    let first = first_of(&scheduler);
    let mut worker = Worker::new(&queue);
    assert!(!worker.looks_on(first), "nothing is known yet");
    worker.was_brief = true;
    let last = first + BRIEF_LOOKS;
    assert!((first..last).all(|looks| worker.looks_on(looks)));
    assert!(!worker.looks_on(last));
    assert_eq!(worker.back_off(&Backoff::Sleep, first), Some(first));
}

// pins: G5
#[test]
fn a_wait_is_brief_by_the_clock_from_its_first_look_on() {
    let (scheduler, queue) = beside_a_searcher();
    let shared = &scheduler.shared;
    // For the worker not to block.
    let relieved = shared.worker_slots.replace(1, |_, _| Ok(()), || ());
    assert!(relieved.unwrap());
    let mut worker = Worker::new(&queue);
    let mut nap = |pause| {
        worker.looks_on(first_of(&scheduler));
        std::thread::sleep(pause);
        worker.sleep();
        worker.was_brief
    };
    // The system may suspend this thread.
    assert!((0..1_000).any(|_| nap(Duration::ZERO)));
    assert!(!nap(Duration::from_nanos(BRIEF_WAIT)));
}

/// Checks that a worker does not search on while ready processes in the driver would wait for it.
// pins: I2
#[test]
fn a_worker_does_not_look_on_while_no_thread_is_in_the_driver() {
    let builder = Scheduler::builder().workers(1).driver(Quiet);
    let scheduler = builder.build().unwrap();
    let shared = &scheduler.shared;
    let queue = LocalQueue::of_first(shared);
    let mut worker = Worker::new(&queue);
    worker.was_brief = true;
    let first = first_of(&scheduler);
    assert!(!worker.looks_on(first));
    let driven = shared.timing.driven.as_ref().unwrap();
    assert!(driven.waiter.enter(|| {
        assert!(worker.looks_on(first));
        0
    }));
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
