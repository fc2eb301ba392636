//! The workers' cores, as seen from inside their steps.
#![cfg(all(target_os = "linux", not(ganger_loom)))]

#[path = "it/support/mod.rs"]
mod support;

use ganger_proc_api::{Context, Events, ExitReason, Process, StepOutput, StepResult};
use ganger_sched::{BuildError, Builder, Handle, Pinning, ProcessState, Scheduler};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use support::*;

/// Longer than any test.
const NEVER: Duration = Duration::from_secs(3_600);

/// Returns the cores of this thread.
fn own_cores() -> Vec<usize> {
    let mask = sched_getaffinity(None).unwrap();
    let cores = (0..CpuSet::MAX_CPU).filter(|&core| mask.is_set(core));
    cores.collect()
}

fn started(builder: Builder) -> Scheduler {
    let scheduler = builder.build().unwrap();
    scheduler.start().unwrap();
    scheduler
}

/// Creates a process that sends its worker's cores, once `at_once` of its kind are in their steps.
fn look(at_once: usize, inside: &Arc<AtomicUsize>, to: &mpsc::Sender<Vec<usize>>) -> impl Process {
    let (inside, to) = (Arc::clone(inside), to.clone());
    process(move |_, _, out| {
        inside.fetch_add(1, Ordering::SeqCst);
        until("each worker is in a step", || {
            inside.load(Ordering::SeqCst) >= at_once
        });
        to.send(own_cores())?;
        out.done(1);
        Ok(())
    })
}

/// Returns the cores of each worker, while all of them are in a step.
fn masks(scheduler: &Handle, workers: usize) -> Vec<Vec<usize>> {
    let (to, seen) = mpsc::channel();
    let inside = Arc::default();
    let handles: Vec<_> = (0..workers)
        .map(|_| scheduler.submit(look(workers, &inside, &to), "main", ()))
        .collect();
    for handle in handles {
        assert_eq!(exit_number(handle.unwrap()), 1);
    }
    let mut masks: Vec<_> = seen.try_iter().collect();
    masks.sort_unstable();
    masks
}

/// Creates a builder without spares, whose monitor notices no long step.
fn unnoticed(workers: usize) -> Builder {
    let builder = Scheduler::builder().workers(workers).max_spares(0);
    builder.step_limits(NEVER, NEVER)
}

#[test]
fn without_pinning_workers_may_use_every_core_of_their_parent() {
    let scheduler = started(unnoticed(2));
    assert_eq!(masks(&scheduler, 2), vec![own_cores(); 2]);
}

#[test]
fn each_worker_has_one_core_in_turn() {
    let cores = own_cores();
    for workers in [1, cores.len(), 2 * cores.len() + 1] {
        let scheduler = started(unnoticed(workers).pin_workers(Pinning::RoundRobin));
        let mut expected: Vec<_> = (0..workers)
            .map(|nth| vec![cores[nth % cores.len()]])
            .collect();
        expected.sort_unstable();
        assert_eq!(masks(&scheduler, workers), expected);
    }
}

#[test]
fn a_list_is_gone_through_in_turn() {
    let last = *own_cores().last().unwrap();
    let scheduler = started(unnoticed(3).pin_workers(Pinning::Cores(vec![last])));
    assert_eq!(masks(&scheduler, 3), vec![vec![last]; 3]);
}

#[test]
fn only_cores_of_the_building_thread_are_used() {
    let last = *own_cores().last().unwrap();
    // On a thread of its own, with a single core.
    let builder = std::thread::spawn(move || {
        let mut only = CpuSet::new();
        only.set(last);
        sched_setaffinity(None, &only).unwrap();
        let scheduler = started(unnoticed(2).pin_workers(Pinning::RoundRobin));
        assert_eq!(masks(&scheduler, 2), vec![vec![last]; 2]);
    });
    builder.join().unwrap();
}

#[test]
fn a_core_that_may_not_be_used_is_refused_with_those_that_may() {
    let allowed = own_cores();
    let pins = |cores: &[usize]| {
        let builder = Scheduler::builder().pin_workers(Pinning::Cores(cores.to_vec()));
        builder.build().map(drop)
    };
    let error = pins(&[allowed[0], 100_000]).unwrap_err();
    assert!(
        matches!(&error, BuildError::Core { core: 100_000, allowed: these } if *these == allowed)
    );
    let text = error.to_string();
    assert!(
        text.contains("core 100000") && text.contains("cpuset"),
        "{text}"
    );
    assert!(matches!(pins(&[]), Err(BuildError::NoCores)));
    assert!(pins(&allowed).is_ok());
}

/// Has a step keep the only worker with `wait`, three times. The worker is pinned until it is
/// relieved, and from then on the spare in its place is.
fn assert_place_is_taken(wait: fn(&mpsc::Receiver<()>)) {
    let all = own_cores();
    let core = all[0];
    let pins = Pinning::Cores(all.clone());
    let scheduler = started(Scheduler::builder().workers(1).pin_workers(pins));
    for _ in 0..3 {
        let (release, released) = mpsc::channel();
        let (began, seen) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(Mutex::new(vec![])),
        );
        let released = Mutex::new(released);
        let keeper = {
            let (began, seen, all) = (Arc::clone(&began), Arc::clone(&seen), all.clone());
            process(move |_, _, out| {
                seen.lock().unwrap().extend(own_cores());
                began.store(true, Ordering::SeqCst);
                wait(&released.lock().unwrap());
                until("it may use all cores", || own_cores() == all);
                out.done(1);
                Ok(())
            })
        };
        let keeper = scheduler.submit(keeper, "main", ()).unwrap();
        until("it has begun", || began.load(Ordering::SeqCst));
        assert_eq!(masks(&scheduler, 1), [[core]], "of the spare");
        release.send(()).unwrap();
        assert_eq!(exit_number(keeper), 1);
        assert_eq!(*seen.lock().unwrap(), [core]);
    }
}

// pins: G6
#[test]
fn a_spare_gets_the_core_of_a_step_that_blocks() {
    assert_place_is_taken(|released| released.recv().unwrap());
}

// pins: G6
#[test]
fn a_spare_gets_the_core_of_a_step_that_computes_and_the_step_another() {
    assert_place_is_taken(|released| {
        while released.try_recv().is_err() {
            std::hint::spin_loop();
        }
    });
}

/// Waits idle for ever, and sends the cores of the closing thread.
struct Closed(mpsc::Sender<Vec<usize>>);

impl Process for Closed {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
        Ok(())
    }

    fn close(&mut self) {
        let _ = self.0.send(own_cores());
    }
}

// pins: D3
#[test]
fn a_stop_that_a_pinned_step_begins_is_helped_by_a_thread_that_is_not_pinned() {
    let scheduler = started(unnoticed(1).pin_workers(Pinning::RoundRobin));
    let (to, seen) = mpsc::channel();
    let closed = scheduler.submit(Closed(to), "main", ()).unwrap();
    until_state(&scheduler, closed.pid(), ProcessState::Idle);
    let handle = scheduler.handle();
    let (release, released) = mpsc::channel::<()>();
    let stopper = process(move |_, _, out| {
        handle.begin_stop(Duration::ZERO);
        let _released = released.recv();
        out.done(1);
        Ok(())
    });
    drop(scheduler.submit(stopper, "main", ()).unwrap());
    assert!(matches!(exit(closed), ExitReason::Terminated));
    drop(release);
    assert_eq!(seen.recv_timeout(PATIENCE).unwrap(), own_cores());
}
