use super::*;
use crate::Scheduler;
use crate::noop_process::NoopProcess;
use crate::runtime::local::LocalQueue;
use crate::runtime::turns::Running;
use ganger_proc_api::Pid;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const MILLI: u64 = 1_000_000;

/// Workers without threads, with the given numbers of processes in their deques. Never freed: no
/// thread would end these.
struct Crowd {
    scheduler: &'static Scheduler,
    queues: &'static [LocalQueue],
}

impl Crowd {
    fn new(lengths: &[usize]) -> Self {
        let scheduler = Scheduler::builder().workers(lengths.len()).build().unwrap();
        let scheduler: &'static Scheduler = Box::leak(Box::new(scheduler));
        let shared = &scheduler.shared;
        let deques = shared.start.take_deques().unwrap().into_iter().zip(lengths);
        let fill = |(index, (deque, &length))| {
            for _ in 0..length {
                drop(scheduler.submit(NoopProcess, "main", ()).unwrap());
                ganger_deque::Worker::push(&deque, shared.queues.global.pop().unwrap());
            }
            LocalQueue::new(Arc::clone(shared), index, deque)
        };
        let queues: Vec<_> = deques.enumerate().map(fill).collect();
        let queues = queues.leak();
        Self { scheduler, queues }
    }

    fn lengths(&self) -> Vec<usize> {
        self.queues.iter().map(|queue| queue.deque.len()).collect()
    }

    /// Announces that the worker runs some process, until the guard is dropped.
    fn begin_turn(&self, worker: usize) -> Running<'static> {
        let pid = Pid::new(self.scheduler.shared.host, 7);
        self.scheduler.shared.census.turns.begin(Some(worker), pid)
    }
}

/// Calls `balance` until the worker has looked, and returns the found process.
fn look(worker: &mut Worker<'_>, now: u64) -> Option<Token> {
    let mut found = None;
    for _ in 0..1_000 {
        if worker.last_balance == now || found.is_some() {
            break;
        }
        found = worker.balance(now);
    }
    found
}

// pins: G4
#[test]
fn one_is_taken_of_a_worker_that_has_more() {
    for (ours, theirs, is_taken) in [
        (0, 0, false),
        (0, 1, true),
        (1, 1, false),
        (2, 1, false),
        (1, 2, true),
        (1, 9, true),
        (31, 32, true),
        (32, 33, false),
        (32, 34, true),
        (100, 103, false),
        (100, 104, true),
    ] {
        for is_in_turn in [false, true] {
            let Some(waiting) = usize::checked_sub(theirs, is_in_turn.into()) else {
                continue;
            };
            let is_taken = is_taken && waiting > 0;
            let crowd = Crowd::new(&[ours, waiting]);
            let turn = is_in_turn.then(|| crowd.begin_turn(1));
            let mut worker = Worker::new(&crowd.queues[0]);
            assert!(look(&mut worker, MILLI - 1).is_none(), "too early");
            let taken = look(&mut worker, MILLI).is_some();
            assert_eq!(taken, is_taken, "{ours}, {theirs}, {is_in_turn}");
            assert_eq!(crowd.lengths(), [ours, waiting - usize::from(taken)]);
            let counted = (worker.counters.steals.get(), worker.counters.stolen.get());
            assert_eq!(counted, (taken.into(), taken.into()));
            drop(turn);
        }
    }
}

#[test]
fn a_look_that_finds_nothing_is_the_last_one_for_a_while() {
    let crowd = Crowd::new(&[1, 1]);
    let mut worker = Worker::new(&crowd.queues[0]);
    assert!(look(&mut worker, MILLI).is_none());
    let token = crowd.queues[0].deque.pop().unwrap();
    ganger_deque::Worker::push(&crowd.queues[1].deque, token);
    (0..100).for_each(|_| assert!(worker.balance(2 * MILLI - 1).is_none()));
    assert!(look(&mut worker, 2 * MILLI).is_some());
}

