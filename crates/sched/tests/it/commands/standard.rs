//! The acts of a process by commands alone.

use crate::support::PATIENCE;
use ganger_proc_api::{
    CancelReason, CommandError, Completion, Event, ExitCause, Payload, Payloads, Pid, StepOutput,
    StepResult, Symbol, actor_fn, process_fn,
};
use ganger_sched::commands::{Cancel, Demonitor, Exec, Monitor, Send, Spawn, Terminate};
use ganger_sched::{NotFound, Scheduler};
use std::sync::mpsc::{Sender, channel};

type ActBox = Box<dyn FnOnce(&mut StepOutput) + std::marker::Send>;

/// Creates a process that does the first act, and then an act with each event. The process ends
/// with the last event.
fn acts<const N: usize>(acts: [ActBox; N], events: Sender<Event>) -> impl ganger_proc_api::Process {
    let mut acts = acts.into_iter();
    process_fn(move |_, given, out| {
        for event in given {
            events.send(event)?;
        }
        match acts.next() {
            Some(act) => act(out),
            None => out.done(()),
        }
        Ok(())
    })
}

fn answer(event: Event) -> Completion {
    match event {
        Event::Completion(it) => it,
        other => panic!("no answer: {other:?}"),
    }
}

/// Creates a process that waits until it is told to end.
fn waits(events: &Sender<Event>) -> impl ganger_proc_api::Process {
    let events = events.clone();
    process_fn(move |_, given, out: &mut StepOutput| -> StepResult {
        for event in given {
            if matches!(event, Event::Message(_)) {
                out.done(());
            }
            events.send(event)?;
        }
        Ok(())
    })
}

