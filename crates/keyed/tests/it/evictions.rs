//! When a process is evicted, and how.

use crate::support::*;
use ganger_keyed::Kinds;
use ganger_proc_api::{BoxError, Reply};
use ganger_sched::ContextExt;
use ganger_task::{Cx, SpawnTask};
use std::time::Duration;

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

/// A task is cancelled while it waits, and what it does then is its own.
// pins: E3
#[test]
fn an_idle_task_may_clean_up() {
    steady().check_seeds(20, |rt| {
        let book = Book::default();
        let its = book.clone();
        let kind = rt
            .kind::<Act>("task")
            .start_task(move |key: String, cx: Cx<Act>| {
                let book = its.clone();
                async move {
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
        let tasks = kind.idle_after(IDLE).build().unwrap();
        let ann = tasks.of("ann");
        ann.send(Act::Note(0, 0)).unwrap();
        rt.run_for(2 * IDLE);
        rt.run_for(Duration::from_millis(500));
        // It cleans up. The next one waits for its end.
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

/// A process asks itself to leave, and may not ask itself a question.
// pins: E1, E3
#[test]
fn a_process_may_ask_itself_to_leave() {
    steady().check_seeds(20, |rt| {
        let scheduler = rt.downgrade();
        let kind = rt
            .kind::<Own>("own")
            .start_task(move |key: String, cx: Cx<Own>| {
                let scheduler = scheduler.clone();
                async move {
                    let own = cx.context().inherited::<ganger_keyed::Registry<Own>>();
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
        let own = kind.build().unwrap();
        let its = own.clone();
        let asker = rt.spawn_task(async move |cx: Cx| {
            cx.context().set_inherited(its.clone());
            let ann = its.of("ann");
            let refused = cx.ask(ann.call(Own::Ask)).await?;
            assert!(refused.unwrap_err().contains("can't ask itself"));
            ann.send(Own::Leave)?;
            Ok(())
        });
        assert!(rt.wait(asker.unwrap()).is_done());
        rt.settle();
        assert!(own.is_empty());
    });
}
