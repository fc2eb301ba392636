//! Links, watches and groups race with ends in simulations, with faults and stops at any moment.

use crate::support::*;
use ganger_link::{Groups, Lane, LinkContext, LinkSpawner, Watch};
use ganger_proc_api::{
    Context, Event, Events, ExitCause, ExitReason, Pid, Process, StepOutput, StepResult, process_fn,
};
use ganger_sched::{ContextExt, Handle};
use ganger_sim::{Faults, Rt, Sim, Strategy};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// Returns the number of seeds, unless the environment sets it.
fn seeds() -> u64 {
    let seeds = std::env::var("GANGER_SEEDS").ok();
    seeds.and_then(|it| it.parse().ok()).unwrap_or(150)
}

fn sims() -> impl Iterator<Item = Sim> {
    let priorities = Strategy::Priorities {
        changes: 4,
        moves: 400,
    };
    [Strategy::Random, priorities]
        .into_iter()
        .map(|strategy| Sim::new(0).workers(3).strategy(strategy).must_free())
}

// pins: L5
#[test]
fn a_peer_that_has_unlinked_lives_on_whenever_the_other_one_fails() {
    for traps in [false, true] {
        for sim in sims() {
            sim.check_seeds(seeds(), |rt| {
                let (one, other) = (puppet(rt), puppet(rt));
                let its_pid = other.pid();
                one.tell(move |ctx, _| {
                    if traps {
                        ctx.trap_exits(1);
                    }
                    Ok(ctx.link(its_pid)?)
                });
                if rt.choose(2) == 0 {
                    rt.settle();
                }
                other.tell(|_, _| Err("boom".into()));
                let has_unlinked = Arc::new(Mutex::new(None));
                let its = Arc::clone(&has_unlinked);
                let told = Arc::clone(&one.told);
                one.tell(move |ctx, out| {
                    ctx.unlink(its_pid)?;
                    *its.lock().unwrap() = Some(told.lock().unwrap().len());
                    out.step_again();
                    Ok(())
                });
                one.tell(|_, out| {
                    out.step_again();
                    Ok(())
                });
                rt.settle();
                let told = one.told();
                if let Some(before) = *has_unlinked.lock().unwrap() {
                    assert_eq!(told.len(), before, "after the unlink");
                    assert!(!one.handle.is_finished());
                } else {
                    assert!(!traps);
                    let reason = rt.wait(one.handle);
                    // Not found: the other process had ended before the link.
                    assert!(
                        matches!(&reason, ExitReason::Exited(it)
                            if *it == failed("boom") || *it == ExitCause::NotFound),
                        "{reason}"
                    );
                }
            });
        }
    }
}

// pins: L1, L4
#[test]
fn either_end_of_a_link_that_stays_takes_the_other_one_along() {
    for sim in sims() {
        sim.check_seeds(seeds(), |rt| {
            let chain: Vec<_> = (0..4).map(|_| puppet(rt)).collect();
            for pair in chain.windows(2) {
                // Both ends link at a time.
                let [one, other] = [pair[0].pid(), pair[1].pid()];
                pair[0].tell(move |ctx, _| Ok(ctx.link(other)?));
                pair[1].tell(move |ctx, _| Ok(ctx.link(one)?));
            }
            rt.settle();
            for _ in 0..2 {
                let first = rt.choose(4);
                chain[first].tell(|_, _| Err("boom".into()));
            }
            rt.settle();
            for one in chain {
                assert_eq!(rt.wait(one.handle).to_string(), "failed: boom");
            }
        });
    }
}

/// Starts, links, watches, joins, leaves, ends, at random; and notes each notice that must not
/// come.
struct Citizen {
    random: fastrand::Rng,
    others: Arc<Mutex<Vec<Pid>>>,
    watches: BTreeMap<u64, Watch>,
    ended: BTreeSet<u64>,
    steps: u32,
    next: u64,
    generation: u32,
}

const TRAP: u64 = u64::MAX;

impl Citizen {
    fn child(&mut self) -> Self {
        Self {
            random: self.random.fork(),
            others: Arc::clone(&self.others),
            watches: BTreeMap::new(),
            ended: BTreeSet::new(),
            steps: 0,
            next: 0,
            generation: self.generation + 1,
        }
    }

