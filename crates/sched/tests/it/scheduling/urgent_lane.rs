//! Processes with system events run before the rest, and do not starve it.

use crate::support::*;
use ganger_proc_api::{
    Context, Event, Events, ExitReason, Message, Process, StepOutput, StepResult, UpgradeRequest,
};
use ganger_sched::{Handle, ProcessHandle, ProcessState, Scheduler};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// Keeps a worker in a step until the sender is used or dropped.
fn hold(scheduler: &Handle) -> (ProcessHandle, mpsc::Sender<()>) {
    let ((entered, has_entered), (leave, may_leave)) = (mpsc::channel(), mpsc::channel());
    let holder = process(move |_, _, out| {
        entered.send(())?;
        let _ = may_leave.recv();
        out.done(());
        Ok(())
    });
    let holder = scheduler.submit(holder, "main", ()).unwrap();
    has_entered.recv().unwrap();
    (holder, leave)
}

/// Creates a process that increases `count`, and ends.
fn short(count: &Arc<AtomicU64>) -> impl Process + use<> {
    let count = Arc::clone(count);
    process(move |_, _, out| {
        count.fetch_add(1, Ordering::SeqCst);
        out.done(());
        Ok(())
    })
}

// pins: G3, G4, P5, P9, P10
#[test]
fn whatever_a_system_event_wakes_runs_before_thousands_that_are_ready() {
    const CROWD: u64 = 3_000;
    for way in ["cancel", "control", "terminate", "upgrade", "message"] {
        let scheduler = start(1);
        let picks = Arc::new(AtomicU64::new(0));
        let now = Arc::clone(&picks);
        let end = move || now.load(Ordering::SeqCst);
        let (ended, end_seen) = mpsc::channel();
        let noted = ended.clone();
        let now = end.clone();
        let victim = EndNoted {
            note: move || ended.send(end()).unwrap(),
        };
        let handle = scheduler.submit(victim, "main", ()).unwrap();
        until_state(&scheduler, handle.pid(), ProcessState::Idle);
        let (holder, leave) = hold(&scheduler);
        let crowd: Vec<_> = (0..CROWD)
            .map(|_| scheduler.submit(short(&picks), "main", ()).unwrap())
            .collect();
        let before = scheduler.stats().total.urgent_picks;
        let pid = handle.pid();
        match way {
            "cancel" => scheduler.cancel(pid, "now").unwrap(),
            "control" => handle.send_control(Message::new("now", ())).unwrap(),
            "terminate" => scheduler.terminate(pid).unwrap(),
            "upgrade" => {
                let next = process(move |_, _, out| {
                    noted.send(now())?;
                    out.done(());
                    Ok(())
                });
                let request = UpgradeRequest::process(next, "main", ());
                scheduler.upgrade(pid, request).unwrap();
            }
            _ => handle.send(Message::new("some time", ())).unwrap(),
        }
        leave.send(()).unwrap();
        exit(handle);
        let urgent_picks = scheduler.stats().total.urgent_picks - before;
        let ran_before = end_seen.recv().unwrap();
        if way == "message" {
            assert!(
                ran_before > CROWD / 2,
                "an ordinary message waits: {ran_before}"
            );
            assert_eq!(urgent_picks, 0);
        } else {
            assert_eq!((ran_before, urgent_picks), (0, 1), "{way}");
        }
        exit(holder);
        crowd.into_iter().for_each(|handle| drop(exit(handle)));
    }
}

/// A process that waits for an event, ends, and notes its close.
struct EndNoted<N: FnMut() + Send + 'static> {
    note: N,
}

impl<N: FnMut() + Send + 'static> Process for EndNoted<N> {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if events.next().is_some() {
            out.done(());
        }
        Ok(())
    }

    fn close(&mut self) {
        (self.note)();
    }
}

