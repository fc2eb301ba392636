//! A question asked twice is done once.

use crate::support::{Answer, ask, reply};
use ganger_again::{NotDone, Numbers, Once, Seen};
use ganger_proc_api::{BoxError, CommandError, ExitCause, Reply, actor_fn};
use ganger_sched::Scheduler;
use std::sync::mpsc::{Receiver, TryRecvError};

fn why(told: &Receiver<Answer>) -> NotDone {
    match told.try_recv() {
        Ok(Err(CommandError::Failed(error))) => *error.downcast().unwrap(),
        other => panic!("{other:?}"),
    }
}

// pins: C7
#[test]
fn an_asker_joins_the_work_and_a_later_one_gets_the_same_answer() {
    let (mut numbers, mut seen) = (Numbers::new(), Seen::default());
    let once = numbers.once("a");
    let (work, first) = ask(&mut seen, &once);
    let work = work.expect("it is new");
    let (none, second) = ask(&mut seen, &once);
    assert!(none.is_none());
    assert!(matches!(second.try_recv(), Err(TryRecvError::Empty)));
    assert!(!work.is_cancelled());
    work.complete(7);
    let (none, third) = ask(&mut seen, &once);
    assert!(none.is_none());
    for told in [first, second, third] {
        assert_eq!(told.try_recv().unwrap().unwrap(), 7);
    }
    let other = numbers.once("a");
    assert!(ask(&mut seen, &other).0.is_some(), "another number is new");
    assert_eq!(seen.answers(numbers.sender()), 2);
    assert_eq!(seen.senders(), 1);
}

// pins: C7
#[test]
fn an_error_and_a_drop_are_answers_that_are_given_again() {
    let (mut numbers, mut seen) = (Numbers::new(), Seen::default());
    let [fails, drops] = [(); 2].map(|()| numbers.once(""));
    let (work, first) = ask(&mut seen, &fails);
    work.unwrap().fail("no money");
    let (none, again) = ask(&mut seen, &fails);
    assert!(none.is_none());
    for told in [first, again] {
        let error = told.try_recv().unwrap().unwrap_err();
        assert_eq!(error.to_string(), "no money");
    }
    let (work, first) = ask(&mut seen, &drops);
    drop(work);
    let (none, again) = ask(&mut seen, &drops);
    assert!(none.is_none());
    for told in [first, again] {
        assert!(matches!(told.try_recv(), Ok(Err(CommandError::Dropped))));
    }
}

// pins: C7
#[test]
fn what_is_older_than_what_is_remembered_is_refused() {
    let (mut numbers, mut seen) = (Numbers::new(), Seen::bounded(4, 2));
    let all = [(); 3].map(|()| numbers.once(""));
    for once in &all {
        ask(&mut seen, once).0.expect("it is new").complete(1);
    }
    assert_eq!(seen.answers(numbers.sender()), 2);
    assert_eq!(why(&ask(&mut seen, &all[0]).1), NotDone::TooOld);
    assert_eq!(ask(&mut seen, &all[1]).1.try_recv().unwrap().unwrap(), 1);
    // Also above the lowest remembered number.
    let [low, forgotten, last] = [(); 3].map(|()| numbers.once(""));
    let mut seen = Seen::bounded(4, 2);
    let work = ask(&mut seen, &low).0.expect("it is new");
    for once in [&forgotten, &last] {
        ask(&mut seen, once).0.expect("it is new").complete(1);
    }
    work.complete(1);
    assert_eq!(why(&ask(&mut seen, &forgotten).1), NotDone::TooOld);
}

// pins: C7
#[test]
fn work_is_not_forgotten_for_new_questions() {
    let (mut numbers, mut seen) = (Numbers::new(), Seen::bounded(1, 2));
    let all = [(); 4].map(|()| numbers.once(""));
    let works = [0, 1].map(|at| ask(&mut seen, &all[at]).0.expect("it is new"));
    assert_eq!(why(&ask(&mut seen, &all[2]).1), NotDone::Busy);
    // Nor for another sender.
    let other = Numbers::new().once("");
    assert_eq!(why(&ask(&mut seen, &other).1), NotDone::Busy);
    let [first, second] = works;
    second.complete(2);
    let work = ask(&mut seen, &all[3]).0.expect("there is room");
    assert_eq!(why(&ask(&mut seen, &all[1]).1), NotDone::TooOld);
    assert_eq!(why(&ask(&mut seen, &all[2]).1), NotDone::Busy);
    work.complete(4);
    // The first is below the floor, and is known all the same.
    let (none, told) = ask(&mut seen, &all[0]);
    assert!(none.is_none());
    first.complete(1);
    assert_eq!(told.try_recv().unwrap().unwrap(), 1);
}

