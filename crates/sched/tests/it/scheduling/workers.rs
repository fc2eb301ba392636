//! The process that runs next, its worker, and the acts of workers without work.

use crate::support::*;
use ganger_proc_api::{Event, Message, Pid};
use ganger_sched::{ProcessState, Scheduler};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

/// Creates a process that writes its number into a list at each step, and waits.
fn noter(number: u64, list: &Arc<Mutex<Vec<u64>>>) -> impl ganger_proc_api::Process {
    let list = Arc::clone(list);
    process(move |_, events, _| {
        events.for_each(drop);
        list.lock().unwrap().push(number);
        Ok(())
    })
}

// pins: G3
#[test]
fn the_global_queue_is_first_in_first_out() {
    // No rotation within the test.
    let builder = Scheduler::builder().workers(1).max_spares(0);
    let builder = builder.rotation(1_000_000).chain_limit(PATIENCE);
    let scheduler = builder.build().unwrap();
    let list = Arc::default();
    for number in 0..100 {
        drop(scheduler.submit(noter(number, &list), "main", ()).unwrap());
    }
    scheduler.start().unwrap();
    until("all have run", || list.lock().unwrap().len() == 100);
    assert!(list.lock().unwrap().iter().copied().eq(0..100));
    let stats = scheduler.worker_stats()[0];
    assert_eq!(stats.global_picks, 100);
    // The first of each seventeen runs at once, the others by way of the worker's deque.
    assert_eq!(stats.local_picks, 94, "{stats:?}");
    scheduler.stop(Duration::ZERO).unwrap();
}

// pins: G3
#[test]
fn a_worker_runs_what_its_step_woke_last_first_and_before_the_global_queue() {
    // No rotation within the test.
    let builder = Scheduler::builder()
        .workers(1)
        .max_spares(0)
        .rotation(1_000_000);
    let scheduler = builder.chain_limit(PATIENCE).build().unwrap();
    let list = Arc::default();
    let woken: Vec<Pid> = (0..5)
        .map(|number| {
            scheduler
                .submit(noter(number, &list), "main", ())
                .unwrap()
                .pid()
        })
        .collect();
    scheduler.start().unwrap();
    for &pid in &woken {
        until_state(&scheduler, pid, ProcessState::Idle);
    }
    list.lock().unwrap().clear();

    let (entered, has_entered) = mpsc::channel();
    let (go, may_go) = mpsc::channel::<()>();
    let targets = woken.clone();
    let waker = process(move |ctx, _, out| {
        entered.send(()).unwrap();
        may_go.recv().unwrap();
        for &pid in &targets {
            ctx.send(pid, "wake", ())?;
        }
        out.done(());
        Ok(())
    });
    let waker = scheduler.submit(waker, "main", ()).unwrap();
    has_entered.recv().unwrap();
    // From outside, while the step runs: these go to the global queue.
    for number in 10..13 {
        drop(scheduler.submit(noter(number, &list), "main", ()).unwrap());
    }
    go.send(()).unwrap();
    exit(waker);
    until("all have run", || list.lock().unwrap().len() == 8);
    assert_eq!(*list.lock().unwrap(), [4, 3, 2, 1, 0, 10, 11, 12]);
    scheduler.stop(Duration::ZERO).unwrap();
}

// pins: G3
#[test]
fn an_idle_worker_steals_from_a_busy_one() {
    let scheduler = start(2);
    let threads = Arc::new(Mutex::new(HashSet::new()));
    let done = Arc::new(AtomicUsize::new(0));
    let (seen, finished) = (Arc::clone(&threads), Arc::clone(&done));
    // The parent stays in its step until all its children have run, on another worker.
    let parent = process(move |ctx, _, out| {
        for _ in 0..100 {
            let (seen, finished) = (Arc::clone(&seen), Arc::clone(&finished));
            let child = process(move |_, _, out| {
                seen.lock().unwrap().insert(thread::current().id());
                finished.fetch_add(1, Ordering::SeqCst);
                out.done(());
                Ok(())
            });
            ctx.submit(child, "main", ())?;
        }
        until("the children have run", || {
            finished.load(Ordering::SeqCst) == 100
        });
        assert!(!seen.lock().unwrap().contains(&thread::current().id()));
        out.done(());
        Ok(())
    });
    assert!(exit(scheduler.submit(parent, "main", ()).unwrap()).is_done());
    let stats: Vec<_> = scheduler.worker_stats();
    assert!(stats.iter().map(|worker| worker.stolen).sum::<u64>() >= 1);
    assert!(
        stats.iter().map(|worker| worker.steals).sum::<u64>() < 100,
        "half at a time"
    );
}

// pins: G1
#[test]
fn a_process_runs_on_one_worker_at_a_time_whoever_wakes_it() {
    const MESSAGES: usize = 50_000;
    let scheduler = start(4);
    let calls = Calls::new();
    let mut seen = 0;
    // `Calls` notices when two of its steps overlap.
    let target = counted(&calls, move |_, events, out| {
        seen += events.count();
        if seen == 4 * MESSAGES {
            out.done(seen);
        }
        Ok(())
    });
    let target = scheduler.submit(target, "main", ()).unwrap();
    let address = target.address().clone();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..MESSAGES {
                    address.send(Message::new("m", ())).unwrap();
                }
            });
        }
    });
    assert_eq!(exit_number(target), 4 * MESSAGES as u64);
}

