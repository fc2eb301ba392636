//! Wait groups, notifications, cells, barriers.

use crate::support::poll;
use ganger_lock::{
    AcquireError, Barrier, BelowZero, Notify, OnceCell, RwLock, Semaphore, SingleFlight, Until,
    WaitGroup, block_on,
};
use ganger_proc_api::{Event, process_fn};
use ganger_sched::Scheduler;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;

// pins: K7
#[test]
fn a_wait_group_waits_for_all_and_may_be_used_again() {
    let group = Arc::new(WaitGroup::new());
    for round in 0..3 {
        let members = [(); 3].map(|()| Arc::clone(&group).enter());
        let mut waits = [(); 2].map(|()| group.wait());
        for (ended, member) in members.into_iter().enumerate() {
            assert!(
                waits.iter_mut().all(|it| poll(it).is_pending()),
                "{round} {ended}"
            );
            drop(member);
        }
        assert!(waits.iter_mut().all(|it| poll(it).is_ready()));
        assert!(poll(&mut group.wait()).is_ready());
        assert_eq!(group.done(), Err(BelowZero));
    }
}

// pins: K7
#[test]
fn a_process_that_ends_leaves_the_group() {
    let scheduler = Scheduler::start_default().unwrap();
    let group = Arc::new(WaitGroup::new());
    for number in 0..20 {
        let member = Arc::clone(&group).enter();
        let process = process_fn(move |_, _, out| {
            let _ = &member;
            assert!(number % 3 > 0, "on purpose");
            out.done(());
            Ok(())
        });
        scheduler.spawn(process).unwrap();
    }
    group.wait_blocking();
    assert_eq!(group.count(), 0);
}

// pins: K7
#[test]
fn a_word_is_kept_once_and_handed_on() {
    let notify = Notify::new();
    notify.notify_one();
    notify.notify_last();
    assert!(poll(&mut notify.notified()).is_ready());
    let mut waits = [(); 3].map(|()| notify.notified());
    assert!(waits.iter_mut().all(|it| poll(it).is_pending()));
    notify.notify_last();
    notify.notify_one();
    let [mut first, mut second, mut last] = waits;
    assert!(poll(&mut last).is_ready() && poll(&mut second).is_pending());
    // The first is told, and goes: the second is told in its place.
    drop(first);
    assert!(poll(&mut second).is_ready());
    first = notify.notified();
    let mut unpolled = notify.notified();
    assert!(poll(&mut first).is_pending());
    notify.notify_all();
    assert!(poll(&mut first).is_ready() && poll(&mut unpolled).is_ready());
    assert!(poll(&mut notify.notified()).is_pending(), "nothing is kept");
}

// pins: K7
#[test]
fn ten_thousand_are_told_at_once() {
    let notify = Notify::new();
    let mut waits: Vec<_> = (0..10_000).map(|_| notify.notified()).collect();
    assert!(waits.iter_mut().all(|it| poll(it).is_pending()));
    notify.notify_all();
    assert!(waits.iter_mut().all(|it| poll(it).is_ready()));
}

// pins: K7
#[test]
fn a_cell_is_made_once_whatever_fails_first() {
    let cell = OnceCell::new();
    let made = Cell::new(0);
    let mut slow = Box::pin(cell.get_or_init(async || {
        std::future::pending::<()>().await;
        0
    }));
    {
        let mut dropped = Box::pin(cell.get_or_init(async || std::future::pending().await));
        assert!(poll(&mut dropped).is_pending() && poll(&mut slow).is_pending());
    }
    // The maker has gone: the next caller makes the value.
    assert!(poll(&mut slow).is_pending());
    assert_eq!(cell.get(), None);
    drop(slow);
    let made_now = cell.get_or_init(async || {
        made.set(made.get() + 1);
        42
    });
    assert_eq!(*block_on(made_now), 42);
    assert_eq!((*cell.get_or_init_blocking(|| 7), made.get()), (42, 1));
}

// pins: K7
#[test]
fn a_cell_whose_maker_panics_is_made_by_the_next() {
    let cell = OnceCell::new();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        cell.get_or_init_blocking(|| panic!("on purpose"))
    }));
    assert!(panicked.is_err());
    assert_eq!(*cell.get_or_init_blocking(|| 42), 42);
}

// pins: K7
#[test]
fn a_word_for_the_last_is_handed_on_to_the_last() {
    let notify = Notify::new();
    let mut waits = [(); 4].map(|()| notify.notified());
    assert!(waits.iter_mut().all(|it| poll(it).is_pending()));
    notify.notify_last();
    let [mut first, mut second, third, fourth] = waits;
    drop(fourth);
    // The third has the notice, and goes as well.
    drop(third);
    assert!(poll(&mut first).is_pending() && poll(&mut second).is_ready());
    notify.notify_one();
    assert!(poll(&mut first).is_ready());
}

