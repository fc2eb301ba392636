use super::*;

/// Returns a snapshot without a sleeping worker, with `searching` searchers.
fn all_awake(searching: u32) -> Snapshot {
    Snapshot {
        searching,
        sleeping: 0,
        unwatched: false,
    }
}

// pins: G5
#[test]
fn at_most_half_as_many_search_as_are_busy() {
    for workers in 1..=64 {
        let idle = Idle::new(workers, workers);
        let searchers = (0..workers).take_while(|_| idle.begin_search()).count();
        let Snapshot { searching, .. } = idle.snapshot();
        let busy = u32::try_from(workers).unwrap() - searching;
        assert_eq!(searching as usize, searchers);
        assert!(searching >= 1);
        assert!(
            searching <= busy.div_ceil(2).max(1),
            "{searching} of {workers}"
        );
        for _ in 0..searching {
            idle.end_search(|| true);
        }
        assert_eq!(idle.snapshot(), all_awake(0));
    }
}

#[test]
fn a_sleeper_that_finds_work_withdraws() {
    let idle = Idle::new(2, 2);
    assert!(idle.begin_search());
    assert_eq!(
        idle.sleep(0, true, || false, || true, || None),
        Woken::Withdrawn
    );
    assert_eq!(idle.snapshot(), all_awake(0));
    assert!(!idle.notify(), "nobody sleeps");
}

#[test]
fn a_searcher_is_enough() {
    let idle = std::sync::Arc::new(Idle::new(2, 2));
    let sleeper = {
        let idle = std::sync::Arc::clone(&idle);
        std::thread::spawn(move || idle.sleep(1, false, || false, || false, || None))
    };
    while idle.snapshot().sleeping == 0 {
        std::thread::yield_now();
    }
    assert!(idle.begin_search());
    assert!(!idle.notify(), "a searcher will find it");
    idle.end_search(|| false);
    assert_eq!(
        idle.snapshot().sleeping,
        1,
        "there is nothing to wake it for"
    );
    assert!(idle.begin_search());
    idle.end_search(|| true);
    assert_eq!(sleeper.join().unwrap(), Woken::Notified);
    assert_eq!(idle.snapshot(), all_awake(1));
}

// pins: T1
#[test]
fn a_sleeper_whose_time_is_over_counts_as_searching_and_leaves_no_token() {
    let idle = Idle::new(2, 2);
    let asleep = |idle: &Idle| {
        let Snapshot {
            searching,
            sleeping,
            ..
        } = idle.snapshot();
        (searching, sleeping, idle.parkers[0].has_token())
    };
    idle.announce(0, false);
    idle.wake_oneself(0);
    assert_eq!(asleep(&idle), (1, 0, false));
    idle.end_search(|| false);
    // Another thread wakes it at the same time.
    idle.announce(0, false);
    assert!(idle.notify_from_outside());
    assert_eq!(asleep(&idle), (1, 0, true));
    idle.wake_oneself(0);
    assert_eq!(asleep(&idle), (1, 0, false));
}

// pins: T5
#[test]
fn the_timer_waiter_is_woken_after_the_others() {
    let idle = Idle::new(3, 3);
    for worker in [2, 0, 1] {
        idle.announce(worker, false);
    }
    idle.wake_last(1);
    let mut woken = Vec::new();
    for _ in 0..3 {
        assert!(idle.notify_from_outside());
        woken.extend((0..3).filter(|&it| idle.parkers[it].park_timeout(Duration::ZERO)));
        idle.end_search(|| false);
    }
    assert_eq!(woken, [0, 2, 1]);
}
