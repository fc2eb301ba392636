//! Schedulers that check their promises while they run: a broken promise ends this program, with a
//! message.

use crate::support::*;
use ganger_proc_api::{Context, Event, Message, Pid};
use ganger_sched::internal::check::{self, Summary};
use ganger_sched::{Address, Builder, Handle, Scheduler};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

fn checked(builder: Builder) -> Scheduler {
    let scheduler = builder.check_promises().build().unwrap();
    scheduler.start().unwrap();
    scheduler
}

/// Audits the scheduler on a thread of its own for as long as `f` takes.
fn audited<R>(scheduler: &Handle, f: impl FnOnce() -> R) -> R {
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                check::audit(scheduler);
                thread::yield_now();
            }
        });
        let _over = Over(&is_over);
        f()
    })
}

/// Processes, which know each other by their places.
#[derive(Default)]
struct Crowd {
    pids: OnceLock<Vec<Pid>>,
    /// Handled messages.
    handled: AtomicU64,
}

impl Crowd {
    /// Starts `count` members. `on_message` is a member's reaction to the number of a message, and
    /// returns for how many further turns the member steps.
    fn start(
        scheduler: &Handle,
        size: usize,
        on_message: impl Fn(&Context, &Self, usize, u64) -> u32 + Clone + Send + 'static,
    ) -> (Arc<Self>, Vec<Address>) {
        let crowd = Arc::new(Self::default());
        let members = (0..size).map(|place| {
            let (crowd, on_message) = (Arc::clone(&crowd), on_message.clone());
            let mut turns = 0;
            let member = process(move |ctx, events, out| {
                for event in events {
                    match event {
                        Event::Message(message) => {
                            let left = message.payloads.into_first().as_u64().unwrap();
                            turns = on_message(ctx, &crowd, place, left);
                            crowd.handled.fetch_add(1, Ordering::SeqCst);
                        }
                        Event::Cancel(_) => {
                            out.done(());
                            return Ok(());
                        }
                        _ => {}
                    }
                }
                if turns > 0 {
                    turns -= 1;
                    give_way(10, || false);
                    out.step_again();
                }
                Ok(())
            });
            scheduler.submit(member, "main", ()).unwrap()
        });
        let members: Vec<_> = members.collect();
        let pids = members.iter().map(|member| member.pid()).collect();
        crowd.pids.set(pids).unwrap();
        (
            crowd,
            members
                .iter()
                .map(|member| member.address().clone())
                .collect(),
        )
    }

    fn send(&self, ctx: &Context, target: usize, left: u64) {
        let pids = self.pids.get().unwrap();
        ctx.send(pids[target % pids.len()], "go", left).unwrap();
    }

    fn handled(&self) -> u64 {
        self.handled.load(Ordering::SeqCst)
    }
}

/// Starts `count` processes, which continue until `is_over`.
fn start_hogs(scheduler: &Handle, count: usize, is_over: &Arc<AtomicBool>) {
    for _ in 0..count {
        let is_over = Arc::clone(is_over);
        let hog = process(move |_, _, out| {
            if is_over.load(Ordering::SeqCst) {
                out.done(());
            } else {
                out.step_again();
            }
            Ok(())
        });
        drop(scheduler.submit(hog, "main", ()).unwrap());
    }
}

fn call(member: &Address, left: u64) {
    member.send(Message::new("go", left)).unwrap();
}

/// Yields its thread until `condition` holds, at most `times` times.
fn give_way(times: u32, condition: impl Fn() -> bool) {
    (0..times)
        .take_while(|_| !condition())
        .for_each(|_| thread::yield_now());
}

