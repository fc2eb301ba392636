//! Locks in the simulation: all orders of a seed, with faults.

use ganger_lock::{Barrier, Locked, Mutex, OwnedMutexGuard, RwLock, Semaphore, Until};
use ganger_proc_api::{Context, Event, Events, Process, StepOutput, StepResult};
use ganger_sim::{Faults, Sim};
use ganger_task::Cx;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// The state that the processes of a run share.
struct Hall {
    mutex: Arc<Mutex<u64>>,
    inside: AtomicUsize,
}

/// Takes the lock, sleeps with it, and gives it back, some times.
struct Visitor {
    hall: Arc<Hall>,
    guard: Option<OwnedMutexGuard<u64>>,
    left: u32,
}

impl Visitor {
    fn leave(&mut self) {
        if let Some(mut guard) = self.guard.take() {
            *guard += 1;
            // Ordering: Relaxed: a simulation has a single thread.
            self.hall.inside.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Visitor {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Process for Visitor {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        let mut is_new = events.is_empty() && self.guard.is_none();
        for event in events {
            match event {
                Event::Completion(it) if it.tag == 1 => {
                    let guard = it.take::<Locked<u64>>()?;
                    // Ordering: Relaxed: a simulation has a single thread.
                    assert_eq!(self.hall.inside.fetch_add(1, Ordering::Relaxed), 0);
                    self.guard = Some(guard.unwrap_or_else(PoisonError::into_inner));
                    out.sleep(Duration::from_micros(700), 2);
                }
                Event::Completion(it) if it.tag == 2 => {
                    it.result?;
                    self.leave();
                    self.left -= 1;
                    is_new = true;
                }
                _ => {}
            }
        }
        if self.left == 0 {
            out.done(());
        } else if is_new {
            out.cancel(1);
            out.ask(Until::new(Arc::clone(&self.hall.mutex).lock_owned()), 1);
        }
        Ok(())
    }
}

// pins: K1, K3, K4
#[test]
fn owners_and_waiters_end_at_any_moment() {
    let faults = Faults {
        step_panics: 20,
        process_is_terminated: 10,
        process_is_cancelled: 10,
        worker_wakes_in_vain: 20,
        ..Faults::some()
    };
    Sim::new(0)
        .workers(2)
        .faults(faults)
        .check_seeds(150, |rt| {
            let hall = Arc::new(Hall {
                mutex: Arc::new(Mutex::new(0)),
                inside: AtomicUsize::new(0),
            });
            let visitors = [(); 5].map(|()| {
                let visitor = Visitor {
                    hall: Arc::clone(&hall),
                    guard: None,
                    left: 3,
                };
                rt.spawn(visitor).ok()
            });
            let ends: Vec<_> = visitors
                .into_iter()
                .flatten()
                .map(|it| rt.wait(it))
                .collect();
            rt.settle();
            let failed = ends.iter().any(|it| !it.is_done());
            // Each process has left the lock, and the lock is free.
            assert!(hall.mutex.try_lock().is_ok() || hall.mutex.is_poisoned());
            assert!(failed || !hall.mutex.is_poisoned());
            hall.mutex.clear_poison();
            let value = *hall.mutex.try_lock().expect("it is free");
            assert!(failed || value == 15, "{value}");
        });
}

/// Takes the lock again and again by two hogs, while a third process wants the lock once. The
/// simulation's clock brings it the lock soon.
// pins: K2
#[test]
fn a_waiter_gets_its_turn_in_virtual_time() {
    Sim::check(50, |rt| {
        let mutex = Arc::new(Mutex::new(0_u32));
        let hogs = [(); 2].map(|()| {
            let mutex = Arc::clone(&mutex);
            rt.spawn(async move |cx: Cx| {
                loop {
                    let mut turns = cx.until_cancelled(mutex.lock()).await?;
                    if let Ok(turns) = &mut turns {
                        **turns += 1;
                    }
                    cx.sleep(Duration::from_micros(400)).await?;
                }
                #[allow(unreachable_code, reason = "it says of which type the result is")]
                Ok(())
            })
            .unwrap()
        });
        let own = Arc::clone(&mutex);
        let waiter = rt
            .spawn(async move |_: Cx| {
                let turns = own.lock().await.map_err(|it| it.to_string())?;
                Ok(*turns)
            })
            .unwrap();
        let turns = rt.wait(waiter).take::<u32>().unwrap();
        // The process loses for at most a millisecond, and then waits for the entries before it in
        // the queue.
        assert!(turns <= 20, "{turns}");
        for hog in hogs {
            rt.cancel(hog.pid(), "enough").unwrap();
            drop(rt.wait(hog));
        }
    });
}

// pins: K4, K5, K6
#[test]
fn waits_that_time_out_leave_the_locks_as_they_were() {
    let faults = Faults {
        process_is_terminated: 5,
        ..Faults::some()
    };
    Sim::new(0)
        .workers(2)
        .faults(faults)
        .check_seeds(100, |rt| {
            let (lock, permits) = (Arc::new(RwLock::new(0)), Arc::new(Semaphore::new(3)));
            let tasks = [0_u64, 1, 2, 3].map(|number| {
                let (lock, permits) = (Arc::clone(&lock), Arc::clone(&permits));
                let body = async move |cx: Cx| {
                    for round in 0..4_u64 {
                        let time = Duration::from_micros(100 * (1 + (number + round) % 4));
                        if (number + round) % 3 == 0 {
                            let write = cx.timeout(time, lock.write()).await;
                            cx.sleep(time).await?;
                            drop(write);
                        } else {
                            let read = cx.timeout(time, lock.read()).await;
                            let some = permits.acquire(1 + (number % 3) as usize);
                            let some = cx.timeout(time, some).await;
                            cx.sleep(time).await?;
                            drop((read, some));
                        }
                    }
                    Ok(())
                };
                rt.spawn(body).unwrap()
            });
            for task in tasks {
                drop(rt.wait(task));
            }
            lock.clear_poison();
            assert!(lock.try_write().is_ok());
            assert_eq!(permits.available(), 3);
        });
}

// pins: K9
#[test]
fn a_run_that_is_stuck_names_the_cycle() {
    let failed = Sim::new(0).workers(2).try_seeds(3, |rt| {
        let locks = Arc::new([Mutex::new(()), Mutex::new(())]);
        let meet = Arc::new(Barrier::new(2));
        let tasks = [0, 1].map(|own| {
            let (locks, meet) = (Arc::clone(&locks), Arc::clone(&meet));
            let body = async move |_: Cx| {
                let _first = locks[own].lock().await.map_err(|it| it.to_string())?;
                meet.wait().await;
                drop(locks[1 - own].lock().await);
                Ok(())
            };
            rt.spawn(body).unwrap()
        });
        for task in tasks {
            drop(rt.wait(task));
        }
    });
    let text = failed.expect_err("they wait for each other").to_string();
    let (_, cycle) = text.split_once("These wait for each other:").expect(&text);
    assert!(
        cycle.contains("waits for the mutex") && cycle.contains(" has"),
        "{text}"
    );
}

#[test]
fn a_blocking_wait_in_a_simulation_says_what_to_call_instead() {
    let failed = Sim::new(0).try_seeds(1, |rt| {
        let mutex = Arc::new(Mutex::new(0));
        // A free lock is no wait.
        *mutex.lock_blocking().unwrap() += 1;
        let owner = Arc::clone(&mutex);
        let holds = rt.spawn(async move |cx: Cx| {
            let _guard = owner.lock().await.map_err(|it| it.to_string())?;
            Ok(cx.sleep(Duration::from_secs(1)).await?)
        });
        rt.run_for(Duration::from_millis(10));
        drop(mutex.lock_blocking());
        drop(holds);
    });
    let text = failed.unwrap_err().to_string();
    assert!(
        text.contains("a lock that waits") && text.contains("`lock`"),
        "{text}"
    );
}
