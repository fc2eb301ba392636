//! Waits for the end, and the remains after it.

use crate::support::*;
use ganger_proc_api::{
    Command, Completer, Context, Event, Events, ExitReason, Message, Payload, Process,
    SendErrorKind, StepOutput, process_fn,
};
use ganger_sched::{ContextExt, Scheduler};
use std::collections::HashSet;
use std::sync::{Arc, mpsc};
use std::thread;

// pins: P12
#[test]
fn a_handle_waits_by_blocking_with_a_deadline_and_as_a_future() {
    let scheduler = start(1);
    let numbered = |n: u64| {
        process(move |_, _, out| {
            out.done(n);
            Ok(())
        })
    };
    assert_eq!(
        exit_number(scheduler.submit(numbered(1), "main", ()).unwrap()),
        1
    );

    let patient = scheduler.submit(waiter(), "main", ()).unwrap();
    let patient = patient
        .wait_timeout(std::time::Duration::from_millis(1))
        .unwrap_err();
    assert!(!patient.is_finished());

    let handle = scheduler.submit(numbered(2), "main", ()).unwrap();
    assert!(block_on(handle).is_done());

    // The end wakes the waker of the last poll.
    let canceller = {
        let (scheduler, pid) = (scheduler.handle(), patient.pid());
        thread::spawn(move || scheduler.cancel(pid, "go").unwrap())
    };
    assert!(block_on(patient).is_done());
    canceller.join().unwrap();
}

fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(output) => return output,
            std::task::Poll::Pending => thread::park(),
        }
    }
}

/// Checks that the result is dropped: the reference to the process goes to the handle or to the end
/// of the process, and either drops the result.
// pins: P12
#[test]
fn a_handle_that_goes_as_its_process_ends() {
    const EACH: usize = 20_000;
    let probe = Arc::new(());
    let scheduler = start(2);
    for nth in 0..EACH {
        let mut held = Some(Arc::clone(&probe));
        let process = process(move |_, _, out| {
            out.done(held.take());
            Ok(())
        });
        let handle = scheduler.submit(process, "main", ()).unwrap();
        match nth % 4 {
            0 => drop(handle),
            1 => {
                until("it has ended", || handle.is_finished());
                drop(handle);
            }
            2 => assert!(handle.wait().is_done()),
            _ => {
                // Sooner or later than the end.
                (0..nth % 1_000).for_each(|_| std::hint::spin_loop());
                drop(handle);
            }
        }
    }
    until("all have ended", || scheduler.stats().live == 0);
    let weak = scheduler.downgrade();
    drop(scheduler);
    assert_eq!(Arc::strong_count(&probe), 1, "a result is left");
    until("all processes are gone", || weak.upgrade().is_none());
}

// pins: P2, D4
#[test]
fn nothing_outlives_the_scheduler() {
    let alive = Arc::new(());
    let probe = || Arc::clone(&alive);
    let scheduler = Scheduler::builder().workers(2).build().unwrap();
    // A handler may reach the scheduler, and a result its own process. Neither keeps the scheduler
    // alive.
    let (weak, held) = (scheduler.downgrade(), probe());
    scheduler
        .register(256, "do", move |_: Command, completer: Completer| {
            let _ = (&held, weak.upgrade().is_some());
            completer.complete(());
            Ok(())
        })
        .unwrap();
    scheduler.start().unwrap();
    let mut held = Some(probe());
    let cyclic = process(move |ctx, _, out| {
        out.done((held.take(), ctx.clone()));
        Ok(())
    });
    drop(scheduler.submit(cyclic, "main", ()).unwrap());
    let mut held = Some(probe());
    let parent = process(move |ctx, _, out| {
        let mut held = held.take();
        let child = process(move |ctx, _, out| {
            out.done((held.take(), ctx.clone()));
            Ok(())
        });
        ctx.submit(child, "main", ())?;
        out.done(());
        Ok(())
    });
    exit(scheduler.submit(parent, "main", ()).unwrap());
    let held = probe();
    let idler = process(move |_, _, out| {
        let _ = &held;
        // The process may have a turn before the deadline has passed.
        out.defer_cancel();
        Ok(())
    });
    let idler = scheduler.submit(idler, "main", ()).unwrap();
    idler
        .send(Message::new("m", Payload::any(probe())))
        .unwrap();
    scheduler.stop(std::time::Duration::ZERO).unwrap();
    assert!(matches!(exit(idler), ExitReason::Terminated));
    let weak = scheduler.downgrade();
    drop(scheduler);
    // The threads have done their work, and may be about to return.
    until("nothing holds the scheduler", || weak.upgrade().is_none());
    until("nothing holds the values", || {
        Arc::strong_count(&alive) == 1
    });
}

