//! The marks of failing owners.

use crate::support::{start, until};
use ganger_lock::{
    AcquireError, Locked, Mutex, Notify, OwnedMutexGuard, Permits, RwLock, Semaphore, Until,
    block_on_for,
};
use ganger_proc_api::{
    BoxError, Context, Event, Events, ExitReason, Message, Process, StepOutput, StepResult,
    process_fn,
};
use ganger_sched::{ProcessHandle, ProcessState, Scheduler};
use ganger_task::Cx;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a scheduler with a single worker, so that processes run in the order of their wakes.
fn scheduler() -> Scheduler {
    start(1)
}

/// The end of a process that has a lock.
#[derive(Debug, Clone, Copy)]
enum End {
    Done,
    Fails,
    Panics,
    PanicsInTheStep,
    Terminated,
    Cancelled,
}

struct Holder {
    mutex: Arc<Mutex<u64>>,
    end: End,
    guard: Option<OwnedMutexGuard<u64>>,
}

impl Process for Holder {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        match events.next() {
            None if self.guard.is_none() => {
                out.ask(Until::new(Arc::clone(&self.mutex).lock_owned()), 1);
            }
            Some(Event::Completion(it)) => {
                let guard = it
                    .take::<Locked<u64>>()?
                    .unwrap_or_else(PoisonError::into_inner);
                match self.end {
                    End::PanicsInTheStep => {
                        let _guard = guard;
                        panic!("on purpose");
                    }
                    End::Terminated => ctx.terminate(ctx.pid())?,
                    End::Cancelled => ctx.cancel(ctx.pid(), "enough")?,
                    _ => {}
                }
                self.guard = Some(guard);
                match self.end {
                    End::Done => out.done(()),
                    End::Fails => return Err("on purpose".into()),
                    End::Panics => panic!("on purpose"),
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(())
    }
}

// pins: K3
#[test]
fn an_owner_that_fails_leaves_a_mark() {
    let scheduler = scheduler();
    let mutex = Arc::new(Mutex::new(7));
    for (end, is_marked) in [
        (End::Done, false),
        (End::Cancelled, false),
        (End::Fails, true),
        (End::Panics, true),
        (End::PanicsInTheStep, true),
        (End::Terminated, true),
    ] {
        let holder = Holder {
            mutex: Arc::clone(&mutex),
            end,
            guard: None,
        };
        drop(scheduler.spawn(holder).unwrap().wait());
        assert_eq!(mutex.is_poisoned(), is_marked, "{end:?}");
        // The next owner is told, and has the value.
        let value = block_on_for(Duration::from_secs(60), mutex.lock()).expect("it is free");
        match value {
            Ok(value) => assert!(!is_marked && *value == 7),
            Err(error) => assert!(is_marked && **error.get_ref() == 7),
        }
        mutex.clear_poison();
        assert!(mutex.lock_blocking().is_ok());
    }
}

// pins: K3
#[test]
fn a_task_that_panics_leaves_a_mark() -> Result<(), BoxError> {
    let scheduler = scheduler();
    let mutex = Arc::new(Mutex::new(()));
    let own = Arc::clone(&mutex);
    let task = scheduler.spawn(async move |_: Cx| {
        let _guard = own.lock().await.map_err(|it| it.to_string())?;
        if own.is_poisoned() {
            return Ok(());
        }
        panic!("on purpose");
    })?;
    assert!(!task.wait().is_done());
    assert!(mutex.is_poisoned());
    // A thread that takes the lock while it unwinds has not failed under the lock.
    mutex.clear_poison();
    struct Takes(Arc<Mutex<()>>);
    impl Drop for Takes {
        fn drop(&mut self) {
            drop(self.0.lock_blocking());
        }
    }
    let takes = Takes(Arc::clone(&mutex));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _takes = takes;
        panic!("on purpose");
    }));
    assert!(panicked.is_err() && !mutex.is_poisoned());
    Ok(())
}

/// Fails a step with a guard of its own, and hands the lock over while the step unwinds. The next
/// owner fails in the same way, on the same thread.
// pins: K3
#[test]
fn an_owner_that_had_the_lock_from_one_that_unwinds_leaves_a_mark_as_well() {
    let scheduler = scheduler();
    let mutex = Arc::new(Mutex::new(7_u64));
    let guard = mutex.lock_blocking().unwrap();
    let holders = [(); 2].map(|()| {
        let holder = process_fn({
            let mutex = Arc::clone(&mutex);
            move |_, events, out| {
                match events.next() {
                    None => drop(out.ask(Until::new(Arc::clone(&mutex).lock_owned()), 1)),
                    Some(Event::Completion(it)) => {
                        let guard = it.take::<Locked<u64>>()?;
                        let _guard = guard.unwrap_or_else(PoisonError::into_inner);
                        mutex.clear_poison();
                        panic!("on purpose");
                    }
                    Some(_) => {}
                }
                Ok(())
            }
        });
        let holder = scheduler.spawn(holder).unwrap();
        until(&scheduler, &holder, ProcessState::Blocked);
        holder
    });
    drop(guard);
    for holder in holders {
        assert!(matches!(holder.wait(), ExitReason::Panicked(_)));
    }
    assert!(mutex.is_poisoned());
}

