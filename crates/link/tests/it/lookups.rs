//! Processes by their names.

use crate::support::*;
use ganger_link::{ByNameErrorKind, LinkContext, LookupError, Registry};
use ganger_proc_api::{
    Actor, BoxError, CommandError, Context, Event, ExitCause, Reply, SendErrorKind, StepOutput,
    StepResult, SubmitErrorKind, actor_fn, process_fn,
};
use ganger_sched::Scheduler;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

// pins: N1, N2
#[test]
fn of_many_that_start_it_or_send_to_it_one_starts_it_and_no_message_is_lost() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 50;
    let scheduler = start(2);
    let (sum, started) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    for round in 0..ROUNDS {
        let name = format!("sum {round}");
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let start = || {
                        let (sum, started) = (Arc::clone(&sum), Arc::clone(&started));
                        let mut is_first = true;
                        actor_fn(move |_, number: u64, _| {
                            if std::mem::take(&mut is_first) {
                                started.fetch_add(1, Ordering::SeqCst);
                            }
                            sum.fetch_add(number, Ordering::SeqCst);
                            Ok(())
                        })
                    };
                    scheduler.spawn_or_send(&name, start, 1).unwrap();
                });
            }
        });
    }
    let begin = std::time::Instant::now();
    while sum.load(Ordering::SeqCst) < THREADS * ROUNDS {
        assert!(begin.elapsed() < PATIENCE);
        thread::yield_now();
    }
    assert_eq!(started.load(Ordering::SeqCst), ROUNDS);
}

/// Takes no copy of a message.
struct Once(u64, Reply<u64>);

/// Answers the first message with its own number, and later messages with zero.
fn first_only() -> impl Actor<Message = Once> {
    let mut is_first = true;
    actor_fn(move |_, Once(number, reply), _| {
        reply.complete(if mem::take(&mut is_first) { number } else { 0 });
        Ok(())
    })
}

// pins: N2
#[test]
fn of_many_that_ask_it_one_starts_it_and_each_gets_its_answer() {
    const THREADS: u64 = 4;
    let scheduler = start(2);
    for round in 0..50 {
        let name = format!("first {round}");
        let answers: Vec<_> = thread::scope(|scope| {
            let ask = |number| {
                let (scheduler, name) = (&scheduler, &name);
                scope.spawn(move || {
                    let message = move |reply| Once(number, reply);
                    scheduler
                        .spawn_or_call(name, first_only, message)
                        .wait()
                        .unwrap()
                })
            };
            let asked: Vec<_> = (1..=THREADS).map(ask).collect();
            asked.into_iter().map(|it| it.join().unwrap()).collect()
        });
        assert_eq!(
            answers.iter().filter(|it| **it > 0).count(),
            1,
            "{answers:?}"
        );
        let same = scheduler.lookup_or_spawn(&name, first_only).unwrap();
        assert_eq!(scheduler.whereis(&name), Some(same.pid()));
    }
    let new = scheduler.lookup_or_spawn("new", first_only).unwrap();
    assert_eq!(new.call(|reply| Once(3, reply)).wait().unwrap(), 3);
    let wrong = || actor_fn(|_, (): (), _| Ok(()));
    let wrong = scheduler.lookup_or_spawn("new", wrong).unwrap_err();
    assert!(matches!(wrong.kind, ByNameErrorKind::WrongType(_)));
}

/// Fails in its `init` when another process has asked it.
struct Fails(Receiver<()>);

impl Actor for Fails {
    type Message = Reply<u64>;

    fn init(&mut self, _: &Context) -> Result<(), BoxError> {
        self.0.recv()?;
        Err("not today".into())
    }

    fn receive(&mut self, _: &Context, _: Reply<u64>, _: &mut StepOutput) -> StepResult {
        Ok(())
    }
}

// pins: N2
#[test]
fn a_start_that_fails_answers_all_that_wait() {
    let scheduler = start(1);
    let (asked, is_asked) = channel();
    let mut is_asked = Some(is_asked);
    let fails = move || Fails(is_asked.take().unwrap());
    thread::scope(|scope| {
        let starter = scope.spawn(|| scheduler.spawn_or_call("it", fails, |it| it).wait());
        let other = loop {
            match scheduler.lookup::<Reply<u64>>("it") {
                Ok(it) => break it,
                Err(_) => thread::yield_now(),
            }
        };
        let other = other.call(|it| it).begin();
        asked.send(()).unwrap();
        let cause = ExitCause::Failed("not today".into());
        assert!(matches!(other.wait(), Err(CommandError::Ended(it)) if it == cause));
        let error = starter.join().unwrap().unwrap_err();
        assert!(error.to_string().contains("not today"), "{error}");
    });
    assert!(scheduler.whereis("it").is_none());
}

