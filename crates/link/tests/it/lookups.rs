//! Processes by their names.

use crate::support::*;
use ganger_link::{LinkContext, Lookup, LookupError, SpawnOrSendError};
use ganger_proc_api::{Context, SendErrorKind, SubmitErrorKind, actor_fn};
use ganger_sched::Scheduler;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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
                    scheduler.spawn_or_send(&name, 1, start).unwrap();
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
    let first = scheduler.spawn_or_send("one", 1, one).unwrap();
    assert_eq!(scheduler.lookup::<u64>("one").unwrap().pid(), first.pid());
    let wrong = scheduler.lookup::<String>("one").unwrap_err();
    assert!(matches!(wrong, LookupError::WrongType(_)));
    let wrong = || actor_fn(|_, _: String, _| Ok(()));
    let wrong = scheduler.spawn_or_send("one", String::new(), wrong);
    assert!(matches!(wrong.unwrap_err(), SpawnOrSendError::WrongType(_)));
    // It is full.
    let refused = scheduler.spawn_or_send("one", 2, one).unwrap_err();
    assert!(matches!(refused, SpawnOrSendError::Refused(it) if it.kind == SendErrorKind::Full));
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
        ctx.spawn_or_send("one", 3, again)?;
        Ok(())
    });
    assert!(scheduler.lookup::<u64>("one").unwrap().pid() != its_pid);
    scheduler.begin_stop(PATIENCE);
    let late = scheduler.spawn_or_send("late", 3, one).unwrap_err();
    assert!(matches!(late, SpawnOrSendError::NotStarted(it)
        if matches!(it.kind, SubmitErrorKind::Stopping)));
    let detached = Context::detached(its_pid);
    assert!(detached.lookup::<u64>("one").is_err());
    assert!(detached.spawn_or_send("one", 1, one).is_err());
}