/// Has a permit, and fails at the next event, in the step or after it.
fn fails_with_a_permit(semaphore: &Arc<Semaphore>, in_the_step: bool) -> impl Process {
    type Given = Result<Permits<Arc<Semaphore>>, AcquireError>;
    let semaphore = Arc::clone(semaphore);
    let mut permit = None;
    process_fn(move |_, events, out| {
        match events.next() {
            None => drop(out.ask(Until::new(Arc::clone(&semaphore).acquire_owned(1)), 1)),
            Some(Event::Completion(it)) => permit = Some(it.take::<Given>()??),
            Some(_) if in_the_step => {
                let _permit = permit.take();
                panic!("on purpose");
            }
            Some(_) => return Err("on purpose".into()),
        }
        Ok(())
    })
}

/// Polls a future from its waker. So the future goes on while another process fails, in which the
/// future has no part.
// pins: K3
#[test]
fn an_owner_that_is_woken_by_one_that_fails_leaves_no_mark() {
    for in_the_step in [false, true] {
        let scheduler = scheduler();
        let semaphore = Arc::new(Semaphore::new(1));
        let mutexes = [(); 2].map(|()| Arc::new(Mutex::new(7)));
        let fails = fails_with_a_permit(&semaphore, in_the_step);
        let fails = scheduler.spawn(fails).unwrap();
        while semaphore.available() > 0 {
            std::thread::yield_now();
        }
        let healthy = process_fn({
            let (semaphore, mutexes) = (Arc::clone(&semaphore), mutexes.clone());
            move |_, events, out| {
                if events.next().is_some() {
                    out.done(());
                    return Ok(());
                }
                let (semaphore, [early, late]) = (Arc::clone(&semaphore), mutexes.clone());
                out.ask(
                    Until::new(async move {
                        // A guard from before, and a guard taken meanwhile.
                        let mut early = early.lock().await.unwrap();
                        let _permit = semaphore.acquire(1).await.unwrap();
                        *late.lock().await.unwrap() += *early;
                        *early += 1;
                    }),
                    1,
                );
                Ok(())
            }
        });
        let healthy = scheduler.spawn(healthy).unwrap();
        until(&scheduler, &healthy, ProcessState::Blocked);
        until(&scheduler, &fails, ProcessState::Idle);
        fails.send(Message::new("now", ())).unwrap();
        assert!(!fails.wait().is_done() && healthy.wait().is_done());
        let values = mutexes.map(|it| *it.lock_blocking().expect("no owner has failed"));
        assert_eq!(values, [8, 14]);
    }
}

/// A yield has the locks, and never ends by itself.
struct Waits {
    mutex: Arc<Mutex<u64>>,
    values: Arc<RwLock<u64>>,
}

impl Process for Waits {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        match events.next() {
            None => {
                let (mutex, values) = (Arc::clone(&self.mutex), Arc::clone(&self.values));
                out.ask(
                    Until::new(async move {
                        let _guard = mutex.lock().await.unwrap();
                        let _write = values.write().await.unwrap();
                        Notify::new().notified().await;
                    }),
                    1,
                );
            }
            Some(Event::Message(it)) if it.topic == "done" => out.done(()),
            Some(Event::Message(it)) if it.topic == "take back" => out.cancel(1),
            Some(Event::Message(_)) => return Err("on purpose".into()),
            Some(_) => {}
        }
        Ok(())
    }
}

// pins: K3
#[test]
fn a_process_that_fails_marks_the_locks_that_its_yields_have() {
    let scheduler = scheduler();
    type Ends = fn(&Scheduler, &ProcessHandle);
    let ends: [(Ends, bool); 5] = [
        (|scheduler, it| scheduler.terminate(it.pid()).unwrap(), true),
        (|_, it| say(it, "fail"), true),
        (|_, it| say(it, "done"), false),
        (|_, it| say(it, "take back"), false),
        (
            |scheduler, it| scheduler.cancel(it.pid(), "enough").unwrap(),
            false,
        ),
    ];
    for (end, is_marked) in ends {
        let (mutex, values) = (Arc::new(Mutex::new(7)), Arc::new(RwLock::new(7)));
        let waits = Waits {
            mutex: Arc::clone(&mutex),
            values: Arc::clone(&values),
        };
        let waits = scheduler.spawn(waits).unwrap();
        until(&scheduler, &waits, ProcessState::Blocked);
        assert!(mutex.try_lock().is_err() && values.try_read().is_err());
        end(&scheduler, &waits);
        let locked = block_on_for(PATIENCE, mutex.lock()).expect("it is free");
        assert_eq!(locked.is_err(), is_marked);
        let read = block_on_for(PATIENCE, values.read()).expect("it is free");
        assert_eq!(read.is_err(), is_marked);
        scheduler.terminate(waits.pid()).ok();
    }
}

fn say(to: &ProcessHandle, topic: &'static str) {
    to.send(Message::new(topic, ())).unwrap();
}