    fn act(&mut self, ctx: &Context) {
        let peer = {
            let others = self.others.lock().unwrap();
            others[self.random.usize(..others.len())]
        };
        let groups = ctx.scheduler().map(|it| Groups::of(&it, "scope"));
        let (Some(groups), Some(own)) = (groups, ctx.untyped_address()) else {
            return;
        };
        self.next += 1;
        let lane = if self.random.bool() {
            Lane::InOrder
        } else {
            Lane::Overtaking
        };
        match self.random.u8(..12) {
            0 | 1 => {
                let _elsewhere = ctx.link(peer);
            }
            2 => {
                ctx.unlink(peer).unwrap();
                assert!(!ctx.links().contains(&peer));
            }
            3 => ctx.trap_exits(TRAP),
            4 => ctx.end_trap(),
            5 | 6 => {
                let watch = ctx.watch(peer, self.next, lane).unwrap();
                self.watches.insert(self.next, watch);
            }
            7 => {
                if let Some((tag, watch)) = self.watches.pop_first() {
                    watch.end();
                    self.ended.insert(tag);
                }
            }
            8 => {
                let _gone = groups.group("all").join(&own);
            }
            9 => _ = groups.group("all").leave(ctx.pid()),
            10 => {
                let _gone = ctx.exit(peer, failed("asked"));
            }
            _ if self.generation < 3 => {
                let spawner = ctx.spawner().watched(self.next, lane);
                let spawner = if self.random.bool() {
                    spawner.linked()
                } else {
                    spawner
                };
                let others = Arc::clone(&self.others);
                if let Ok(child) = spawner.spawn(self.child()) {
                    others.lock().unwrap().push(child.pid());
                }
            }
            _ => {}
        }
    }
}

impl Process for Citizen {
    fn init(
        &mut self,
        ctx: &Context,
        _: &str,
        _: ganger_proc_api::Payloads,
    ) -> Result<(), ganger_proc_api::BoxError> {
        self.others.lock().unwrap().push(ctx.pid());
        self.act(ctx);
        match self.random.u8(..10) {
            0 => Err("no init".into()),
            _ => Ok(()),
        }
    }

    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            match event {
                Event::Exit(notice) if notice.tag != TRAP => {
                    assert!(!self.ended.contains(&notice.tag), "L3: it was taken back");
                }
                Event::Cancel(_) => return Ok(()),
                _ => {}
            }
        }
        self.steps += 1;
        if self.steps > 12 {
            return match self.random.bool() {
                true => Err("enough".into()),
                false => {
                    out.done(());
                    Ok(())
                }
            };
        }
        self.act(ctx);
        out.step_again();
        Ok(())
    }
}

fn crowd(rt: &Rt<'_>, handle: &Handle) {
    let others = Arc::new(Mutex::new(vec![Pid::new(rt.host_name(), 1)]));
    let seed = rt.choose(1 << 16) as u64;
    for number in 0..4 {
        let citizen = Citizen {
            random: fastrand::Rng::with_seed(seed + number),
            others: Arc::clone(&others),
            watches: BTreeMap::new(),
            ended: BTreeSet::new(),
            steps: 0,
            next: 0,
            generation: 0,
        };
        // Its `init` may fail.
        let _handle = handle.spawn(citizen);
    }
    // The last process outlives the citizens, unless it is ended.
    let _last = handle.spawn(process_fn(|_, _, _| Ok(())));
}

// pins: L3, L5, N3
#[test]
fn a_crowd_that_does_all_of_it_keeps_the_promises_and_leaves_nothing_behind() {
    for faults in [Faults::default(), Faults::some()] {
        let sim = Sim::new(0).workers(3).faults(faults).must_free();
        sim.check_seeds(seeds(), |rt| {
            crowd(rt, rt);
            if rt.choose(3) > 0 {
                rt.settle();
                let members = Groups::of(rt, "scope").group("all").members();
                for member in members {
                    assert!(rt.process(member).is_some(), "N3: it has ended");
                }
            } // Otherwise it is stopped in the middle.
        });
    }
}
