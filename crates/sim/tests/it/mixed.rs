//! A bit of everything, with every fault. The simulation itself makes the checks.
//! `GANGER_STRESS=10` runs ten times as many seeds.

mod citizen;

use citizen::{Citizen, Town, register};
use ganger_proc_api::{Message, UpgradeRequest};
use ganger_sched::{Builder, ProcessHandle, SendAsync};
use ganger_sim::{Faults, Rt, Sim, Strategy};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Every fault except the faults that end a whole run early.
const LIVELY: Faults = Faults {
    steal_fails: 100,
    worker_stalls: 20,
    others_move: 50,
    clock_jumps: 2,
    step_panics: 3,
    step_blocks: 0,
    handler_is_late: 200,
    handler_drops: 50,
    handler_fails: 50,
    handler_answers_twice: 100,
    process_is_upgraded: 5,
    upgrade_fails: 200,
    envelope_is_refused: 50,
    envelope_is_late: 200,
    place_disappears: 5,
    worker_wakes_in_vain: 20,
    timer_waiter_wakes_early: 20,
    delivery_stalls: 20,
    others_act: 30,
    process_is_terminated: 1,
    process_is_cancelled: 1,
    shutdown_begins: 0,
    shutdown_is_forced: 0,
};

/// Runs that must leave nothing, the scheduler's memory included.
fn sim(workers: usize, faults: Faults) -> Sim {
    Sim::new(0).workers(workers).faults(faults).must_free()
}

fn seeds(count: u64) -> u64 {
    let factor = std::env::var("GANGER_STRESS").map_or(1, |factor| factor.parse().unwrap());
    count * factor
}

/// Does `acts` random things to random processes.
fn live(rt: &Rt<'_>, acts: usize) {
    let town = Arc::new(Town::default());
    register(rt, &town);
    for first in 0..2 {
        town.meanwhile(rt, first);
    }
    let mut handles: Vec<ProcessHandle> = Vec::new();
    let mut sending: Vec<SendAsync> = Vec::new();
    for _ in 0..acts {
        (0..rt.choose(12)).for_each(|_| _ = rt.step());
        sending.retain_mut(is_waiting);
        let act = rt.choose(10);
        if act < 2 || handles.is_empty() {
            // The submit is refused when the scheduler is stopping, or when `init` fails.
            let input = rt.choose(20) as u64;
            if let Ok(handle) = rt.submit(Citizen::new(&town), "main", input) {
                town.move_in(handle.pid());
                handles.push(handle);
            }
            continue;
        }
        let handle = &handles[rt.choose(handles.len())];
        let pid = handle.pid();
        let number = rt.choose(40) as u64;
        match act {
            2 | 3 => _ = handle.send(Message::new("number", number)),
            4 => _ = rt.send(Message::new("number", number).to(pid)),
            5 => _ = handle.send_control(Message::new("control", number)),
            6 => {
                let request = UpgradeRequest::process(Citizen::new(&town), "main", number);
                drop(rt.upgrade(pid, request));
            }
            7 | 8 => {
                let message = Message::new("number", number);
                sending.push(handle.address().send_async(message));
            }
            _ if sending.is_empty() => drop(handles.swap_remove(rt.choose(handles.len()))),
            // The sender gives up, unless the message has been accepted.
            _ => drop(sending.swap_remove(rt.choose(sending.len()))),
        }
    }
}

/// Returns whether a send still waits for room. Otherwise the message has been accepted, or comes
/// back.
fn is_waiting(sending: &mut SendAsync) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    match Pin::new(sending).poll(&mut context) {
        Poll::Pending => true,
        Poll::Ready(Ok(())) => false,
        Poll::Ready(Err(error)) => {
            assert_eq!(error.into_envelope().message.topic, "number");
            false
        }
    }
}

/// Ends a run: at once, after a shutdown with a deadline, or when all processes wait.
fn end(rt: &Rt<'_>) {
    match rt.choose(3) {
        0 => {}
        1 => {
            let millis = rt.choose(200) as u64;
            let report = rt.stop(Duration::from_millis(millis));
            assert_eq!((report.closing, report.stuck), (0, vec![]));
        }
        _ => rt.settle(),
    }
}

