//! When a process is evicted, and how.

use crate::support::*;
use ganger_keyed::Kinds;
use ganger_proc_api::{BoxError, Reply};
use ganger_sched::ContextExt;
use ganger_task::Cx;
use std::time::{Duration, Instant};

// pins: E3
#[test]
fn an_idle_process_goes_in_time_and_one_in_use_stays() {
    steady().check_seeds(20, |rt| {
        let book = Book::default();
        let clerks = clerks(rt, &book);
        let (ann, bob) = (clerks.of("ann"), clerks.of("bob"));
        for number in 0..4 {
            if number < 2 {
                ann.send(Act::Note(0, number)).unwrap();
            }
            bob.send(Act::Note(0, number)).unwrap();
            rt.run_for(IDLE - Duration::from_secs(1));
            assert!(bob.find().is_some(), "it is in use");
            if number < 2 {
                assert!(ann.find().is_some(), "it has not been idle for that long");
            }
        }
        // Ann's has been idle for 27 seconds.
        assert!(ann.find().is_none());
        assert_eq!((book.of("ann").started, book.of("ann").closed), (1, 1));
        rt.run_for(2 * IDLE + Duration::from_secs(1));
        assert!(clerks.is_empty());
        assert_eq!(rt.stats().live, 0);
        assert_eq!(rt.answer(ann.call(Act::Count)).unwrap(), 1);
        assert_eq!(book.of("ann").started, 2);
    });
}

// pins: E3
#[test]
fn a_process_that_is_told_to_leave_takes_what_is_in_its_mailbox_first() {
    let sim = steady().builder(|it| it.event_batch(2));
    sim.check_seeds(50, |rt| {
        let book = Book::default();
        let clerks = clerks(rt, &book);
        for number in 0..5 {
            clerks.of("ann").send(Act::Note(0, number)).unwrap();
        }
        assert!(clerks.evict("ann") && clerks.evict("ann"));
        for number in 5..10 {
            clerks.of("ann").send(Act::Note(0, number)).unwrap();
        }
        rt.run_for(Duration::from_secs(1));
        let account = book.of("ann");
        assert_eq!(account.taken, (0..10).map(|it| (0, it)).collect::<Vec<_>>());
        assert!(account.closed >= 1, "{}", account.closed);
        assert!(!clerks.evict("bob"));
    });
}

/// Cancels a task while it waits: its clean-up is its own.
// pins: E3
#[test]
fn an_idle_task_may_clean_up() {
    steady().check_seeds(20, |rt| {
        let book = Book::default();
        let its = book.clone();
        let kind = rt.kind::<Act>("task").start(move |key, _| {
            let (key, book) = (key.clone(), its.clone());
            async move |cx: Cx<Act>| {
                book.with(&key, |it| it.started += 1);
                while let Some(act) = cx.recv().await {
                    match act {
                        Act::Note(sender, number) => {
                            book.with(&key, |it| it.taken.push((sender, number)));
                        }
                        Act::Count(reply) => reply.complete(book.of(&key).taken.len() as u64),
                        Act::Fail => return Err("told to fail".into()),
                        Act::Done => break,
                    }
                }
                cx.shield(cx.sleep(Duration::from_secs(1))).await.ok();
                book.with(&key, |it| it.closed += 1);
                Ok(())
            }
        });
        let tasks = kind.idle_after(IDLE).build();
        let ann = tasks.of("ann");
        ann.send(Act::Note(0, 0)).unwrap();
        rt.run_for(2 * IDLE);
        rt.run_for(Duration::from_millis(500));
        // The process cleans up. The next process waits for its end.
        let answer = ann.call(Act::Count).begin();
        rt.run_for(Duration::from_millis(1));
        assert!(!answer.is_ready());
        assert_eq!((book.of("ann").started, book.of("ann").closed), (1, 0));
        rt.run_for(Duration::from_secs(1));
        assert_eq!(answer.wait().unwrap(), 1);
        assert_eq!((book.of("ann").started, book.of("ann").closed), (2, 1));
    });
}

enum Own {
    Leave,
    Ask(Reply<Result<u64, String>>),
}