/// Checks the lanes also where the waking thread may hand the process its event without the
/// mailbox.
// pins: G3, P4
#[test]
fn the_lanes_are_kept_whatever_wakes_it() {
    /// Whether each event is a system event, the waking event first; and the order in which they
    /// are shown.
    const ROUNDS: [([bool; 3], [u64; 3]); 4] = [
        ([false, false, true], [2, 0, 1]),
        ([true, false, true], [0, 2, 1]),
        ([false, true, false], [1, 0, 2]),
        ([false, false, false], [0, 1, 2]),
    ];
    let scheduler = start(1);
    let (seen, sees) = mpsc::channel();
    let receiver = process(move |_, events, out| {
        for event in events {
            let message = match event {
                Event::Message(message) => message,
                Event::Control(message) => *message,
                _ => {
                    out.done(());
                    continue;
                }
            };
            seen.send(message.payloads.into_first().as_u64())?;
        }
        Ok(())
    });
    let receiver = scheduler.submit(receiver, "main", ()).unwrap();
    for (lanes, order) in ROUNDS {
        until_state(&scheduler, receiver.pid(), ProcessState::Idle);
        let (holder, leave) = hold(&scheduler);
        let before = scheduler.stats().total.urgent_picks;
        for (n, is_system) in (0_u64..).zip(lanes) {
            let message = Message::new("n", n);
            if is_system {
                receiver.send_control(message).unwrap();
            } else {
                receiver.send(message).unwrap();
            }
        }
        leave.send(()).unwrap();
        exit(holder);
        for n in order {
            let shown = sees.recv_timeout(PATIENCE).unwrap();
            assert_eq!(shown, Some(n), "{lanes:?}");
        }
        until_state(&scheduler, receiver.pid(), ProcessState::Idle);
        let urgent_picks = scheduler.stats().total.urgent_picks - before;
        assert_eq!(urgent_picks, u64::from(lanes[0]), "{lanes:?}");
    }
    scheduler.cancel(receiver.pid(), "that is all").unwrap();
    exit(receiver);
}

// pins: G3
#[test]
fn one_that_is_told_while_it_runs_is_queued_before_the_rest() {
    for continues in [false, true] {
        let scheduler = start(1);
        let victim = process(move |ctx, events, out| {
            if let Some(Event::Control(_)) = events.next() {
                out.done(());
            } else {
                if continues {
                    out.step_again();
                }
                ctx.send_control(ctx.pid(), "on", ())?;
            }
            Ok(())
        });
        exit(scheduler.submit(victim, "main", ()).unwrap());
        assert_eq!(scheduler.stats().total.urgent_picks, 1);
    }
}

// pins: G4
#[test]
fn a_flood_of_control_messages_starves_nobody() {
    const CROWD: usize = 200;
    /// The test ends here even if the flood starves all else.
    const ENOUGH: u64 = 1_000_000;
    let builder = Scheduler::builder().workers(1).max_spares(0);
    let scheduler = builder.build().unwrap();
    let floods = Arc::new(AtomicU64::new(0));
    let started = Arc::new(AtomicUsize::new(0));
    let (count, others) = (Arc::clone(&floods), Arc::clone(&started));
    // Whenever the process runs, it gets another control message.
    let flooder = process(move |ctx, events, out| {
        events.for_each(drop);
        let floods = count.fetch_add(1, Ordering::SeqCst);
        if others.load(Ordering::SeqCst) == CROWD || floods == ENOUGH {
            out.done(());
        } else {
            ctx.send_control(ctx.pid(), "again", ())?;
        }
        Ok(())
    });
    let flooder = scheduler.submit(flooder, "main", ()).unwrap();
    let starts = Arc::new(std::sync::Mutex::new(Vec::new()));
    let crowd: Vec<_> = (0..CROWD)
        .map(|_| {
            let (floods, started) = (Arc::clone(&floods), Arc::clone(&started));
            let starts = Arc::clone(&starts);
            let one = process(move |_, _, out| {
                starts.lock().unwrap().push(floods.load(Ordering::SeqCst));
                started.fetch_add(1, Ordering::SeqCst);
                out.done(());
                Ok(())
            });
            scheduler.submit(one, "main", ()).unwrap()
        })
        .collect();
    scheduler.start().unwrap();
    crowd.into_iter().for_each(|handle| drop(exit(handle)));
    exit(flooder);
    let starts = starts.lock().unwrap();
    let most = starts.windows(2).map(|pair| pair[1] - pair[0]).max();
    assert_eq!(most, Some(8), "eight in a row, then another one");
}

