use super::*;
use crate::Scheduler;
use crate::crew::Relief;
use crate::reports::LongStepKind;
use crate::reports::{Line, LongStep};
use crate::still::Still;
use ganger_proc_api::Pid;
use std::process::Command;
use std::time::Duration;

/// Two workers of so many, without threads, and somebody's step that is to be reported.
fn with_something_untold(workers: usize) -> (Scheduler, LocalQueue) {
    let keep = Duration::from_secs(1);
    let builder = Scheduler::builder().workers(workers).max_spares(0);
    let scheduler = builder.keep_spares(keep).build().unwrap();
    let shared = Arc::clone(&scheduler.shared);
    let deque = shared.take_deques().unwrap().swap_remove(1);
    let step = LongStep {
        pid: Pid::new(shared.host, 7),
        method: None,
        worker: 0,
        kind: LongStepKind::Computing,
        is_announced: false,
        lasted: Duration::from_millis(11),
        is_over: false,
        backtrace: None,
    };
    let line = Line::Tell { suppressed: 0 };
    shared.crew.have_told(Relief {
        step,
        turn: 1,
        line,
    });
    (scheduler, LocalQueue::new(shared, 1, deque))
}

// pins: G6
#[test]
fn who_leaves_tells_nothing_and_who_comes_back_does() {
    let (scheduler, queue) = with_something_untold(2);
    let mut worker = Worker::new(&queue);
    worker.come_back(Next::Leave);
    assert!(scheduler.shared.crew.calls(1).is_any());
    worker.come_back(Next::OnDuty);
    assert!(!scheduler.shared.crew.calls(1).is_any());
    assert!(scheduler.shared.crew.take_untold(1).is_none());
}

/// Relieves worker 1 while that tells something, as the monitor does when it takes long.
struct Slow(Arc<Shared>);

impl tracing::Subscriber for Slow {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        if *event.metadata().level() == tracing::Level::WARN {
            self.0.crew.step_back(2);
            assert!(self.0.crew.relieve(&self.0, 1, None));
        }
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

/// A turn that it took would be reported by nobody.
// pins: G6
#[test]
fn whose_place_is_taken_while_it_tells_stands_down_again() {
    let (scheduler, queue) = with_something_untold(3);
    let shared = &scheduler.shared;
    let mut worker = Worker::new(&queue);
    let calls_it = Arc::clone(shared);
    // There is nobody to call before it waits.
    let caller = std::thread::spawn(move || {
        while !calls_it.crew.relieve(&calls_it, 0, None) {
            std::thread::yield_now();
        }
    });
    let next = tracing::subscriber::with_default(Slow(Arc::clone(shared)), || worker.stand_down());
    caller.join().unwrap();
    assert_eq!(next, Next::Leave, "nobody needs it any more");
    assert!(!shared.crew.is_relieved(1));
}

/// Who sleeps because somebody searches is woken for what is to be told when that one has found something.
// pins: G6
#[test]
fn a_report_does_not_wait_for_the_turn_of_a_searcher() {
    let (scheduler, queue) = with_something_untold(3);
    let idle = &scheduler.shared.idle;
    let mut worker = Worker::new(&queue);
    worker.searching = idle.begin_search();
    idle.announce(2, false);
    assert!(!idle.look_again(2, || false, || true));
    worker.found();
    assert_eq!(idle.snapshot().sleeping, 0);
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

/// Workers 0 and 1 of a scheduler without threads, with so many processes in their deques.
fn with_lengths(lengths: [usize; 2]) -> (Scheduler, Vec<LocalQueue>) {
    let scheduler = Scheduler::builder().workers(2).build().unwrap();
    let shared = &scheduler.shared;
    let deques = shared.take_deques().unwrap().into_iter().zip(lengths);
    let fill = |(index, (deque, length))| {
        for _ in 0..length {
            drop(scheduler.submit(Still, "main", ()).unwrap());
            Deque::push(&deque, shared.global.pop().unwrap());
        }
        LocalQueue::new(Arc::clone(shared), index, deque)
    };
    let queues = deques.enumerate().map(fill).collect();
    (scheduler, queues)
}

/// How many worker 0 takes of worker 1, at that time.
fn balanced(lengths: [usize; 2], now: u64, is_in_turn: bool) -> usize {
    let (scheduler, queues) = with_lengths(lengths);
    let turns = &scheduler.shared.turns;
    let turn = is_in_turn.then(|| turns.begin(Some(1), Pid::new(scheduler.shared.host, 7)));
    let taken = Worker::new(&queues[0]).balance(now);
    assert_eq!(queues[0].deque.len(), lengths[0]);
    drop(turn);
    let left = queues[1].deque.len();
    assert_eq!(left + usize::from(taken.is_some()), lengths[1]);
    // Nobody has their tokens any more: there is nothing that would end them.
    std::mem::forget((scheduler, queues, taken));
    lengths[1] - left
}

// pins: G4
#[test]
fn one_is_taken_of_a_worker_that_has_more() {
    const MILLI: u64 = 1_000_000;
    for (lengths, expected) in [
        ([0, 0], 0),
        ([0, 1], 1),
        ([1, 1], 0),
        ([2, 1], 0),
        ([1, 2], 1),
        ([1, 9], 1),
        ([31, 32], 1),
        ([32, 33], 0),
        ([32, 34], 1),
        ([100, 103], 0),
        ([100, 104], 1),
    ] {
        assert_eq!(balanced(lengths, MILLI, false), expected, "{lengths:?}");
        assert_eq!(balanced(lengths, MILLI - 1, false), 0, "{lengths:?}");
        if let Some(waiting) = lengths[1].checked_sub(1) {
            // The last one is in its turn.
            let lengths = [lengths[0], waiting];
            let expected = expected.min(waiting);
            assert_eq!(balanced(lengths, MILLI, true), expected, "{lengths:?}");
        }
    }
}

/// Its look is a part of the rotation: the global queue comes first, and the own oldest next.
// pins: G4
#[test]
fn who_is_taken_of_another_worker_is_put_before_nobody() {
    let (scheduler, queues) = with_lengths([2, 5]);
    let shared = &scheduler.shared;
    let new = scheduler.submit(Still, "main", ()).unwrap();
    let stealers = shared.stealers();
    let oldest = |of: usize| {
        let mut pids = Vec::new();
        for _ in 0..stealers[of].len() {
            let token = stealers[of].steal().success().unwrap();
            pids.push(token.cell().pid);
            queues[of].deque.push(token);
        }
        pids[0]
    };
    let mut worker = Worker::new(&queues[0]);
    let own = oldest(0);
    let theirs = oldest(1);
    let pick = |worker: &mut Worker<'_>, now| {
        let token = worker.rotate(now).unwrap();
        token.cell().pid
    };
    assert_eq!(pick(&mut worker, 1_000_000), new.pid());
    assert!(worker.oldest_is_next);
    worker.oldest_is_next = false;
    assert_eq!(pick(&mut worker, 1_000_000), theirs);
    assert!(worker.oldest_is_next);
    let next = worker.look().unwrap();
    assert_eq!(next.cell().pid, own);
    std::mem::forget((next, new, scheduler, queues));
}

/// Runs itself again, to see the program end.
#[test]
fn a_search_that_panics_ends_the_program_with_a_message() {
    const CHILD: &str = "GANGER_TEST_PANICS_IN_A_SEARCH";
    if std::env::var_os(CHILD).is_some() {
        let _bomb = AbortOnPanic;
        panic!("no membarrier");
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