// pins: P2, P4, P6, P7, P11, P12, R4
#[test]
fn nothing_is_lost_or_happens_twice_whatever_goes_wrong() {
    for workers in 1..=3 {
        let sim = sim(workers, LIVELY);
        sim.check_seeds(seeds(120), |rt| {
            live(rt, 40);
            end(rt);
        });
    }
    let strategy = Strategy::Priorities {
        changes: 5,
        moves: 600,
    };
    let sim = sim(3, LIVELY).strategy(strategy);
    sim.check_seeds(seeds(120), |rt| {
        live(rt, 40);
        end(rt);
    });
}

// pins: D1, D3, D4
#[test]
fn a_shutdown_that_begins_anywhere_leaves_nothing() {
    let faults = Faults {
        shutdown_begins: 4,
        shutdown_is_forced: 10,
        ..LIVELY
    };
    for workers in 1..=3 {
        let sim = sim(workers, faults);
        sim.check_seeds(seeds(120), |rt| {
            live(rt, 40);
            end(rt);
        });
    }
}

/// Keeps spares so briefly that they end and begin within a run.
fn keep_briefly(builder: Builder) -> Builder {
    builder.keep_spares(Duration::from_millis(30))
}

// pins: G6
#[test]
fn steps_that_block_among_all_that_goes_wrong() {
    let faults = Faults {
        step_blocks: 20,
        shutdown_begins: 1,
        shutdown_is_forced: 10,
        ..LIVELY
    };
    for (workers, spares) in [(1, 1), (2, 1), (2, 4)] {
        let sim = sim(workers, faults).spares(spares).builder(keep_briefly);
        sim.check_seeds(seeds(120), |rt| {
            live(rt, 40);
            end(rt);
        });
    }
}

// pins: P13
#[test]
fn mailboxes_and_the_scheduler_may_be_full() {
    let faults = Faults {
        shutdown_begins: 1,
        shutdown_is_forced: 10,
        ..LIVELY
    };
    let sim = sim(2, faults);
    let sim = sim.builder(|builder| builder.mailbox_limit(2).max_processes(6).event_batch(3));
    sim.check_seeds(seeds(200), |rt| {
        live(rt, 60);
        end(rt);
    });
}

/// Checks that the faults of the other tests really happen.
#[test]
fn all_that_can_go_wrong_has_gone_wrong() {
    let mut total = ganger_sched::WorkerStats::default();
    for seed in 0..300 {
        let report = Sim::new(seed).workers(2).faults(LIVELY).run(|rt| {
            live(rt, 40);
            rt.settle();
            total += rt.stats().total;
        });
        assert!(report.moves > 40);
    }
    let counts = [
        ("yields", total.yields),
        ("stale completions", total.stale_completions),
        ("undelivered messages", total.undelivered),
        ("panics", total.panics),
        ("ended by themselves", total.done),
        ("failed", total.failed),
        ("panicked", total.panicked),
        ("terminated", total.terminated),
        ("upgrades", total.upgrades),
        ("failed upgrades", total.upgrades_failed),
        ("urgent picks", total.urgent_picks),
        ("steals", total.steals),
    ];
    for (what, count) in counts {
        assert!(count > 20, "{what}: {count}");
    }
}

#[test]
fn a_trace_shows_what_others_have_done() {
    let faults = Faults {
        step_blocks: 20,
        shutdown_begins: 2,
        shutdown_is_forced: 20,
        ..LIVELY
    };
    let mut lines = [
        "outside: terminates {sim|",
        "outside: cancels {sim|",
        "outside: asks for an upgrade of {sim|",
        "outside: acts",
        "outside: wakes a worker in vain",
        "fault: sim disappears for a while",
        "fault: there disappears for a while",
        "fault: the factory panics",
        "fault: an envelope for ",
        "fault: echo of {sim|",
        ": its completer is dropped",
        ": it fails",
        ": it fails, and is answered as well",
        "  others move after a `send`:\n  worker ",
        "outside: a shutdown begins",
        "outside: the deadline of the shutdown passes",
        ": blocks in a step of {sim|",
        ": stands down",
        ": is on duty again",
        ": ends, since nobody has needed it",
    ]
    .to_vec();
    for seed in 0..500 {
        let sim = sim(2, faults).spares(2).builder(keep_briefly);
        let report = sim.seed(seed).run(|rt| {
            live(rt, 40);
            end(rt);
        });
        let trace = report.trace.to_string();
        lines.retain(|line| !trace.contains(line));
    }
    assert_eq!(lines, [""; 0], "never seen");
}