/// Asks by a yield of a process, also the process itself.
// pins: N2
#[test]
fn a_step_asks_and_starts() {
    let scheduler = start(1);
    let (mut answer, mut error) = (None, None);
    let asker = process_fn(move |ctx, events, out| {
        if events.is_empty() && answer.is_none() && error.is_none() {
            ctx.register_name("asker")?;
            out.ask(ctx.spawn_or_call("it", first_only, |it| Once(7, it)), 1);
            out.ask(ctx.spawn_or_call("asker", first_only, |it| Once(7, it)), 2);
        }
        for event in events {
            match event {
                Event::Completion(it) if it.tag == 1 => answer = Some(it.take::<u64>()?),
                Event::Completion(it) => error = it.take::<u64>().err().map(|it| it.to_string()),
                _ => {}
            }
        }
        if let (Some(answer), Some(error)) = (answer, &error) {
            assert!(error.contains("can't call itself"), "{error}");
            out.done(answer);
        }
        Ok(())
    });
    let asker = exit(scheduler.spawn(asker).unwrap());
    assert_eq!(asker.take::<u64>().unwrap(), 7);
}

// pins: N1
#[test]
fn a_name_leads_to_who_has_it_at_each_call() {
    let scheduler = Scheduler::builder().workers(1).mailbox_limit(1);
    let scheduler = scheduler.build().unwrap();
    let one = || actor_fn(|_, _: u64, _| Ok(()));
    assert_eq!(
        scheduler.lookup::<u64>("one").unwrap_err(),
        LookupError::NoSuchName("one".into())
    );
    let first = scheduler.spawn_or_send("one", one, 1).unwrap();
    assert_eq!(scheduler.lookup::<u64>("one").unwrap().pid(), first.pid());
    let wrong = scheduler.lookup::<String>("one").unwrap_err();
    assert!(matches!(wrong, LookupError::WrongType(_)));
    let wrong = || actor_fn(|_, _: String, _| Ok(()));
    let wrong = scheduler.spawn_or_send("one", wrong, String::new());
    assert!(matches!(
        wrong.unwrap_err().kind,
        ByNameErrorKind::WrongType(_)
    ));
    // It is full.
    let refused = scheduler.spawn_or_send("one", one, 2).unwrap_err();
    assert!(matches!(
        refused.kind,
        ByNameErrorKind::Refused(SendErrorKind::Full)
    ));
    scheduler.start().unwrap();
    let asker = puppet(&scheduler);
    let its_pid = first.pid();
    asker.have(move |ctx, _| {
        assert_eq!(ctx.lookup::<u64>("one")?.pid(), its_pid);
        ctx.trap_exits(1);
        ctx.link("one")?;
        assert_eq!(ctx.links(), [its_pid]);
        ctx.unlink("one")?;
        assert_eq!(ctx.links(), []);
        Ok(())
    });
    let end = scheduler.end_of("one").unwrap();
    scheduler.terminate(its_pid).unwrap();
    assert_eq!(end.wait(), ganger_proc_api::ExitCause::Terminated);
    asker.have(|ctx, _| {
        assert!(ctx.lookup::<u64>("one").is_err());
        let again = || actor_fn(|_, _: u64, _| Ok(()));
        ctx.spawn_or_send("one", again, 3)?;
        Ok(())
    });
    assert!(scheduler.lookup::<u64>("one").unwrap().pid() != its_pid);
    scheduler.begin_stop(PATIENCE);
    let late = scheduler.spawn_or_send("late", one, 3).unwrap_err();
    let is_stop = |kind: &_| matches!(kind, SubmitErrorKind::Stopping);
    assert!(matches!(&late.kind, ByNameErrorKind::NotStarted(it) if is_stop(it)));
    assert_eq!(late.into_message(), Some(3_u64));
    let detached = Context::detached(its_pid);
    assert!(detached.lookup::<u64>("one").is_err());
    let message = detached.spawn_or_send("one", one, 1).unwrap_err();
    assert_eq!(message.into_message(), Some(1_u64));
    assert!(detached.lookup_or_spawn("one", one).is_err());
}