/// Runs rounds of work with silence in between, so workers fall asleep and wake all the time.
fn stress(workers: usize, rounds: u64) -> Summary {
    const RING: usize = 16;
    const MESH: usize = 24;
    const PAIRS: usize = 6;
    const BLOCKERS: usize = 4;
    let builder = Scheduler::builder().workers(workers).max_spares(4);
    let scheduler =
        checked(builder.step_limits(Duration::from_micros(200), Duration::from_millis(2)));
    let (ring, ring_members) = Crowd::start(&scheduler, RING, |ctx, ring, place, left| {
        if left > 0 {
            ring.send(ctx, place + 1, left - 1);
        }
        0
    });
    // Each message makes two of half the size: some of them wait behind others, some are alone.
    let (mesh, mesh_members) = Crowd::start(&scheduler, MESH, |ctx, mesh, place, left| {
        if left > 1 {
            mesh.send(ctx, place * 7 + 1, left / 2);
            mesh.send(ctx, place * 5 + 2, left / 2);
            // A worker woken for them has time to come, and to find nothing more.
            give_way(16, || false);
        }
        0
    });
    // A step continues after it has left a process, or two, to its own worker. Or it ends, and its
    // process has further turns.
    let handle = scheduler.handle();
    let (pairs, first) = Crowd::start(&scheduler, PAIRS, move |ctx, pairs, place, left| {
        if left > 0 {
            // A worker woken for this process must find nothing more, and sleep.
            give_way(1_000, || handle.stats().sleeping + 1 == workers);
            let before = pairs.handled();
            (1..)
                .zip(0..left)
                .for_each(|(nth, _)| pairs.send(ctx, place + nth, 0));
            if place % 2 == 1 {
                return 20;
            }
            give_way(10_000, || workers == 1 || pairs.handled() == before + left);
        }
        0
    });
    let (blockers, blocking) = Crowd::start(&scheduler, BLOCKERS, |ctx, crowd, place, left| {
        let pause = || thread::sleep(Duration::from_micros(left));
        if left > 0 {
            crowd.send(ctx, place + 1, 0);
            crowd.send(ctx, place + 2, 0);
            if place % 2 == 0 {
                ctx.blocking(pause);
            } else {
                pause();
            }
        }
        0
    });
    let (mut hops, mut halves, mut left, mut blocked) = (0, 0, 0, 0);
    audited(&scheduler, || {
        for round in 0..rounds {
            let nth = usize::try_from(round).unwrap();
            if round % 8 == 1 {
                // The other workers sleep, and the monitor must wake one.
                until("everybody sleeps", || scheduler.stats().sleeping == workers);
                if round % 64 == 1 {
                    until("the monitor sleeps", || !check::is_watched(&scheduler));
                }
                call(&first[nth / 16 % PAIRS], 1 + round / 8 % 2);
                left += 2 + round / 8 % 2;
                until("all messages are handled", || pairs.handled() == left);
            }
            call(&ring_members[nth % RING], 20 + round % 30);
            hops += 21 + round % 30;
            call(&mesh_members[nth % MESH], 16);
            halves += 31;
            if round % 64 == 0 {
                call(&blocking[nth / 64 % BLOCKERS], 1_000);
                blocked += 3;
            }
            for _ in 0..round % 4 {
                let short = process(|_, _, out| {
                    out.done(());
                    Ok(())
                });
                drop(scheduler.submit(short, "main", ()).unwrap());
            }
            if round % 8 != 0 {
                until("all messages are handled", || {
                    ring.handled() == hops && mesh.handled() == halves && pairs.handled() == left
                });
            }
        }
        until("the blocked are back", || blockers.handled() == blocked);
        until("everybody is audited asleep", || {
            scheduler.stats().sleeping == workers && check::audit(&scheduler)
        });
    });
    let report = scheduler.stop(PATIENCE).unwrap();
    assert_eq!((report.forced, report.stuck.len()), (0, 0));
    check::summary(&scheduler)
}

// pins: G1, G2, G3, G4, G8
#[test]
fn nothing_lies_beside_a_sleeper_on_any_number_of_workers() {
    for workers in 1..=8 {
        let summary = stress(workers, 1_500);
        println!("{workers} workers: {summary:?}");
        assert!(summary.audits > 0 && summary.picks > 0, "{summary:?}");
        assert!(workers == 1 || summary.deferred > 0, "{summary:?}");
    }
}

/// Calls `one_more` until the scheduler has picked `picks` processes.
fn flood(scheduler: &Handle, picks: u64, one_more: impl Fn()) {
    while check::summary(scheduler).picks < picks {
        one_more();
    }
}

// pins: G4
#[test]
fn every_wait_is_within_the_bound_in_picks_whatever_the_others_do() {
    const PICKS: u64 = 300_000;
    for workers in [1, 2, 4] {
        let builder = Scheduler::builder().workers(workers).max_spares(0);
        let scheduler = checked(builder.mailbox_limit(10_000));
        let is_over = Arc::new(AtomicBool::new(false));
        start_hogs(&scheduler, 10, &is_over);
        let stop = Arc::clone(&is_over);
        let (_, players) = Crowd::start(&scheduler, 10, move |ctx, players, place, left| {
            if !stop.load(Ordering::SeqCst) {
                players.send(ctx, place ^ 1, left);
            }
            0
        });
        (0..5).for_each(|pair| call(&players[2 * pair], 0));
        let (sink, sinks) = Crowd::start(&scheduler, 1, |_, _, _, _| 0);
        thread::scope(|scope| {
            // Both floods are as fast as they may without filling the memory.
            scope.spawn(|| {
                flood(&scheduler, PICKS, || {
                    if scheduler.stats().global_queue < 200 {
                        let short = process(|_, _, out| {
                            out.done(());
                            Ok(())
                        });
                        drop(scheduler.submit(short, "main", ()).unwrap());
                    }
                });
            });
            scope.spawn(|| {
                flood(&scheduler, PICKS, || {
                    if sinks[0].send(Message::new("go", 0_u64)).is_err() {
                        thread::yield_now();
                    }
                });
            });
        });
        is_over.store(true, Ordering::SeqCst);
        let report = scheduler.stop(PATIENCE).unwrap();
        assert_eq!((report.forced, report.stuck.len()), (0, 0));
        let summary = check::summary(&scheduler);
        println!(
            "{workers} workers, {} messages: {summary:?}",
            sink.handled()
        );
        assert!(summary.picks >= PICKS && sink.handled() > 0, "{summary:?}");
        assert!(summary.worst > 127, "nobody had to wait: {summary:?}");
    }
}

/// Checks that busy workers take a process from each other again and again: two can't share three
/// evenly.
// pins: G4
#[test]
fn processes_that_never_end_change_workers_and_wait_no_longer_for_it() {
    for (workers, hogs) in [(2, 3), (4, 7)] {
        let builder = Scheduler::builder().workers(workers).max_spares(0);
        let scheduler = checked(builder);
        let is_over = Arc::new(AtomicBool::new(false));
        start_hogs(&scheduler, hogs, &is_over);
        until("some have changed workers", || {
            scheduler.stats().total.steals > 100
        });
        is_over.store(true, Ordering::SeqCst);
        let report = scheduler.stop(PATIENCE).unwrap();
        assert_eq!((report.forced, report.stuck.len()), (0, 0));
    }
}