// pins: G4
#[test]
fn everybody_starts_within_the_bound_beside_an_urgent_process() {
    // `K + 1` times the bound of the documentation, with four others before it.
    const BOUND: u64 = (8 + 1) * (127 + 1) * (4 + 16 + 2);
    let builder = Scheduler::builder().workers(1).max_spares(0);
    let scheduler = builder.build().unwrap();
    let picks = Arc::new(AtomicU64::new(0));
    let mut adversaries = Vec::new();
    for is_urgent in [true, true, false, false] {
        let picks = Arc::clone(&picks);
        let hog = process(move |ctx, events, out| {
            events.for_each(drop);
            // The test ends here even if they starve the other process.
            if picks.fetch_add(1, Ordering::SeqCst) > 4 * BOUND {
                out.done(());
                return Ok(());
            }
            out.step_again();
            if is_urgent {
                ctx.send_control(ctx.pid(), "again", ())?;
            }
            Ok(())
        });
        adversaries.push(scheduler.submit(hog, "main", ()).unwrap());
    }
    let counter = Arc::clone(&picks);
    let probe = process(move |_, _, out| {
        out.done(counter.load(Ordering::SeqCst));
        Ok(())
    });
    let probe = scheduler.submit(probe, "main", ()).unwrap();
    scheduler.start().unwrap();
    let waited = exit_number(probe);
    assert!((1..=BOUND).contains(&waited), "{waited} picks");
    adversaries
        .into_iter()
        .for_each(|handle| drop(exit(handle)));
    assert!(scheduler.stats().total.urgent_picks > BOUND);
}

/// Checks the documentation's bound for the lane itself, next to processes that never rest.
// pins: G4
#[test]
fn one_in_the_lane_starts_within_the_bound_of_the_lane() {
    const STREAK: u64 = 8;
    for before_it in [0, 1, 7, 8, 9, 100, 1_000] {
        let builder = Scheduler::builder().workers(1).max_spares(0);
        let scheduler = builder.build().unwrap();
        scheduler.start().unwrap();
        let picks = Arc::new(AtomicU64::new(0));
        // Waits for a control message, and ends with how many picks there had been.
        let urgent = || {
            let picks = Arc::clone(&picks);
            process(move |_, events, out| {
                if events.any(|event| matches!(event, Event::Control(_))) {
                    out.done(picks.fetch_add(1, Ordering::SeqCst));
                }
                Ok(())
            })
        };
        let submit = |_| scheduler.submit(urgent(), "main", ()).unwrap();
        let lane: Vec<_> = (0..=before_it).map(submit).collect();
        for handle in &lane {
            until_state(&scheduler, handle.pid(), ProcessState::Idle);
        }
        let (holder, leave) = hold(&scheduler);
        let are_done = Arc::new(AtomicU64::new(0));
        let ordinary: Vec<_> = (0..100)
            .map(|_| {
                let (picks, are_done) = (Arc::clone(&picks), Arc::clone(&are_done));
                let hog = process(move |_, _, out| {
                    picks.fetch_add(1, Ordering::SeqCst);
                    if are_done.load(Ordering::SeqCst) > 0 {
                        out.done(());
                    } else {
                        out.step_again();
                    }
                    Ok(())
                });
                scheduler.submit(hog, "main", ()).unwrap()
            })
            .collect();
        for handle in &lane {
            handle.send_control(Message::new("now", ())).unwrap();
        }
        leave.send(()).unwrap();
        let last = lane.into_iter().map(exit_number).last().unwrap();
        let bound = before_it + 1 + (before_it + 1) / STREAK + 1;
        // The picks before its own pick, and this.
        assert!(
            last < bound,
            "{last} came before it, {before_it} in the lane"
        );
        are_done.store(1, Ordering::SeqCst);
        exit(holder);
        ordinary.into_iter().for_each(|handle| drop(exit(handle)));
    }
}