// pins: P12
#[test]
fn a_dropped_handle_drops_its_waker_at_once() {
    struct Noop;
    impl std::task::Wake for Noop {
        fn wake(self: Arc<Self>) {}
    }
    let scheduler = start(1);
    let mut handle = scheduler.submit(waiter(), "main", ()).unwrap();
    let noop = Arc::new(Noop);
    let waker = Arc::clone(&noop).into();
    let mut context = std::task::Context::from_waker(&waker);
    assert!(
        std::pin::Pin::new(&mut handle)
            .poll(&mut context)
            .is_pending()
    );
    drop(waker);
    assert_eq!(Arc::strong_count(&noop), 2);
    drop(handle);
    assert_eq!(Arc::strong_count(&noop), 1);
}

fn done() -> impl Process {
    process(|_, _, out| {
        out.done(());
        Ok(())
    })
}

/// Checks that ended processes leave their memory and their places to later processes, on several
/// threads.
// pins: P7
#[test]
fn what_a_process_leaves_to_the_next_is_not_its_pid_and_keeps_nothing_alive() {
    const ROUNDS: usize = 20;
    const EACH: usize = 300;
    let scheduler = start(2);
    let mut pids = HashSet::new();
    for _ in 0..ROUNDS {
        let (told, children) = mpsc::channel();
        let handles = (0..EACH).map(|_| {
            let told = told.clone();
            let parent = process(move |ctx, _, out| {
                told.send(ctx.submit(done(), "main", ())?)?;
                out.done(());
                Ok(())
            });
            scheduler.submit(parent, "main", ()).unwrap()
        });
        let handles: Vec<_> = handles.collect();
        drop(told);
        // Cells without an owner are left to the next processes.
        for _ in 0..EACH {
            let handle = scheduler.submit(done(), "main", ()).unwrap();
            assert!(pids.insert(handle.pid()));
        }
        for handle in handles {
            let pid = handle.pid();
            assert!(pids.insert(pid), "{pid} is another's");
            assert!(matches!(exit(handle), ExitReason::Done(_)));
            let refused = scheduler.send(Message::new("m", ()).to(pid)).unwrap_err();
            assert_eq!(refused.kind, SendErrorKind::NotFound);
        }
        for pid in children {
            assert!(pids.insert(pid), "{pid} is another's");
        }
    }
    assert_eq!(pids.len(), 3 * ROUNDS * EACH);
    until("all have ended", || scheduler.stats().live == 0);
    assert_eq!(scheduler.processes().len(), 0);
    let weak = scheduler.downgrade();
    drop(scheduler);
    until("nothing holds the scheduler", || weak.upgrade().is_none());
}

// pins: P1
#[test]
fn closures_and_boxed_processes_are_spawned_and_unwanted_handles_just_dropped() {
    let scheduler = start(1);
    let (tell, told) = std::sync::mpsc::channel();
    let mut parent = None;
    let asks = process_fn(move |ctx, events, out| {
        if parent.is_none() {
            let of = *parent.insert(ctx.pid());
            ctx.spawn(process_fn(move |ctx, _, out| {
                ctx.send(of, "from the child", ())?;
                out.done(());
                Ok(())
            }))?;
        }
        for event in events {
            if let Event::Message(message) = event {
                tell.send(message.topic)?;
                out.done(());
                return Ok(());
            }
        }
        Ok(())
    });
    scheduler.spawn(asks).unwrap();
    assert_eq!(told.recv_timeout(PATIENCE).unwrap(), "from the child");
    let boxed: Box<dyn Process> =
        Box::new(|_: &Context, _: &mut Events<'_>, out: &mut StepOutput| {
            out.done(7);
            Ok(())
        });
    let boxed = scheduler.spawn(boxed).unwrap();
    let of = scheduler.process(boxed.pid());
    assert!(of.is_none_or(|it| !it.type_name.contains("dyn")));
    assert_eq!(exit_number(boxed), 7);
}
