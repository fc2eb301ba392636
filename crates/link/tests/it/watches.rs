//! Monitors with a choice of lane, and taken back.

use crate::support::*;
use ganger_link::{Lane, LinkContext, LinkSpawner, TargetError, Watch};
use ganger_proc_api::{Event, ExitCause, Pid, process_fn};
use ganger_sched::ContextExt;
use ganger_sim::Sim;
use std::sync::{Arc, Mutex};

/// The view of a watcher: numbers of messages, and the negated tags of notices.
type Seen = Arc<Mutex<Vec<i64>>>;

// pins: L2
#[test]
fn a_notice_in_order_comes_behind_all_that_the_target_has_sent() {
    for lane in [Lane::InOrder, Lane::Overtaking] {
        Sim::check(100, |rt| {
            let seen = Seen::default();
            let its = Arc::clone(&seen);
            let watcher = process_fn(move |ctx, events, out| {
                let is_first = its.lock().unwrap().is_empty();
                if is_first {
                    let me = ctx.pid();
                    let target = process_fn(move |ctx, events, _| {
                        for event in events {
                            if let Event::Cancel(_) = event {
                                return Ok(());
                            }
                        }
                        for number in 1..=20_i64 {
                            ctx.send(me, "n", number)?;
                        }
                        Err("the end".into())
                    });
                    ctx.spawner().watched(1, lane).spawn(target)?;
                    its.lock().unwrap().push(0);
                }
                for event in events {
                    match event {
                        Event::Message(it) => {
                            its.lock()
                                .unwrap()
                                .extend(it.payloads.into_first().as_i64());
                        }
                        Event::Exit(it) => its.lock().unwrap().push(-i64::try_from(it.tag)?),
                        Event::Cancel(_) => out.done(()),
                        _ => {}
                    }
                }
                Ok(())
            });
            let _watcher = rt.spawn(watcher).unwrap();
            rt.settle();
            let seen = seen.lock().unwrap();
            if lane == Lane::InOrder && seen.contains(&-1) {
                assert_eq!(seen.last(), Some(&-1), "{seen:?}");
            }
            assert!(seen.iter().filter(|&&it| it == -1).count() <= 1);
        });
    }
}

// pins: L2
#[test]
fn each_watch_has_its_own_notice_in_its_own_lane() {
    let scheduler = start(1);
    let (watcher, target) = (puppet(&scheduler), puppet(&scheduler));
    scheduler.register_name("target", target.pid()).unwrap();
    let pid = target.pid();
    watcher.have(move |ctx, _| {
        let watch = ctx.watch("target", 1, Lane::InOrder)?;
        assert_eq!((watch.target(), watch.tag()), (pid, 1));
        ctx.watch(pid, 2, Lane::Overtaking)?;
        ctx.watch(pid, 2, Lane::Overtaking)?;
        ctx.watch(ctx.pid(), 9, Lane::Overtaking)?;
        let nobody = ctx.watch("nobody", 3, Lane::InOrder);
        assert!(matches!(nobody, Err(TargetError::NoSuchName(_))));
        Ok(())
    });
    scheduler.terminate(pid).unwrap();
    exit(target.handle);
    watcher.have(move |ctx, _| {
        // The notice of an ended process comes at once.
        ctx.watch(pid, 4, Lane::InOrder)?;
        Ok(())
    });
    watcher.have(|_, _| Ok(()));
    let told = watcher.told();
    let causes = [ExitCause::Terminated, ExitCause::NotFound];
    let expected = [(2, 0), (2, 0), (1, 0), (4, 1)];
    let expected = expected.map(|(tag, cause)| (pid, tag, causes[cause].clone()));
    assert_eq!(told, expected);
}

// pins: L3
#[test]
fn after_its_end_a_watch_gives_no_notice_also_if_that_is_queued() {
    const MANY: u64 = 50;
    let scheduler = start(1);
    let watcher = puppet(&scheduler);
    let target = puppet(&scheduler);
    let pid = target.pid();
    let watches: Arc<Mutex<Vec<Watch>>> = Arc::default();
    let its = Arc::clone(&watches);
    watcher.have(move |ctx, _| {
        for tag in 0..MANY {
            let lane = if tag % 2 == 0 {
                Lane::InOrder
            } else {
                Lane::Overtaking
            };
            its.lock().unwrap().push(ctx.watch(pid, tag, lane)?);
        }
        Ok(())
    });
    let handle = scheduler.handle();
    watcher.have(move |ctx, _| {
        for watch in watches.lock().unwrap().drain(..20) {
            watch.end();
        }
        handle.terminate(pid)?;
        let begin = std::time::Instant::now();
        while handle.address(pid).is_some() && begin.elapsed() < PATIENCE {
            ctx.blocking(std::thread::yield_now);
        }
        for watch in watches.lock().unwrap().drain(..20) {
            watch.end();
        }
        Ok(())
    });
    exit(target.handle);
    watcher.have(|_, _| Ok(()));
    watcher.have(|_, _| Ok(()));
    let mut tags: Vec<_> = watcher.told().into_iter().map(|it| it.1).collect();
    tags.sort_unstable();
    assert!((40..MANY).eq(tags.iter().copied()), "{tags:?}");
}

// pins: L3
#[test]
fn watches_that_have_ended_do_not_pile_up_at_a_target_that_lives_on() {
    let scheduler = start(1);
    let (watcher, target) = (puppet(&scheduler), puppet(&scheduler));
    let pid = target.pid();
    watcher.have(move |ctx, _| {
        for tag in 0..10_000 {
            ctx.watch(pid, tag, Lane::Overtaking)?.end();
        }
        Ok(())
    });
    target.have(|_, _| Ok(()));
    scheduler.terminate(pid).unwrap();
    exit(target.handle);
    watcher.have(|_, _| Ok(()));
    assert_eq!(watcher.told(), []);
    let outside: Pid = "{elsewhere|1}".parse().unwrap();
    watcher.have(move |ctx, _| {
        assert!(ctx.watch(outside, 1, Lane::InOrder).is_err());
        Ok(())
    });
}