// pins: G2
#[test]
fn a_system_event_from_outside_wakes_a_sleeper() {
    let scheduler = start(2);
    for round in 0..60 {
        let handle = scheduler.submit(waiter(), "main", ()).unwrap();
        let pid = handle.pid();
        until_state(&scheduler, pid, ProcessState::Idle);
        until("both sleep", || scheduler.stats().sleeping == 2);
        if round % 2 == 0 {
            scheduler.cancel(pid, "now").unwrap();
        } else {
            scheduler.terminate(pid).unwrap();
        }
        exit(handle);
    }
}

// pins: G2
#[test]
fn two_that_are_woken_by_one_step_run_beside_each_other() {
    let scheduler = start(2);
    for _ in 0..300 {
        let met = Arc::new(AtomicUsize::new(0));
        let pair: Vec<_> = (0..2)
            .map(|_| {
                let met = Arc::clone(&met);
                // Each keeps its worker until the other runs as well.
                let one = process(move |_, events, out| {
                    if let Some(Event::Cancel(_)) = events.next() {
                        met.fetch_add(1, Ordering::SeqCst);
                        until("both run", || met.load(Ordering::SeqCst) == 2);
                        out.done(());
                    }
                    Ok(())
                });
                scheduler.submit(one, "main", ()).unwrap()
            })
            .collect();
        for one in &pair {
            until_state(&scheduler, one.pid(), ProcessState::Idle);
        }
        let pids: Vec<_> = pair.iter().map(ProcessHandle::pid).collect();
        let handle = scheduler.handle();
        let waker = process(move |_, _, out| {
            for &pid in &pids {
                handle.cancel(pid, "meet")?;
            }
            out.done(());
            Ok(())
        });
        exit(scheduler.submit(waker, "main", ()).unwrap());
        pair.into_iter().for_each(|one| drop(exit(one)));
    }
    until("both sleep again", || scheduler.stats().sleeping == 2);
}

// pins: G2
#[test]
fn one_that_is_passed_over_is_left_to_a_sleeper() {
    let scheduler = start(2);
    let steps = Arc::new(AtomicU64::new(0));
    let now = Arc::clone(&steps);
    // Keeps its worker until the other process has run again, on another worker.
    let other = process(move |_, events, out| {
        if events.next().is_some() {
            until("the sleeper wakes", || now.load(Ordering::SeqCst) == 10);
            out.done(());
        }
        Ok(())
    });
    let other = scheduler.submit(other, "main", ()).unwrap();
    until_state(&scheduler, other.pid(), ProcessState::Idle);
    let (pid, handle) = (other.pid(), scheduler.handle());
    // After eight picks in a row from the lane, the worker picks the process woken by this one.
    let urgent = process(move |ctx, events, out| {
        events.for_each(drop);
        if steps.load(Ordering::SeqCst) < 9 {
            until("the other worker sleeps", || handle.stats().sleeping == 1);
        }
        match steps.fetch_add(1, Ordering::SeqCst) {
            8 => {
                ctx.send(pid, "go", ())?;
                ctx.send_control(ctx.pid(), "again", ())?;
            }
            9 => out.done(()),
            _ => ctx.send_control(ctx.pid(), "again", ())?,
        }
        Ok(())
    });
    let urgent = scheduler.submit(urgent, "main", ()).unwrap();
    exit(other);
    exit(urgent);
}

