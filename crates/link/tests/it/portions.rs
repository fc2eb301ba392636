//! Ends with many notices: other processes have turns meanwhile. By counts, in the simulation.

use crate::support::*;
use ganger_link::{Lane, LinkContext};
use ganger_proc_api::{Event, ExitCause, Pid, process_fn};
use ganger_sched::ExitAction;
use ganger_sim::{Rt, Sim};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The number of processes to be told.
const MANY: usize = 2_000;

/// The most processes told in a turn.
const PORTION: usize = 256;

/// Notes the steps of other processes at its release and at its notice.
struct Notes {
    steps: Arc<AtomicUsize>,
    released: Arc<Mutex<Vec<usize>>>,
    told: Arc<Mutex<Vec<usize>>>,
}

impl Notes {
    fn note(&self, list: &Mutex<Vec<usize>>) {
        // Ordering: Relaxed: a count, on a single thread.
        list.lock()
            .unwrap()
            .push(self.steps.load(Ordering::Relaxed));
    }
}

impl ExitAction for Notes {
    fn release(&mut self, _: Pid) {
        self.note(&self.released);
    }

    fn tell(self: Box<Self>, _: Pid, _: &ExitCause) {
        self.note(&self.told);
    }
}

/// Starts a process that steps until a message ends it, and counts its steps.
fn ticker(rt: &Rt<'_>, steps: &Arc<AtomicUsize>) -> Pid {
    let steps = Arc::clone(steps);
    let process = process_fn(move |_, events, out| {
        // Ordering: Relaxed: a count, on a single thread.
        steps.fetch_add(1, Ordering::Relaxed);
        if events.next().is_some() {
            out.done(());
        } else {
            out.step_again();
        }
        Ok(())
    });
    rt.spawn(process).unwrap().pid()
}

/// Returns the most notes between two steps of other processes.
fn longest_run(list: &[usize]) -> usize {
    list.chunk_by(|one, other| one == other)
        .map(<[_]>::len)
        .max()
        .unwrap_or(0)
}

// pins: P12
#[test]
fn an_end_with_many_actions_lets_others_step_between_portions() {
    Sim::new(7).workers(1).must_free().run(|rt| {
        let target = puppet(rt);
        let steps = Arc::<AtomicUsize>::default();
        let (released, told) = <(Arc<Mutex<Vec<_>>>, Arc<Mutex<Vec<_>>>)>::default();
        for _ in 0..MANY {
            let action = Box::new(Notes {
                steps: Arc::clone(&steps),
                released: Arc::clone(&released),
                told: Arc::clone(&told),
            });
            rt.add_exit_action(target.pid(), action).unwrap();
        }
        rt.settle();
        let ticker = ticker(rt, &steps);
        target.tell(|_, out| {
            out.done(());
            Ok(())
        });
        assert!(rt.wait(target.handle).is_done());
        rt.cancel(ticker, "over").unwrap();
        for list in [&released, &told] {
            let list = list.lock().unwrap();
            assert_eq!(list.len(), MANY);
            assert!(list.is_sorted());
            assert!(longest_run(&list) <= PORTION, "{}", longest_run(&list));
        }
        assert!(released.lock().unwrap().last() <= told.lock().unwrap().first());
    });
}

// pins: L4, L6
#[test]
fn the_end_of_a_process_with_many_links_tells_each_peer_once() {
    Sim::new(7).workers(2).must_free().run(|rt| {
        let (hub, one) = (puppet(rt), puppet(rt));
        let peers: Vec<_> = (0..MANY).map(|_| puppet(rt)).collect();
        let pids: Vec<_> = peers.iter().map(Strings::pid).collect();
        let its = one.pid();
        hub.tell(move |ctx, _| {
            for pid in pids {
                ctx.link(pid)?;
            }
            Ok(ctx.link(its)?)
        });
        one.tell(|ctx, _| {
            ctx.trap_exits(1);
            Ok(())
        });
        rt.settle();
        let pid = hub.pid();
        hub.tell(|_, _| Err("boom".into()));
        assert_eq!(rt.wait(hub.handle).to_string(), "failed: boom");
        for peer in peers {
            assert_eq!(rt.wait(peer.handle).to_string(), "failed: boom");
        }
        rt.settle();
        assert_eq!(one.told(), [(pid, 1, failed("boom"))]);
    });
}

/// Leaves the notices of the trapping process until the process has all.
// pins: L2, L6
#[test]
fn notices_that_are_left_stay_in_order() {
    Sim::new(7).workers(1).must_free().run(|rt| {
        let told = Arc::<Mutex<Vec<u64>>>::default();
        let notes = Arc::clone(&told);
        let targets: Vec<_> = (0..MANY).map(|_| puppet(rt)).collect();
        let pids: Vec<_> = targets.iter().map(Strings::pid).collect();
        let mut is_first = true;
        let watcher = rt
            .spawn(process_fn(move |ctx, events, out| {
                if std::mem::take(&mut is_first) {
                    for (number, pid) in (0..).zip(&pids) {
                        ctx.watch(*pid, number, Lane::Overtaking)?;
                    }
                }
                if events.len() == MANY {
                    let tags = events.filter_map(|it| match it {
                        Event::Exit(notice) => Some(notice.tag),
                        _ => None,
                    });
                    notes.lock().unwrap().extend(tags);
                    out.done(());
                }
                Ok(())
            }))
            .unwrap();
        rt.settle();
        for target in targets {
            target.tell(|_, out| {
                out.done(());
                Ok(())
            });
            rt.settle();
        }
        assert!(rt.wait(watcher).is_done());
        assert!(told.lock().unwrap().iter().copied().eq(0..MANY as u64));
    });
}

/// Counts the turns of all processes from the failure of a process with `peers` linked peers on.
fn turns_of_a_mass_exit(peers: usize) -> u64 {
    let turns = AtomicUsize::new(0);
    Sim::new(7).workers(1).must_free().run(|rt| {
        let hub = puppet(rt);
        let linked: Vec<_> = (0..peers).map(|_| puppet(rt)).collect();
        let pids: Vec<_> = linked.iter().map(Strings::pid).collect();
        hub.tell(move |ctx, _| Ok(pids.iter().try_for_each(|pid| ctx.link(*pid))?));
        rt.settle();
        let before = rt.stats().total.turns;
        hub.tell(|_, _| Err("boom".into()));
        rt.settle();
        assert_eq!(rt.stats().live, 0);
        let after = rt.stats().total.turns - before;
        // Ordering: Relaxed: a count, on a single thread.
        turns.store(usize::try_from(after).unwrap(), Ordering::Relaxed);
    });
    turns.into_inner() as u64
}

// pins: L4
#[test]
fn a_mass_exit_takes_each_process_a_turn_or_two() {
    for peers in [PORTION, 4 * PORTION, 16 * PORTION] {
        let turns = turns_of_a_mass_exit(peers);
        // A turn for each peer, and the turns of the hub.
        let least = peers as u64 + 1;
        let portions = (peers / PORTION) as u64 + 2;
        assert!(
            (least..=least + portions).contains(&turns),
            "{peers} peers: {turns}"
        );
    }
}
