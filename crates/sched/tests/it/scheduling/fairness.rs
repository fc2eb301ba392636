//! Every ready process gets its turn.

use crate::support::*;
use ganger_proc_api::{Event, Message, Pid};
use ganger_sched::{Builder, ProcessState, Scheduler};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

/// Computes, by the formula of the documentation, within how many picks a process with `before`
/// others in front starts.
fn bound(before: u64) -> u64 {
    (127 + 1) * (before + 16 + 2)
}

// pins: G4
#[test]
fn every_ready_process_starts_within_the_bound_whatever_the_others_do() {
    let scheduler = start(1);
    let picks = Arc::new(AtomicU64::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let count = || {
        let (picks, stop) = (Arc::clone(&picks), Arc::clone(&stop));
        move || {
            picks.fetch_add(1, Ordering::SeqCst);
            stop.load(Ordering::SeqCst)
        }
    };
    let mut adversaries = Vec::new();
    for _ in 0..10 {
        let count = count();
        let hog = process(move |_, _, out| {
            if count() {
                out.done(());
            } else {
                out.step_again();
            }
            Ok(())
        });
        adversaries.push(scheduler.submit(hog, "main", ()).unwrap());
    }
    for _ in 0..5 {
        let pair: Vec<_> = (0..2)
            .map(|_| {
                let count = count();
                let player = process(move |ctx, events, out| {
                    for event in events {
                        match event {
                            Event::Message(message) => {
                                let _ = ctx.send(message.source.unwrap(), "ball", ());
                            }
                            _ => out.done(()),
                        }
                    }
                    if count() {
                        out.done(());
                    }
                    Ok(())
                });
                scheduler.submit(player, "main", ()).unwrap()
            })
            .collect();
        pair[0]
            .send(Message::new("ball", ()).from_pid(pair[1].pid()))
            .unwrap();
        adversaries.extend(pair);
    }
    let crowd = adversaries.len() as u64;

    // A flood of submits accompanies the probes.
    let flood = Arc::new(AtomicBool::new(true));
    let flooder = {
        let (handle, flood, count) = (scheduler.handle(), Arc::clone(&flood), count());
        let count = Arc::new(count);
        thread::spawn(move || {
            while flood.load(Ordering::SeqCst) {
                if handle.stats().global_queue < 32 {
                    let count = Arc::clone(&count);
                    let short = process(move |_, _, out| {
                        count();
                        out.done(());
                        Ok(())
                    });
                    if handle.submit(short, "main", ()).is_err() {
                        return;
                    }
                }
                thread::yield_now();
            }
        })
    };
    let mut worst = 0;
    for _ in 0..300 {
        // While the only worker is held in a step, no process is picked: all processes counted from
        // here on come before the probe.
        let ((entered, has_entered), (leave, may_leave)) = (mpsc::channel(), mpsc::channel());
        let holder = process(move |_, _, out| {
            entered.send(())?;
            out.done(());
            Ok(may_leave.recv()?)
        });
        let holder = scheduler.submit(holder, "main", ()).unwrap();
        has_entered.recv().unwrap();
        let counter = Arc::clone(&picks);
        let probe = process(move |_, _, out| {
            out.done(counter.load(Ordering::SeqCst));
            Ok(())
        });
        let submitted = picks.load(Ordering::SeqCst);
        let before = scheduler.stats().global_queue as u64;
        let probe = scheduler.submit(probe, "main", ()).unwrap();
        leave.send(()).unwrap();
        let waited = exit_number(probe) - submitted;
        assert!(exit(holder).is_done());
        // The flood may have put another process before it than was counted.
        let bound = bound(before + crowd + 2);
        assert!(waited <= bound, "{waited} picks, {before} before it");
        worst = worst.max(waited);
    }
    assert!(worst > 0, "the probes had company");
    flood.store(false, Ordering::SeqCst);
    flooder.join().unwrap();
    stop.store(true, Ordering::SeqCst);
    let report = scheduler.stop(PATIENCE).unwrap();
    assert_eq!((report.forced, report.stuck.len()), (0, 0));
}

// pins: G4
#[test]
fn those_that_always_continue_share_a_worker_evenly() {
    let scheduler = start(1);
    let counts: Arc<Vec<AtomicU64>> = Arc::new((0..20).map(|_| AtomicU64::new(0)).collect());
    let stop = Arc::new(AtomicBool::new(false));
    let handles: Vec<_> = (0..counts.len())
        .map(|n| {
            let (counts, stop) = (Arc::clone(&counts), Arc::clone(&stop));
            let hog = process(move |_, _, out| {
                counts[n].fetch_add(1, Ordering::Relaxed);
                if stop.load(Ordering::Relaxed) {
                    out.done(());
                } else {
                    out.step_again();
                }
                Ok(())
            });
            scheduler.submit(hog, "main", ()).unwrap()
        })
        .collect();
    until("all have run long", || {
        counts.iter().all(|c| c.load(Ordering::Relaxed) > 20_000)
    });
    let counts: Vec<u64> = counts
        .iter()
        .map(|count| count.load(Ordering::Relaxed))
        .collect();
    stop.store(true, Ordering::Relaxed);
    handles.into_iter().for_each(|handle| drop(exit(handle)));
    let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    assert!(most < &(least * 2), "from {least} to {most}");
}

// pins: G4
#[test]
fn the_chain_limit_rotates_before_the_61st_pick() {
    let builder = Scheduler::builder().workers(1).rotation(1_000_000);
    let scheduler = builder
        .chain_limit(Duration::from_millis(1))
        .build()
        .unwrap();
    scheduler.start().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let hog = process(move |_, _, out| {
        if stopped.load(Ordering::SeqCst) {
            out.done(());
        } else {
            out.step_again();
        }
        Ok(())
    });
    let hog = scheduler.submit(hog, "main", ()).unwrap();
    until_state(&scheduler, hog.pid(), ProcessState::Running);
    // Without the limit this process would wait for a million steps of the other.
    let quick = process(|_, _, out| {
        out.done(1);
        Ok(())
    });
    assert_eq!(exit_number(scheduler.submit(quick, "main", ()).unwrap()), 1);
    assert!(scheduler.worker_stats()[0].rotations >= 1);
    stop.store(true, Ordering::SeqCst);
    exit(hog);
}

// pins: G4
#[test]
fn each_pick_may_be_a_rotation_and_then_they_start_in_the_order_of_their_submits() {
    const PROCESSES: usize = 40;
    let by_picks = |builder: Builder| builder.rotation(1);
    let by_time = |builder: Builder| builder.chain_limit(Duration::ZERO);
    for always in [by_picks as fn(Builder) -> Builder, by_time] {
        let builder = always(Scheduler::builder().workers(1));
        let scheduler = builder.build().unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let handles = (0..PROCESSES).map(|nth| {
            let order = Arc::clone(&order);
            let quick = process(move |_, _, out| {
                order.lock().unwrap().push(nth);
                out.done(());
                Ok(())
            });
            scheduler.submit(quick, "main", ()).unwrap()
        });
        let handles: Vec<_> = handles.collect();
        scheduler.start().unwrap();
        for handle in handles {
            exit(handle);
        }
        let order = order.lock().unwrap();
        assert!(order.iter().copied().eq(0..PROCESSES), "{order:?}");
    }
}

/// Two chains of processes on two workers. Each process wakes the next two on its own worker, so
/// the oldest process in a deque is stolen again and again.
struct Relay {
    stop: AtomicBool,
    started: AtomicU64,
    pushed: AtomicU64,
    first: Mutex<Vec<Pid>>,
    second: Mutex<Vec<Pid>>,
}

impl Relay {
    const LENGTH: u64 = 8;

    fn target(list: &Mutex<Vec<Pid>>, n: u64) -> Pid {
        list.lock().unwrap()[usize::try_from(n % Self::LENGTH).unwrap()]
    }

    /// Gives way until `reached` has got to `n`, or the test is over.
    fn wait(&self, reached: &AtomicU64, n: u64) {
        while reached.load(Ordering::SeqCst) < n && !self.stop.load(Ordering::SeqCst) {
            thread::yield_now();
        }
    }
}

// pins: G4
#[test]
fn a_process_that_is_stolen_again_and_again_gets_its_turn() {
    fn number(event: Event) -> u64 {
        match event {
            Event::Message(message) => message.payloads.into_first().as_u64().unwrap(),
            _ => u64::MAX,
        }
    }
    let scheduler = start(2);
    let relay = Arc::new(Relay {
        stop: AtomicBool::new(false),
        started: AtomicU64::new(0),
        pushed: AtomicU64::new(0),
        first: Mutex::default(),
        second: Mutex::default(),
    });
    let started_at = Arc::clone(&relay);
    let victim = process(move |_, events, out| {
        if events.next().is_some() {
            out.done(started_at.started.load(Ordering::SeqCst));
        }
        Ok(())
    });
    let victim = scheduler.submit(victim, "main", ()).unwrap();
    for _ in 0..Relay::LENGTH {
        let state = Arc::clone(&relay);
        let first = process(move |ctx, events, _| {
            let Some(event) = events.next() else {
                return Ok(());
            };
            let n = number(event);
            state.started.store(n, Ordering::SeqCst);
            if !state.stop.load(Ordering::SeqCst) {
                ctx.send(Relay::target(&state.first, n + 1), "go", n + 1)?;
                ctx.send(Relay::target(&state.second, n + 1), "go", n + 1)?;
                state.pushed.store(n, Ordering::SeqCst);
                state.wait(&state.started, n + 1);
            }
            Ok(())
        });
        let state = Arc::clone(&relay);
        let second = process(move |_, events, _| {
            if let Some(event) = events.next() {
                state.wait(&state.pushed, number(event));
            }
            Ok(())
        });
        let first = scheduler.submit(first, "main", ()).unwrap().pid();
        let second = scheduler.submit(second, "main", ()).unwrap().pid();
        relay.first.lock().unwrap().push(first);
        relay.second.lock().unwrap().push(second);
    }
    until("all are idle", || scheduler.stats().sleeping == 2);

    // Both workers are held until one of them has the victim, below the first of the chains.
    let (entered, has_entered) = mpsc::channel();
    let ready = Arc::new(AtomicBool::new(false));
    let (is_ready, entered_too) = (Arc::clone(&ready), entered.clone());
    let blocker = process(move |_, _, out| {
        entered_too.send(()).unwrap();
        until("the deque is filled", || is_ready.load(Ordering::SeqCst));
        out.done(());
        Ok(())
    });
    let blocker = scheduler.submit(blocker, "main", ()).unwrap();
    has_entered.recv().unwrap();
    let (pid, state) = (victim.pid(), Arc::clone(&relay));
    let filler = process(move |ctx, _, out| {
        ctx.send(pid, "go", 0_u64)?;
        ctx.send(Relay::target(&state.first, 1), "go", 1_u64)?;
        ctx.send(Relay::target(&state.second, 1), "go", 1_u64)?;
        ready.store(true, Ordering::SeqCst);
        state.wait(&state.started, 1);
        out.done(());
        Ok(())
    });
    let filler = scheduler.submit(filler, "main", ()).unwrap();
    let started_after = exit_number(victim);
    relay.stop.store(true, Ordering::SeqCst);
    assert!(
        started_after <= 2 * bound(0),
        "after {started_after} others"
    );
    exit(blocker);
    exit(filler);
    scheduler.stop(std::time::Duration::ZERO).unwrap();
}

// pins: G4
#[test]
fn the_oldest_of_a_deque_gets_its_turn_while_the_global_queue_is_never_empty() {
    const CROWD: u64 = 5_000;
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let (ran_at, steps) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (noted, now) = (Arc::clone(&ran_at), Arc::clone(&steps));
    let victim = process(move |_, events, out| {
        if events.next().is_some() {
            noted.store(now.load(Ordering::SeqCst), Ordering::SeqCst);
            out.done(());
        }
        Ok(())
    });
    let victim = scheduler.submit(victim, "main", ()).unwrap();
    // The hog wakes the victim, and stays above it in the deque from then on.
    let (pid, noted, count) = (victim.pid(), Arc::clone(&ran_at), Arc::clone(&steps));
    let hog = process(move |ctx, _, out| {
        if count.fetch_add(1, Ordering::SeqCst) == 0 {
            ctx.send(pid, "go", ())?;
        }
        if noted.load(Ordering::SeqCst) > 0 {
            out.done(());
        } else {
            out.step_again();
        }
        Ok(())
    });
    let hog = scheduler.submit(hog, "main", ()).unwrap();
    for _ in 0..CROWD {
        let short = process(|_, _, out| {
            out.done(());
            Ok(())
        });
        drop(scheduler.submit(short, "main", ()).unwrap());
    }
    scheduler.start().unwrap();
    exit(victim);
    exit(hog);
    let ran_at = ran_at.load(Ordering::SeqCst);
    assert!(ran_at <= bound(16), "after {ran_at} steps");
}
