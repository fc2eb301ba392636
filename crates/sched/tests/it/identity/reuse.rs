//! Reused cells, places and buffers, and the order of their contents.

use crate::support::*;
use ganger_proc_api::{
    BoxError, Command, CommandId, Completer, Context, Envelope, Event, Message, Process,
};
use ganger_sched::Scheduler;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

const DO: CommandId = CommandId::new(256);

fn quick() -> impl Process {
    process(|_, _, out| {
        out.done(());
        Ok(())
    })
}

/// Ends more processes than a worker keeps cells: some are in the pool when the scheduler stops.
// pins: D4
#[test]
fn cells_in_the_pool_do_not_keep_a_stopped_scheduler() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    for _ in 0..500 {
        drop(scheduler.submit(quick(), "main", ()).unwrap());
    }
    scheduler.start().unwrap();
    until("all have ended", || scheduler.stats().total.done == 500);
    let weak = scheduler.downgrade();
    drop(scheduler);
    until("its memory is gone", || weak.upgrade().is_none());
}

/// Checks that a reused cell has all the room of a new cell.
// pins: P13
#[test]
fn a_cell_that_is_used_again_has_room() {
    let builder = Scheduler::builder().workers(1).mailbox_limit(2);
    let scheduler = builder.build().unwrap();
    for _ in 0..10 {
        // These processes end without a handle, so the worker keeps their cells.
        drop(scheduler.submit(quick(), "main", ()).unwrap());
    }
    scheduler.start().unwrap();
    until("all have ended", || scheduler.stats().total.done == 10);
    let parent = process(move |ctx: &Context, _, out| {
        let child = ctx.submit(waiter(), "main", ())?;
        ctx.send(child, "one", ())?;
        ctx.send(child, "two", ())?;
        assert!(ctx.send(child, "three", ()).is_err());
        out.done(7);
        Ok(())
    });
    let parent = scheduler.submit(parent, "main", ()).unwrap();
    assert_eq!(exit_number(parent), 7);
}

/// Checks that a message sent by a handler before it fails comes before its error.
// pins: P4
#[test]
fn what_a_handler_sends_comes_before_its_error() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let weak = scheduler.downgrade();
    let handler = move |_: Command, completer: Completer| -> Result<(), BoxError> {
        let pid = completer.pid().ok_or("no process")?;
        let handle = weak.upgrade().ok_or("gone")?;
        handle.send(Envelope::new(pid, pid, "first", ()))?;
        Err("then this".into())
    };
    scheduler.register(DO, "do", handler).unwrap();
    scheduler.start().unwrap();
    let (mut is_first, mut seen) = (true, String::new());
    let asker = process(move |_, events, out| {
        if std::mem::take(&mut is_first) {
            out.yield_command(Command::new(DO, ()), 1);
        }
        for event in events {
            seen.push(if let Event::Message(_) = event {
                'm'
            } else {
                'c'
            });
        }
        if seen.len() == 2 {
            out.done(u64::from(seen == "mc"));
        }
        Ok(())
    });
    let asker = scheduler.submit(asker, "main", ()).unwrap();
    assert_eq!(exit_number(asker), 1, "the error came first");
}

/// Checks that a batch is bounded also with items other than events.
// pins: P4
#[test]
fn a_batch_is_bounded_behind_a_stale_completion() {
    let builder = Scheduler::builder().workers(1).max_spares(0);
    let scheduler = builder.event_batch(4).build().unwrap();
    let kept = Arc::new(Mutex::new(None));
    let keep = Arc::clone(&kept);
    let handler = move |_: Command, completer: Completer| -> Result<(), BoxError> {
        *keep.lock().unwrap() = Some(completer);
        Err("no".into())
    };
    scheduler.register(DO, "do", handler).unwrap();
    scheduler.start().unwrap();
    let (most, answered) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (most_seen, was_answered) = (Arc::clone(&most), Arc::clone(&answered));
    let (mut is_first, mut messages) = (true, 0);
    let asker = process(move |_, events, out| {
        if std::mem::take(&mut is_first) {
            out.yield_command(Command::new(DO, ()), 1);
        }
        most_seen.fetch_max(events.len(), Ordering::SeqCst);
        for event in events {
            match event {
                Event::Completion(_) => was_answered.store(1, Ordering::SeqCst),
                _ => messages += 1,
            }
        }
        if messages == 10 {
            out.done(7);
        }
        Ok(())
    });
    let asker = scheduler.submit(asker, "main", ()).unwrap();
    let is_answered = || answered.load(Ordering::SeqCst) == 1;
    until("the error has come", is_answered);
    let (open, gate) = mpsc::channel::<()>();
    let (entered, inside) = mpsc::channel();
    let gate = Mutex::new(gate);
    let blocker = process(move |_, _, out| {
        entered.send(())?;
        let _closed = gate.lock().unwrap().recv();
        out.done(7);
        Ok(())
    });
    let blocker = scheduler.submit(blocker, "main", ()).unwrap();
    inside.recv().unwrap();
    kept.lock().unwrap().take().unwrap().complete(7_u64);
    for _ in 0..10 {
        asker.send(Message::new("n", ())).unwrap();
    }
    drop(open);
    assert_eq!((exit_number(blocker), exit_number(asker)), (7, 7));
    assert_eq!(most.load(Ordering::SeqCst), 4);
}

/// Checks that memory kept for later processes can be returned at any time, and is not missed.
// pins: P7, D4
#[test]
fn memory_that_is_released_is_not_missed() {
    const EACH: u64 = 2_000;
    let scheduler = Scheduler::builder().workers(2).build().unwrap();
    scheduler.start().unwrap();
    for round in 1..=5 {
        for _ in 0..EACH {
            drop(scheduler.submit(quick(), "main", ()).unwrap());
            if round % 2 == 0 {
                scheduler.release_memory();
            }
        }
        until("all have ended", || {
            scheduler.stats().ended() == round * EACH
        });
        scheduler.release_memory();
    }
    let weak = scheduler.downgrade();
    drop(scheduler);
    until("nothing holds the scheduler", || weak.upgrade().is_none());
}

// pins: P7, P17
#[test]
fn a_pid_of_another_scheduler_finds_no_process() {
    let schedulers = [(); 3].map(|()| start(1));
    let pids = schedulers
        .each_ref()
        .map(|it| it.submit(waiter(), "main", ()).unwrap().pid());
    for (of, scheduler) in schedulers.iter().enumerate() {
        for (nth, &pid) in pids.iter().enumerate() {
            assert_eq!(scheduler.process(pid).is_some(), nth == of, "{pid}");
            assert!(pid.id() >= 1 << 32, "ids below are the user's");
        }
    }
}