// pins: K7
#[test]
fn what_several_want_at_the_same_time_is_done_once() {
    let flights = SingleFlight::<u64, u32>::new();
    let (begun, gate) = (Cell::new(0), Notify::new());
    let work = async || {
        begun.set(begun.get() + 1);
        gate.notified().await;
        begun.get()
    };
    let fly = || Box::pin(flights.run(7, work));
    let mut calls = [fly(), fly(), fly(), fly()];
    assert!(calls.iter_mut().all(|it| poll(it).is_pending()));
    assert_eq!((begun.get(), flights.len()), (1, 1));
    // The working call goes: the next call does the work.
    let [first, calls @ ..] = &mut calls;
    *first = Box::pin(flights.run(8, work));
    assert!(calls.iter_mut().all(|it| poll(it).is_pending()));
    assert_eq!((begun.get(), flights.len()), (2, 1));
    gate.notify_one();
    let results = calls.each_mut().map(poll);
    assert_eq!(results, [Poll::Ready(2); 3]);
    assert!(flights.is_empty());
    // Later calls do it anew.
    gate.notify_one();
    assert_eq!(block_on(fly()), 3);
}

// pins: K7
#[test]
fn one_of_those_that_meet_leads() {
    let barrier = Barrier::new(3);
    for _ in 0..3 {
        let mut waits = [(); 2].map(|()| barrier.wait());
        let mut gone = barrier.wait();
        assert!(poll(&mut gone).is_pending());
        drop(gone);
        assert!(waits.iter_mut().all(|it| poll(it).is_pending()));
        let leads = poll(&mut barrier.wait());
        let others = waits.each_mut().map(poll);
        assert_eq!(
            format!("{leads:?} {others:?}"),
            "Ready(true) [Ready(false), Ready(false)]"
        );
    }
}

// pins: K1
#[test]
fn a_step_waits_for_any_future() {
    let scheduler = Scheduler::start_default().unwrap();
    let notify = Arc::new(Notify::new());
    let own = Arc::clone(&notify);
    let process = process_fn(move |_, events, out| {
        match events.next() {
            None => {
                let own = Arc::clone(&own);
                out.ask(
                    Until::new(async move {
                        own.notified().await;
                        own.notified().await;
                        42_u64
                    }),
                    1,
                );
                out.ask(Until::<()>::new(async { panic!("on purpose") }), 2);
            }
            Some(Event::Completion(it)) if it.tag == 1 => out.done(it.take::<u64>()?),
            Some(Event::Completion(it)) => {
                let error = it.take::<()>().unwrap_err().to_string();
                assert!(error.contains("on purpose"), "{error}");
            }
            Some(_) => {}
        }
        Ok(())
    });
    let process = scheduler.spawn(process).unwrap();
    let ticker = std::thread::spawn(move || {
        while Arc::strong_count(&notify) > 1 {
            notify.notify_one();
            std::thread::yield_now();
        }
    });
    assert_eq!(process.wait().take::<u64>().unwrap(), 42);
    ticker.join().unwrap();
}

// pins: K5, K6
#[test]
fn a_look_that_never_blocks_gives_what_keeps_its_lock_alive() {
    let prices = Arc::new(RwLock::new(7));
    let readers = [(); 2].map(|()| Arc::clone(&prices).try_read_owned().unwrap());
    assert!(Arc::clone(&prices).try_write_owned().is_err());
    assert_eq!(readers.map(|it| *it), [7, 7]);
    *Arc::clone(&prices).try_write_owned().unwrap() += 1;
    let mut alone = Arc::into_inner(prices).expect("nothing of the guards is left");
    *alone.get_mut().unwrap() += 1;
    assert_eq!(alone.into_inner().unwrap(), 9);

    let places = Arc::new(Semaphore::new(2));
    let permit = Arc::clone(&places).try_acquire_owned(2).unwrap();
    let refused = Arc::clone(&places).try_acquire_owned(1);
    assert_eq!(refused.unwrap_err(), AcquireError::NoPermits);
    drop(permit);
    assert_eq!((places.available(), Arc::strong_count(&places)), (2, 1));
}

// pins: K3
#[test]
fn a_marked_value_says_so_without_a_lock() {
    let mut prices = RwLock::new(7);
    let failed = catch_unwind(AssertUnwindSafe(|| {
        let _write = prices.write_blocking();
        panic!("on purpose");
    }));
    assert!(failed.is_err());
    assert_eq!(prices.get_mut().map_err(|it| **it.get_ref()), Err(7));
    prices.clear_poison();
    assert_eq!(prices.get_mut().map_err(|it| **it.get_ref()), Ok(&mut 7));
}