/// Lets a process ask itself to leave: it may not ask itself a question.
// pins: E1, E3
#[test]
fn a_process_may_ask_itself_to_leave() {
    steady().check_seeds(20, |rt| {
        let scheduler = rt.downgrade();
        let kind = rt.kind::<Own>("own").start(move |key, _| {
            let (key, scheduler) = (key.clone(), scheduler.clone());
            async move |cx: Cx<Own>| {
                let own = cx.context().inherited::<ganger_keyed::Keyed<Own>>();
                let own = own.ok_or("it is inherited")?;
                let _scheduler = scheduler.upgrade().ok_or("gone")?;
                while let Some(message) = cx.recv().await {
                    match message {
                        Own::Leave => assert!(own.evict(&key)),
                        Own::Ask(reply) => {
                            let asked = cx.ask(own.of(key.as_str()).call(Own::Ask)).await;
                            let asked = asked.map_err(|it| BoxError::from(it).to_string());
                            reply.complete(asked.and_then(|it| it));
                        }
                    }
                }
                Ok(())
            }
        });
        let own = kind.build();
        let its = own.clone();
        let asker = rt.spawn(async move |cx: Cx| {
            cx.context().set_inherited(its.clone());
            let ann = its.of("ann");
            let refused = cx.ask(ann.call(Own::Ask)).await?;
            assert!(refused.unwrap_err().contains("can't call itself"));
            ann.send(Own::Leave)?;
            Ok(())
        });
        assert!(rt.wait(asker.unwrap()).is_done());
        rt.settle();
        assert!(own.is_empty());
    });
}

/// Sends from threads until each key has had some processes.
// pins: E2, E3
#[test]
fn on_threads_too_no_message_is_lost_or_out_of_order() {
    const THREADS: u32 = 3;
    const KEYS: [&str; 2] = ["ann", "bob"];
    let scheduler = start(2);
    let book = Book::default();
    let clerks = clerks(&scheduler, &book);
    let send = |sender| {
        let keys = KEYS.map(|key| clerks.of(key));
        let (mut number, begin) = (0, Instant::now());
        while number % 64 > 0 || KEYS.iter().any(|key| book.of(key).started < 4) {
            let key = &keys[usize::from(number % 7 % 2 == 0)];
            key.send(Act::Note(sender, number)).unwrap();
            if number % 8 == 0 {
                clerks.evict(key.key());
                std::thread::yield_now();
            }
            number += 1;
            assert!(begin.elapsed() < PATIENCE, "none is evicted");
        }
        number
    };
    let sent: u64 = std::thread::scope(|scope| {
        let send = &send;
        let threads = [0, 1, 2].map(|sender| scope.spawn(move || send(sender)));
        threads.into_iter().map(|it| it.join().unwrap()).sum()
    });
    scheduler.stop(Duration::from_secs(60)).unwrap();
    let mut taken = 0;
    for account in KEYS.map(|key| book.of(key)) {
        assert_eq!(account.started, account.closed);
        for sender in 0..THREADS {
            let of_sender = account.taken.iter().filter(|it| it.0 == sender);
            let numbers: Vec<_> = of_sender.map(|it| it.1).collect();
            assert!(numbers.is_sorted_by(|a, b| a < b));
            taken += numbers.len() as u64;
        }
    }
    assert_eq!(taken, sent);
}

/// Tells a process of the stop, which finishes its work, and needs other processes for this work.
// pins: E5
#[test]
fn a_stop_leaves_them_to_the_last_process_that_asks() {
    steady().check_seeds(20, |rt| {
        let book = Book::default();
        let clerks = clerks(rt, &book);
        clerks.of("ann").send(Act::Note(0, 0)).unwrap();
        rt.run_for(Duration::from_millis(1));
        let its = clerks.clone();
        let late = rt.spawn(async move |cx: Cx| {
            cx.cancelled().await;
            let work = async {
                cx.sleep(Duration::from_secs(3)).await?;
                let ann = cx.ask(its.of("ann").call(Act::Count)).await?;
                let bob = cx.ask(its.of("bob").call(Act::Count)).await?;
                Ok::<_, BoxError>(ann + bob)
            };
            cx.shield(work).await
        });
        rt.run_for(Duration::from_millis(1));
        rt.begin_stop(Duration::from_secs(60));
        assert_eq!(rt.wait(late.unwrap()).take::<u64>().unwrap(), 3);
        rt.run_for(Duration::from_secs(1));
        assert!(clerks.is_empty());
        for key in ["ann", "bob"] {
            assert_eq!((book.of(key).started, book.of(key).closed), (1, 1));
        }
        // From outside of a process none starts.
        assert!(clerks.of("cal").send(Act::Done).is_err());
    });
}