// pins: G1, G2, G8, P4, R4
#[test]
fn both_lanes_keep_their_order_whoever_sends_and_wakes() {
    const SENDERS: u32 = 4;
    const EACH: u64 = 2_000;
    let scheduler = start(4);
    let receivers: Vec<_> = (0..8)
        .map(|_| {
            let mut next = [[0_u64; 2]; SENDERS as usize];
            let mut left = 2 * u64::from(SENDERS) * EACH;
            let receiver = process(move |_, events, out| {
                for event in events {
                    let (lane, message) = match event {
                        Event::Message(message) => (0, message),
                        Event::Control(message) => (1, *message),
                        other => panic!("{other:?}"),
                    };
                    let n = message.payloads.into_first().as_u64().unwrap();
                    let (sender, n) = (usize::try_from(n / EACH)?, n % EACH);
                    assert_eq!(n, next[sender][lane], "from {sender}");
                    next[sender][lane] += 1;
                    left -= 1;
                }
                if left == 0 {
                    out.done(());
                }
                Ok(())
            });
            scheduler.submit(receiver, "main", ()).unwrap()
        })
        .collect();
    thread::scope(|scope| {
        for sender in 0..u64::from(SENDERS) {
            let receivers = &receivers;
            scope.spawn(move || {
                for n in 0..EACH {
                    for receiver in receivers {
                        let message = || Message::new("n", sender * EACH + n);
                        receiver.send(message()).unwrap();
                        receiver.send_control(message()).unwrap();
                    }
                }
            });
        }
    });
    for receiver in receivers {
        assert!(exit(receiver).is_done());
    }
}

/// Waits until it is cancelled, or for ever; counts its end.
struct Waiting {
    closes: Arc<AtomicUsize>,
    is_stubborn: bool,
}

impl Process for Waiting {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            if !matches!(event, Event::Cancel(_)) {
                continue;
            }
            if self.is_stubborn {
                out.defer_cancel();
            } else {
                out.done(());
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        self.closes.fetch_add(1, Ordering::SeqCst);
    }
}

const EACH: u32 = 100_000;

struct Crowd {
    /// The processes in the urgent lane, and as many ready ones.
    handles: Vec<ProcessHandle>,
    closes: Arc<AtomicUsize>,
    /// The process whose step keeps the only worker.
    holder: ProcessHandle,
    leave: mpsc::Sender<()>,
}

fn crowd(scheduler: &Scheduler, is_stubborn: bool) -> Crowd {
    let closes = Arc::new(AtomicUsize::new(0));
    let submit_all = || -> Vec<_> {
        let one = || Waiting {
            closes: Arc::clone(&closes),
            is_stubborn,
        };
        let submit = |_| scheduler.submit(one(), "main", ()).unwrap();
        (0..EACH).map(submit).collect()
    };
    let mut handles = submit_all();
    let stepped = || scheduler.stats().total.steps == u64::from(EACH);
    until("all wait", || stepped() && scheduler.stats().sleeping == 1);
    let (holder, leave) = hold(scheduler);
    for one in &handles {
        scheduler.cancel(one.pid(), "now").unwrap();
    }
    handles.extend(submit_all());
    Crowd {
        handles,
        closes,
        holder,
        leave,
    }
}

// pins: D1, D2, D4
#[test]
fn a_shutdown_serves_a_full_lane_and_all_that_are_ready() {
    let scheduler = start(1);
    let crowd = crowd(&scheduler, false);
    drop(crowd.leave);
    let report = scheduler.stop(PATIENCE).unwrap();
    let left = (report.forced, report.closing, report.stuck.len());
    assert_eq!(left, (0, 0, 0));
    let mut ends = crowd.handles.into_iter().map(exit);
    assert!(ends.all(|end| end.is_done()));
    assert_eq!(crowd.closes.load(Ordering::SeqCst), 2 * EACH as usize);
    assert!(scheduler.stats().total.urgent_picks >= u64::from(EACH));
}

// pins: D3, D4
#[test]
fn at_the_deadline_nothing_stays_in_the_lane_though_the_worker_is_stuck() {
    let scheduler = start(1);
    let crowd = crowd(&scheduler, true);
    let report = scheduler.stop(Duration::ZERO).unwrap();
    assert!(report.is_stuck(crowd.holder.pid()));
    // A process that the reaper is just closing may count as well.
    let is_alone = report.stuck.len() == 1;
    assert!(is_alone || report.closing > 0, "{:?}", report.stuck);
    assert_eq!(report.completed, 0);
    // The reaper closes the processes that could not be closed in time.
    let mut ends = crowd.handles.into_iter().map(exit);
    assert!(ends.all(|end| matches!(end, ExitReason::Terminated)));
    assert_eq!(crowd.closes.load(Ordering::SeqCst), 2 * EACH as usize);
    drop(crowd.leave);
    exit(crowd.holder);
}