/// Checks that a worker looks at every worker on duty, whatever their number, and at no worker
/// relieved for good.
#[test]
fn everybody_on_duty_is_looked_at() {
    let crowd = Crowd::new(&[0, 3, 3, 3, 3, 3]);
    let slots = &crowd.scheduler.shared.worker_slots;
    slots.mark_spare(4);
    let mut worker = Worker::new(&crowd.queues[0]);
    let mut now = 0;
    while crowd.lengths().iter().sum::<usize>() > 3 {
        now += MILLI;
        assert!(now < 1_000 * MILLI, "{:?} are left", crowd.lengths());
        look(&mut worker, now);
    }
    assert_eq!(crowd.lengths(), [0, 0, 0, 0, 3, 0]);
    (0..100).for_each(|nth| assert!(look(&mut worker, now + nth * MILLI).is_none()));
}

/// Checks that the look is a part of the rotation: the global queue comes first, and the worker's
/// own oldest next.
// pins: G4
#[test]
fn who_is_taken_of_another_worker_is_put_before_nobody() {
    let mut looks = 0;
    for seed in 0..20 {
        let crowd = Crowd::new(&[2, 5]);
        let new = crowd.scheduler.submit(NoopProcess, "main", ()).unwrap();
        let pids = crowd.queues.iter().map(|queue| {
            let stealer = queue.deque.stealer();
            let tokens: Vec<_> = std::iter::from_fn(|| stealer.steal().success()).collect();
            let oldest = tokens[0].cell().pid();
            let push = |token| ganger_deque::Worker::push(&queue.deque, token);
            tokens.into_iter().for_each(push);
            oldest
        });
        let oldest: Vec<_> = pids.collect();
        let mut worker = Worker::new(&crowd.queues[0]);
        worker.random = fastrand::Rng::with_seed(seed);
        let pick = |token: Option<Token>| token.unwrap().cell().pid();
        assert_eq!(pick(worker.rotate(MILLI)), new.pid());
        assert_eq!(worker.last_balance, 0, "it has not looked");
        assert!(worker.rotation.oldest_is_next);
        worker.rotation.forget_the_oldest();
        let picked = pick(worker.rotate(MILLI));
        if worker.last_balance == MILLI {
            looks += 1;
            assert_eq!(picked, oldest[1]);
            assert_eq!(pick(worker.find_work()), oldest[0]);
        } else {
            assert_eq!(picked, oldest[0]);
            assert!(!worker.rotation.oldest_is_next);
        }
    }
    assert!((1..15).contains(&looks), "{looks} looks in 20 rotations");
}

/// Returns each process's picks of two workers that pick in turn, at the same pace, processes
/// without an end.
fn picks(lengths: [usize; 2], step_micros: u64, offset: u32) -> Vec<u64> {
    /// The coarse time goes on by so much at a time.
    const TICK: u64 = 2_060;
    let crowd = Crowd::new(&lengths);
    let shared = &crowd.scheduler.shared;
    let mut workers = [0, 1].map(|index| Worker::new(&crowd.queues[index]));
    workers[1].rotation.left -= offset;
    let mut running = [None, None];
    let mut counts = BTreeMap::new();
    for nth in 0..100_000_u64 {
        let turn = usize::from(nth % 2 == 1);
        let micros = nth / 2 * step_micros;
        shared
            .timing
            .time
            .go_on(Duration::from_micros(micros / TICK * TICK));
        if let Some((token, guard)) = running[turn].take() {
            drop::<Running<'_>>(guard);
            ganger_deque::Worker::push(&crowd.queues[turn].deque, token);
        }
        let token = workers[turn].find_work().unwrap();
        let pid = token.cell().pid();
        *counts.entry(pid.id()).or_insert(0) += 1;
        running[turn] = Some((token, shared.census.turns.begin(Some(turn), pid)));
    }
    std::mem::forget(running);
    counts.into_values().collect()
}

/// Checks the shares whatever the length of a step, and however the rotations of the two fall: if
/// both looked at each, the same process would alternate, and have one step each time.
// pins: G4
#[test]
fn workers_in_step_with_each_other_give_all_the_same_share() {
    for lengths in [[1, 2], [2, 3]] {
        for (step_micros, offset) in [
            (20, 30),
            (40, 30),
            (100, 0),
            (100, 30),
            (200, 30),
            (1_000, 10),
        ] {
            let picks = picks(lengths, step_micros, offset);
            let (least, most) = (picks.iter().min().unwrap(), picks.iter().max().unwrap());
            assert!(
                most * 4 < least * 5,
                "{lengths:?}, {step_micros} us, {offset}: {picks:?}"
            );
        }
    }
}
