//! Keys and their processes: first messages, look-ups, ends.

use crate::support::*;
use ganger_keyed::{KeyedErrorKind, Kinds};
use ganger_proc_api::{
    BoxError, CommandError, Lifecycle, Pid, Reply, SendErrorKind, SubmitErrorKind, Symbol, actor_fn,
};
use ganger_sched::Scheduler;
use ganger_sim::{Faults, Sim};
use ganger_task::Cx;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

// pins: E1
#[test]
fn of_first_messages_at_a_time_one_starts_the_process() {
    const THREADS: u32 = 4;
    const ROUNDS: u64 = 50;
    let scheduler = start(2);
    let book = Book::default();
    let clerks = clerks(&scheduler, &book);
    thread::scope(|scope| {
        for sender in 0..THREADS {
            let clerks = &clerks;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    clerks
                        .of(format!("{round}"))
                        .send(Act::Note(sender, round))
                        .unwrap();
                }
            });
        }
    });
    for round in 0..ROUNDS {
        let key = format!("{round}");
        let count = clerks.of(key.as_str()).call(Act::Count).wait().unwrap();
        assert_eq!(count, u64::from(THREADS) + 1);
        assert_eq!(book.of(&key).started, 1);
    }
    assert_eq!(clerks.len() as u64, ROUNDS);
    scheduler.stop(Duration::from_secs(60)).unwrap();
    assert!(clerks.is_empty());
    for round in 0..ROUNDS {
        assert_eq!(book.of(&format!("{round}")).closed, 1);
    }
}

// pins: E1
#[test]
fn of_first_messages_in_any_order_one_starts_the_process() {
    let faults = Faults {
        others_move: 300,
        ..Faults::some()
    };
    Sim::new(0)
        .workers(3)
        .faults(faults)
        .check_seeds(200, |rt| {
            let starts = Arc::new(AtomicU64::new(0));
            let its = Arc::clone(&starts);
            let kind = rt.kind::<Reply<u64>>("one").keyed_by::<Slow>();
            let kind = kind.start(move |_, _| {
                // Ordering: Relaxed: a simulation has one thread.
                its.fetch_add(1, Ordering::Relaxed);
                let mut count = 0;
                actor_fn(move |_, reply: Reply<u64>, _| {
                    count += 1;
                    reply.complete(count);
                    Ok(())
                })
            });
            let one = kind.build();
            let senders = [(); 4].map(|()| {
                let one = one.of(Slow::new(1, rt));
                let asks = async move |cx: Cx| Ok(cx.ask(one.call(|reply| reply)).await?);
                rt.spawn(asks).unwrap()
            });
            let answers = senders.map(|it| rt.wait(it).take::<u64>().unwrap());
            assert_eq!(answers.iter().sum::<u64>(), 1 + 2 + 3 + 4);
            // Ordering: Relaxed: a simulation has one thread.
            assert_eq!((starts.load(Ordering::Relaxed), one.len()), (1, 1));
        });
}

// pins: E1
#[test]
fn looking_starts_nothing_and_a_failed_process_is_followed_by_another() {
    let scheduler = start(2);
    let book = Book::default();
    let clerks = clerks(&scheduler, &book);
    let ann = clerks.of("ann");
    assert!(ann.find().is_none() && clerks.find("ann").is_none() && !clerks.evict("ann"));
    ann.send(Act::Note(0, 0)).unwrap();
    let first = clerks.find("ann").unwrap();
    assert_eq!(
        (ann.find().unwrap().pid(), clerks.keys()),
        (first.pid(), vec!["ann".to_owned()])
    );
    for end in [Act::Fail, Act::Done] {
        let before = clerks.find("ann").unwrap();
        ann.send(end).unwrap();
        while clerks.find("ann").is_some() {
            thread::yield_now();
        }
        // The next message starts another process at once.
        assert_eq!(ann.call(Act::Count).wait().unwrap(), 1);
        assert!(clerks.find("ann").unwrap().pid() != before.pid());
    }
    assert_eq!(book.of("ann").started, 3);
}

// pins: E1
#[test]
fn a_first_message_is_in_the_mailbox_before_the_process_begins() {
    Sim::check(50, |rt| {
        let book = Book::default();
        let clerks = clerks(rt, &book);
        clerks.of("ann").send(Act::Note(1, 0)).unwrap();
        rt.cancel(clerks.find("ann").unwrap().pid(), "no more")
            .unwrap();
        // A cancellation overtakes messages, so nothing may have been started.
        rt.settle();
        assert!(clerks.is_empty());
        assert_eq!(book.of("ann").started, book.of("ann").closed);
    });
}

// pins: E1
#[test]
fn what_is_refused_comes_back() {
    let builder = Scheduler::builder().workers(1);
    let scheduler = builder.mailbox_limit(1).max_processes(1).build().unwrap();
    let book = Book::default();
    let clerks = clerks(&scheduler, &book);
    let ann = clerks.of("ann");
    ann.send(Act::Note(0, 0)).unwrap();
    let full = ann.send(Act::Note(0, 1)).unwrap_err();
    assert!(
        matches!(full.kind, KeyedErrorKind::Refused(SendErrorKind::Full)),
        "{full}"
    );
    assert!(matches!(full.into_message::<Act>(), Some(Act::Note(0, 1))));
    let many = clerks.of("bob").send(Act::Note(0, 2)).unwrap_err();
    let is_limit = |kind: &_| matches!(kind, SubmitErrorKind::LimitReached { max: 1 });
    assert!(
        matches!(&many.kind, KeyedErrorKind::NotStarted(it) if is_limit(it)),
        "{many}"
    );
    assert!(matches!(many.into_message::<Act>(), Some(Act::Note(0, 2))));
    scheduler.start().unwrap();
    scheduler.begin_stop(Duration::from_secs(60));
    let late = clerks.of("cal").send(Act::Note(0, 3)).unwrap_err();
    let is_stop = |kind: &_| matches!(kind, SubmitErrorKind::Stopping);
    assert!(
        matches!(&late.kind, KeyedErrorKind::NotStarted(it) if is_stop(it)),
        "{late}"
    );
    assert!(matches!(late.into_message::<Act>(), Some(Act::Note(0, 3))));
    let asked = clerks.of("cal").call(Act::Count).wait();
    assert!(matches!(asked, Err(CommandError::Failed(it)) if it.is::<KeyedErrorKind>()));
}

struct Refuses;

impl Lifecycle for Refuses {
    fn on_start(&self, _: Pid, _: Symbol) -> Result<(), BoxError> {
        Err("not on my watch".into())
    }
}

// pins: E1, E3
#[test]
fn a_start_that_the_lifecycle_hook_refuses_leaves_nothing() {
    let builder = Scheduler::builder().workers(1);
    let scheduler = builder.lifecycle(Refuses).build().unwrap();
    let clerks = clerks(&scheduler, &Book::default());
    let error = clerks.of("ann").send(Act::Done).unwrap_err();
    let is_hook = |kind: &_| matches!(kind, SubmitErrorKind::StartRefused(_));
    assert!(
        matches!(&error.kind, KeyedErrorKind::NotStarted(it) if is_hook(it)),
        "{error}"
    );
    assert!(clerks.is_empty());
    // The process had the message, and has been closed.
    assert!(error.into_message::<Act>().is_none());
}