// pins: G2
#[test]
fn no_wake_up_is_lost_between_two_that_keep_parking() {
    const ROUNDS: u64 = 100_000;
    for workers in [1, 2, 4] {
        let scheduler = start(workers);
        let player = || {
            process(|ctx, events, out| {
                for event in events {
                    let Event::Message(message) = event else {
                        continue;
                    };
                    let sender = message.source.unwrap();
                    match message.payloads.into_first().as_u64().unwrap() {
                        0 => out.done(0),
                        n => ctx.send(sender, "ball", n - 1)?,
                    }
                }
                Ok(())
            })
        };
        let a = scheduler.submit(player(), "main", ()).unwrap();
        let b = scheduler.submit(player(), "main", ()).unwrap();
        let ball = Message::new("ball", ROUNDS).from_pid(a.pid());
        b.send(ball).unwrap();
        assert_eq!(exit_number(b), 0);
        scheduler.terminate(a.pid()).unwrap();
        exit(a);
    }
}

// pins: G2
#[test]
fn a_push_from_outside_wakes_a_sleeping_worker_every_time() {
    let scheduler = start(2);
    let (report, reports) = mpsc::channel();
    let echo = process(move |_, events, _| {
        for _ in events {
            report.send(()).unwrap();
        }
        Ok(())
    });
    let echo = scheduler.submit(echo, "main", ()).unwrap();
    for _ in 0..500 {
        until("all workers sleep", || scheduler.stats().sleeping == 2);
        echo.send(Message::new("m", ())).unwrap();
        reports
            .recv_timeout(PATIENCE)
            .expect("the wake-up was lost");
    }
    scheduler.terminate(echo.pid()).unwrap();
    exit(echo);
}

// pins: G5
#[test]
fn workers_without_work_block() {
    for (spin, yields) in [(4, 16), (0, 0), (1, 1), (100, 50)] {
        let builder = Scheduler::builder().workers(3).spin_limits(spin, yields);
        let scheduler = builder.build().unwrap();
        scheduler.start().unwrap();
        until("all sleep", || scheduler.stats().sleeping == 3);
        assert_eq!(scheduler.stats().searching, 0);
        let quick = process(|_, _, out| {
            out.done(1);
            Ok(())
        });
        assert_eq!(exit_number(scheduler.submit(quick, "main", ()).unwrap()), 1);
        until("all sleep again", || scheduler.stats().sleeping == 3);
    }
}

/// Returns how often the threads with this name have been switched away from; `None` if any is not
/// asleep.
#[cfg(target_os = "linux")]
fn context_switches(name: &str) -> Option<u64> {
    let mut switches = 0;
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let task = task.unwrap().path();
        let Ok(comm) = std::fs::read_to_string(task.join("comm")) else {
            continue;
        };
        if comm.trim_end().starts_with(name) {
            let status = std::fs::read_to_string(task.join("status")).unwrap();
            if !status
                .lines()
                .any(|line| line.starts_with("State:") && line.contains("(sleeping)"))
            {
                return None;
            }
            let lines = status.lines().filter(|line| line.contains("ctxt_switches"));
            let counts = lines.map(|line| line.rsplit('\t').next().unwrap().trim());
            switches += counts
                .map(|count| count.parse::<u64>().unwrap())
                .sum::<u64>();
        }
    }
    Some(switches)
}

// pins: G7
#[test]
#[cfg(target_os = "linux")]
fn an_idle_scheduler_wakes_no_thread() {
    let builder = Scheduler::builder().workers(4).thread_name("g7");
    let scheduler = builder.build().unwrap();
    scheduler.start().unwrap();
    for _ in 0..1_000 {
        drop(scheduler.submit(waiter(), "main", ()).unwrap());
    }
    let all_idle = || {
        scheduler
            .processes()
            .iter()
            .all(|p| p.state == ProcessState::Idle)
    };
    until("all processes are idle", all_idle);
    until("all workers sleep", || scheduler.stats().sleeping == 4);
    // The last worker may have announced its sleep and not fallen asleep yet, and the monitor takes
    // a last look.
    thread::sleep(std::time::Duration::from_millis(20));
    let mut before = context_switches("g7");
    until("they are asleep", || {
        let now = context_switches("g7");
        now.is_some() && std::mem::replace(&mut before, now) == now
    });
    let sleeps: Vec<_> = scheduler
        .worker_stats()
        .iter()
        .map(|worker| worker.sleeps)
        .collect();
    // Gives a wrong wake-up the time to happen.
    thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(context_switches("g7"), before, "a thread woke up");
    let after: Vec<_> = scheduler
        .worker_stats()
        .iter()
        .map(|worker| worker.sleeps)
        .collect();
    assert_eq!(after, sleeps);
}

// pins: P15
#[test]
fn looking_is_safe_at_any_time() {
    const PROCESSES: u64 = 20_000;
    let scheduler = start(2);
    let stop = Arc::new(AtomicBool::new(false));
    let watcher = {
        let (handle, stop) = (scheduler.handle(), Arc::clone(&stop));
        thread::spawn(move || {
            let mut looks = 0_u64;
            while !stop.load(Ordering::SeqCst) || looks == 0 {
                let listed = handle.processes();
                let pids: HashSet<_> = listed.iter().map(|process| process.pid).collect();
                assert_eq!(pids.len(), listed.len(), "a process is listed once");
                assert!(listed.iter().all(|process| process.method == "main"));
                let stats = handle.stats();
                assert!(stats.ended() <= stats.total.started);
                assert_eq!(handle.worker_stats().len(), 2);
                looks += 1;
            }
        })
    };
    for n in 0..PROCESSES {
        let quick = process(move |_, _, out| {
            out.done(n);
            Ok(())
        });
        assert_eq!(exit_number(scheduler.submit(quick, "main", ()).unwrap()), n);
    }
    stop.store(true, Ordering::SeqCst);
    watcher.join().unwrap();
    let stats = scheduler.stats();
    assert_eq!(
        (stats.total.started, stats.total.done, stats.live),
        (PROCESSES, PROCESSES, 0)
    );
    assert!(scheduler.processes().is_empty());
}