// pins: C7
#[test]
fn a_forgotten_sender_is_refused_and_goes_on_with_new_numbers() {
    let mut seen = Seen::bounded(2, 4);
    let mut senders = [(); 3].map(|()| Numbers::new());
    let old = [0, 1, 2].map(|at| senders[at].once(""));
    for once in &old {
        ask(&mut seen, once).0.expect("it is new").complete(1);
    }
    assert_eq!(seen.senders(), 2);
    assert_eq!(why(&ask(&mut seen, &old[0]).1), NotDone::TooOld);
    // A new number of the sender is above the forgotten numbers.
    let (work, _) = ask(&mut seen, &senders[0].once(""));
    work.expect("it is new").complete(1);
    assert_eq!(why(&ask(&mut seen, &old[0]).1), NotDone::TooOld, "still");
}

// pins: C7
#[test]
fn as_many_askers_as_wait_for_an_answer_are_bounded() {
    let (mut numbers, mut seen) = (Numbers::new(), Seen::default());
    let once = numbers.once("");
    let mut asked: Vec<_> = (0..64).map(|_| ask(&mut seen, &once)).collect();
    let work = asked[0].0.take().expect("it is new");
    assert_eq!(why(&ask(&mut seen, &once).1), NotDone::Busy);
    work.complete(1);
    for (_, told) in asked {
        assert_eq!(told.try_recv().unwrap().unwrap(), 1);
    }
}

// pins: C7
#[test]
fn the_end_of_the_process_is_the_answer_of_all_its_askers() {
    let scheduler = Scheduler::builder().quiet_failures().start().unwrap();
    let mut seen = Seen::default();
    let mut kept = Vec::new();
    let worker = scheduler.spawn(actor_fn(move |_, (once, reply), _| {
        let once: Option<Once<()>> = once;
        match once {
            None => return Err(BoxError::from("on purpose")),
            Some(once) => kept.extend(seen.fresh(once, reply)),
        }
        Ok(())
    }));
    let worker = worker.unwrap();
    let once = Numbers::new().once(());
    let ask = |once: Option<Once<()>>| worker.call(move |reply: Reply<u64>| (once, reply)).begin();
    let asked = [Some(once.clone()), Some(once), None].map(ask);
    for answer in asked {
        let answer = answer.wait();
        let Err(CommandError::Ended(ExitCause::Failed(text))) = answer else {
            panic!("{answer:?}");
        };
        assert_eq!(&*text, "on purpose");
    }
}

/// An answer whose clone panics.
#[derive(Debug)]
struct Unique(u64);

impl Clone for Unique {
    fn clone(&self) -> Self {
        panic!("there is but one")
    }
}

// pins: C7
#[test]
fn an_answer_whose_clone_panics_leaves_no_asker_waiting() {
    let (mut numbers, mut seen) = (Numbers::new(), Seen::<Unique>::default());
    let once = numbers.once("");
    let replies = [(); 2].map(|()| {
        let (tell, told) = std::sync::mpsc::channel();
        let pid = "{test|1}".parse().unwrap();
        let completer = ganger_proc_api::Completer::from_fn(pid, 0, move |it| {
            let _gone = tell.send(it.take::<Unique>().map(|it| it.0));
        });
        (Reply::new(completer), told)
    });
    let [(first, told), (second, also)] = replies;
    let (_, work) = seen.fresh(once.clone(), first).expect("it is new");
    assert!(seen.fresh(once, second).is_none());
    let panics = std::panic::AssertUnwindSafe(|| work.complete(Unique(1)));
    assert!(std::panic::catch_unwind(panics).is_err());
    for told in [told, also] {
        assert!(matches!(told.try_recv(), Ok(Err(CommandError::Dropped))));
    }
}

// pins: C7
#[test]
fn questions_and_what_was_seen_cross_as_bytes() {
    let (mut numbers, mut seen) = (Numbers::new(), Seen::bounded(2, 2));
    let all = [(); 5].map(|()| numbers.once(7_u64));
    let bytes = postcard::to_stdvec(&all[0]).unwrap();
    let read: Once<u64> = postcard::from_bytes(&bytes).unwrap();
    assert_eq!(read, all[0]);

    let ask = |seen: &mut Seen<u64>, once: &Once<u64>| {
        let (reply, told) = reply();
        (seen.fresh(once.clone(), reply), told)
    };
    for once in &all[..3] {
        ask(&mut seen, once).0.expect("it is new").1.complete(9);
    }
    let (_open, _) = ask(&mut seen, &all[3]);
    let bytes = postcard::to_stdvec(&seen).unwrap();
    let mut seen: Seen<u64> = postcard::from_bytes(&bytes).unwrap();
    assert_eq!(why(&ask(&mut seen, &all[1]).1), NotDone::TooOld);
    assert_eq!(ask(&mut seen, &all[2]).1.try_recv().unwrap().unwrap(), 9);
    assert_eq!(why(&ask(&mut seen, &all[3]).1), NotDone::Unknown);
    assert!(ask(&mut seen, &all[4]).0.is_some());
    // The oldest sender goes first, as before.
    let mut others = [(); 2].map(|()| Numbers::new());
    for other in &mut others {
        ask(&mut seen, &other.once(0))
            .0
            .expect("it is new")
            .1
            .complete(0);
    }
    assert_eq!(seen.senders(), 2);
}