// pins: C5
#[test]
fn a_process_does_by_commands_what_its_context_does() {
    let scheduler = Scheduler::start_default().unwrap();
    let (sender, received) = channel();
    let (other_sender, other) = channel();
    let [first, second] = [(); 2].map(|()| scheduler.spawn(waits(&other_sender)).unwrap());
    let (target, loser) = (first.pid(), second.pid());
    let gone: Pid = {
        let gone = scheduler
            .spawn(process_fn(|_, _, out| {
                out.done(());
                Ok(())
            }))
            .unwrap();
        let pid = gone.pid();
        assert!(gone.wait().is_done());
        pid
    };
    let main = acts(
        [
            Box::new(move |out| {
                out.ask(Monitor { target, tag: 70 }, 1);
            }),
            Box::new(move |out| {
                out.ask(
                    Monitor {
                        target: loser,
                        tag: 71,
                    },
                    2,
                );
            }),
            Box::new(move |out| {
                out.ask(
                    Demonitor {
                        target: loser,
                        tag: 71,
                    },
                    3,
                );
            }),
            Box::new(move |out| {
                out.ask(Terminate(loser), 4);
            }),
            Box::new(move |out| {
                out.ask(Terminate(gone), 5);
            }),
            Box::new(move |out| {
                let (reason, target) = (CancelReason::from("enough"), gone);
                out.ask(Cancel { target, reason }, 6);
            }),
            Box::new(move |out| {
                let process = Box::new(process_fn(|_, _, out| {
                    out.done(());
                    Ok(())
                }));
                let method = Symbol::new("run");
                let input = Payloads::new();
                let spawn = Spawn {
                    process,
                    method,
                    input,
                };
                out.ask(spawn, 7);
            }),
            Box::new(move |out| {
                let (topic, payloads) = (Symbol::new("end"), Payload::UNIT.into());
                let send = Send {
                    target,
                    topic,
                    payloads,
                };
                out.ask(send, 8);
            }),
            Box::new(|_| ()),
        ],
        sender,
    );
    let main = scheduler.spawn(main).unwrap();
    let main_pid = main.pid();
    for tag in 1..=4 {
        let it = answer(received.recv_timeout(PATIENCE).unwrap());
        assert_eq!((it.tag, it.take::<()>().unwrap()), (tag, ()));
    }
    assert!(matches!(
        second.wait(),
        ganger_proc_api::ExitReason::Terminated
    ));
    for tag in 5..=6 {
        let it = answer(received.recv_timeout(PATIENCE).unwrap());
        assert_eq!(it.tag, tag);
        let Err(CommandError::Failed(error)) = it.result else {
            panic!("a process that has ended was found");
        };
        assert!(error.is::<NotFound>(), "{error}");
    }
    let spawned = answer(received.recv_timeout(PATIENCE).unwrap());
    assert_eq!(spawned.tag, 7);
    assert_ne!(spawned.take::<Pid>().unwrap(), main_pid);
    let (mut sent, mut notice) = (None, None);
    for event in received.iter().take(2) {
        match event {
            Event::Completion(it) => sent = Some(it.tag),
            Event::Exit(it) => notice = Some((it.pid, it.tag, it.cause)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(sent, Some(8));
    assert_eq!(notice, Some((target, 70, ExitCause::Done)));
    let Event::Message(message) = other.recv_timeout(PATIENCE).unwrap() else {
        panic!("no message");
    };
    assert_eq!(message.source, Some(main_pid));
    assert!(first.wait().is_done());
    scheduler.terminate(main_pid).ok();
}

/// Creates a process that executes another, and ends with its result, or with the text of the
/// error.
fn parent(exec: Exec<u64>) -> impl ganger_proc_api::Process {
    let mut exec = Some(exec);
    process_fn(move |_, events, out| {
        if let Some(exec) = exec.take() {
            out.ask(exec, 1);
        }
        if let Some(Event::Completion(it)) = events.next() {
            match it.take::<u64>() {
                Ok(result) => out.done(result),
                Err(error) => out.done(error.to_string()),
            }
        }
        Ok(())
    })
}

// pins: C4
#[test]
fn the_result_of_a_process_that_is_executed_is_the_answer() {
    let scheduler = Scheduler::start_default().unwrap();
    let run = |exec| scheduler.spawn(parent(exec)).unwrap().wait();
    let result = run(Exec::new(process_fn(|_, _, out| {
        out.done(42_u64);
        Ok(())
    })));
    assert_eq!(result.take::<u64>().unwrap(), 42);
    let late = run(Exec::new(process_fn(|_, _, out| {
        static STEPS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        match STEPS.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            9 => out.done(9_u64),
            _ => out.yield_now(),
        }
        Ok(())
    })));
    assert_eq!(late.take::<u64>().unwrap(), 9);
    let failed = run(Exec::new(process_fn(|_, _, _| Err("no luck".into()))));
    let text: String = failed.take().unwrap();
    assert_eq!(
        text,
        "no answer: the called process has ended: failed: no luck"
    );
}

// pins: C4
#[test]
fn the_end_of_the_parent_cancels_what_it_executes_unless_that_is_left_alone() {
    let scheduler = Scheduler::start_default().unwrap();
    let (sender, received) = channel();
    let child = |is_left: bool| {
        let sender = sender.clone();
        process_fn(move |ctx, events, out: &mut StepOutput| {
            match events.next() {
                None => sender.send((is_left, ctx.pid(), "runs"))?,
                Some(Event::Cancel(_)) => sender.send((is_left, ctx.pid(), "cancelled"))?,
                Some(_) => out.done(()),
            }
            Ok(())
        })
    };
    let first = scheduler
        .spawn(parent(Exec::new(child(true)).leave()))
        .unwrap();
    let (_, left, _) = received.recv_timeout(PATIENCE).unwrap();
    scheduler.terminate(first.pid()).unwrap();
    first.wait();
    let second = scheduler.spawn(parent(Exec::new(child(false)))).unwrap();
    let (_, cancelled, _) = received.recv_timeout(PATIENCE).unwrap();
    scheduler.terminate(second.pid()).unwrap();
    second.wait();
    assert_eq!(
        received.recv_timeout(PATIENCE).unwrap(),
        (false, cancelled, "cancelled")
    );
    assert!(scheduler.process(left).is_some(), "it goes on");
    scheduler.terminate(left).unwrap();
}

// pins: C4
#[test]
fn taking_the_command_back_cancels_what_is_executed() {
    let scheduler = Scheduler::start_default().unwrap();
    let (sender, received) = channel();
    let child = process_fn(move |_, events, _| {
        sender.send(events.next().is_some())?;
        Ok(())
    });
    let mut exec = Some(Exec::<u64>::new(child));
    let parent = actor_fn(move |_, (): (), out: &mut StepOutput| {
        match exec.take() {
            Some(exec) => {
                out.ask(exec, 5);
            }
            None => out.cancel(5),
        }
        Ok(())
    });
    let parent = scheduler.spawn(parent).unwrap();
    for is_cancelled in [false, true] {
        parent.send(()).unwrap();
        assert_eq!(received.recv_timeout(PATIENCE), Ok(is_cancelled));
    }
    scheduler.terminate(parent.pid()).unwrap();
}
