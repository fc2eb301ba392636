//! Links, watches and groups beside a plain model, and links rule by rule.

use crate::support::*;
use ganger_link::{Group, Groups, Lane, LinkContext, LinkSpawner, TargetError, Watch};
use ganger_proc_api::{
    BoxError, Context, Events, ExitCause, ExitReason, Payloads, Pid, Process, StepOutput,
    StepResult, SubmitErrorKind, Tag, process_fn,
};
use ganger_sched::ContextExt;
use ganger_sim::Sim;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Instant;

const TAG: u64 = 77;
const PROCESSES: usize = 6;

#[derive(Debug, Clone, Copy)]
enum Act {
    Link(usize, usize),
    Unlink(usize, usize),
    Trap(usize, bool),
    Done(usize),
    Fail(usize),
    Terminate(usize),
    Exit(usize, usize, bool),
    /// With the lane in order.
    Watch(usize, usize, bool),
    /// The oldest watch of that process.
    EndWatch(usize),
    Join(usize, usize),
    Leave(usize, usize),
}

const GROUPS: [&str; 2] = ["one", "other"];

fn act() -> impl Strategy<Value = Act> {
    let one = || 0..PROCESSES;
    prop_oneof![
        8 => (one(), one()).prop_map(|(a, b)| Act::Link(a, b)),
        2 => (one(), one()).prop_map(|(a, b)| Act::Unlink(a, b)),
        2 => (one(), any::<bool>()).prop_map(|(a, on)| Act::Trap(a, on)),
        1 => one().prop_map(Act::Done),
        1 => one().prop_map(Act::Fail),
        1 => one().prop_map(Act::Terminate),
        1 => (one(), one(), any::<bool>()).prop_map(|(a, b, on)| Act::Exit(a, b, on)),
        4 => (one(), one(), any::<bool>()).prop_map(|(a, b, on)| Act::Watch(a, b, on)),
        1 => one().prop_map(Act::EndWatch),
        4 => (one(), 0..2_usize).prop_map(|(a, group)| Act::Join(a, group)),
        2 => (one(), 0..2_usize).prop_map(|(a, group)| Act::Leave(a, group)),
    ]
}

/// What links, watches and groups are, in plain words.
#[derive(Default)]
struct Model {
    ended: BTreeMap<usize, ExitCause>,
    links: BTreeSet<(usize, usize)>,
    traps: BTreeSet<usize>,
    /// The watcher, the target and the tag of each.
    watches: Vec<(usize, usize, Tag)>,
    /// One entry for each join, in their order.
    groups: [Vec<usize>; 2],
    told: BTreeMap<usize, Vec<(usize, Tag, ExitCause)>>,
    /// The tag of the last watch.
    last: Tag,
}

impl Model {
    fn signal(&mut self, to: usize, from: usize, cause: &ExitCause) {
        if self.ended.contains_key(&to) {
            return;
        }
        if self.traps.contains(&to) {
            self.tell(to, from, TAG, cause);
        } else if !cause.is_done() {
            self.end(to, cause);
        }
    }

    fn tell(&mut self, to: usize, from: usize, tag: Tag, cause: &ExitCause) {
        let told = self.told.entry(to).or_default();
        told.push((from, tag, cause.clone()));
    }

    fn end(&mut self, one: usize, cause: &ExitCause) {
        if self.ended.contains_key(&one) {
            return;
        }
        self.ended.insert(one, cause.clone());
        for group in &mut self.groups {
            group.retain(|it| *it != one);
        }
        for (watcher, target, tag) in self.watches.clone() {
            if target == one {
                self.tell(watcher, one, tag, cause);
            }
        }
        self.watches.retain(|it| it.0 != one && it.1 != one);
        let links = self.links.clone();
        let peers = links
            .iter()
            .filter_map(|&(a, b)| (a == one).then_some(b).or_else(|| (b == one).then_some(a)));
        self.links.retain(|&(a, b)| a != one && b != one);
        for peer in peers {
            self.signal(peer, one, cause);
        }
    }

    fn play(&mut self, act: Act) {
        let pair = |a: usize, b: usize| (a.min(b), a.max(b));
        match act {
            Act::Link(a, b) if a != b && !self.ended.contains_key(&a) => {
                if self.ended.contains_key(&b) {
                    self.signal(a, b, &ExitCause::NotFound);
                } else {
                    self.links.insert(pair(a, b));
                }
            }
            Act::Unlink(a, b) if !self.ended.contains_key(&a) => {
                self.links.remove(&pair(a, b));
            }
            Act::Trap(a, true) => _ = self.traps.insert(a),
            Act::Trap(a, false) => _ = self.traps.remove(&a),
            Act::Done(a) => self.end(a, &ExitCause::Done),
            Act::Fail(a) => self.end(a, &failed("boom")),
            Act::Terminate(a) => self.end(a, &ExitCause::Terminated),
            Act::Exit(a, b, is_done) if !self.ended.contains_key(&a) => {
                let cause = if is_done {
                    ExitCause::Done
                } else {
                    failed("asked")
                };
                self.signal(b, a, &cause);
            }
            Act::Watch(a, b, _) if !self.ended.contains_key(&a) => {
                self.last += 1;
                if self.ended.contains_key(&b) {
                    self.tell(a, b, self.last, &ExitCause::NotFound);
                } else if a != b {
                    self.watches.push((a, b, self.last));
                }
            }
            Act::EndWatch(a) => {
                if let Some(at) = self.watches.iter().position(|it| it.0 == a) {
                    self.watches.remove(at);
                }
            }
            Act::Join(a, group) if !self.ended.contains_key(&a) => self.groups[group].push(a),
            Act::Leave(a, group) => {
                if let Some(at) = self.groups[group].iter().rposition(|it| *it == a) {
                    self.groups[group].remove(at);
                }
            }
            _ => {}
        }
    }
}

/// The watches of each process that have not been ended, in the order of their begin.
type Watches = Arc<Mutex<[Vec<Watch>; PROCESSES]>>;

/// Has the process with that number do it. The tag is the next watch's.
fn have(act: Act, all: &[Strings], pids: &[Pid], watches: &Watches, tag: Tag) {
    let (pids, watches) = (pids.to_vec(), Arc::clone(watches));
    match act {
        Act::Watch(a, b, in_order) => {
            let lane = match in_order {
                true => Lane::InOrder,
                false => Lane::Overtaking,
            };
            _ = all[a].tell(move |ctx, _| {
                let watch = ctx.watch(pids[b], tag, lane)?;
                watches.lock().unwrap()[a].push(watch);
                Ok(())
            });
        }
        Act::EndWatch(a) => {
            _ = all[a].tell(move |_, _| {
                let mut watches = watches.lock().unwrap();
                if !watches[a].is_empty() {
                    watches[a].remove(0).end();
                }
                Ok(())
            });
        }
        Act::Join(a, group) => {
            _ = all[a].tell(move |ctx, _| {
                let own = ctx.untyped_address().ok_or("no scheduler")?;
                Ok(group_of(ctx, group).join(&own)?)
            });
        }
        Act::Leave(a, group) => {
            _ = all[a].tell(move |ctx, _| {
                group_of(ctx, group).leave(ctx.pid());
                Ok(())
            });
        }
        Act::Link(a, b) => _ = all[a].tell(move |ctx, _| Ok(ctx.link(pids[b])?)),
        Act::Unlink(a, b) => _ = all[a].tell(move |ctx, _| Ok(ctx.unlink(pids[b])?)),
        Act::Trap(a, true) => {
            _ = all[a].tell(|ctx, _| {
                ctx.trap_exits(TAG);
                Ok(())
            });
        }
        Act::Trap(a, false) => {
            _ = all[a].tell(|ctx, _| {
                ctx.end_trap();
                Ok(())
            });
        }
        Act::Done(a) => {
            _ = all[a].tell(|_, out| {
                out.done(());
                Ok(())
            });
        }
        Act::Fail(a) => _ = all[a].tell(|_, _| Err("boom".into())),
        Act::Terminate(a) => _ = all[a].tell(|ctx, _| Ok(ctx.terminate(ctx.pid())?)),
        Act::Exit(a, b, is_done) => {
            let cause = if is_done {
                ExitCause::Done
            } else {
                failed("asked")
            };
            _ = all[a].tell(move |ctx, _| {
                let _ended = ctx.exit(pids[b], cause);
                Ok(())
            });
        }
    }
}

fn group_of(ctx: &Context, group: usize) -> Group {
    Groups::of(&ctx.scheduler().unwrap(), "model").group(GROUPS[group])
}

fn cause_of(reason: &ExitReason) -> ExitCause {
    ExitCause::of(reason, |error| error.to_string().into())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    // pins: L2, L3, L4, L5, L6, N3
    #[test]
    fn links_are_those_of_the_model(
        seed in any::<u64>(),
        acts in proptest::collection::vec(act(), 0..40),
    ) {
        Sim::new(seed).workers(2).must_free().run(|rt| {
            let all: Vec<_> = (0..PROCESSES).map(|_| puppet(rt)).collect();
            let pids: Vec<_> = all.iter().map(Strings::pid).collect();
            let (mut model, watches) = (Model::default(), Watches::default());
            let groups = Groups::of(rt, "model");
            for &act in &acts {
                have(act, &all, &pids, &watches, model.last + 1);
                rt.settle();
                model.play(act);
                // A watch that has told is over.
                let is_on = |it: &Watch| model.watches.iter().any(|on| on.2 == it.tag());
                watches.lock().unwrap().iter_mut().for_each(|it| it.retain(is_on));
                for (name, members) in GROUPS.iter().zip(&model.groups) {
                    let members: Vec<_> = members.iter().map(|it| pids[*it]).collect();
                    assert_eq!(groups.group(name).members(), members, "{act:?}");
                }
                for (number, one) in all.iter().enumerate() {
                    let has_ended = model.ended.contains_key(&number);
                    assert_eq!(one.handle.is_finished(), has_ended, "{act:?}: {number}");
                    let told = model.told.remove(&number).unwrap_or_default();
                    let told = told.into_iter().map(|it| (pids[it.0], it.1, it.2));
                    let (mut seen, mut expected) = (one.told(), told.collect::<Vec<_>>());
                    if has_ended {
                        // It may have been told before it has ended, also of others that end by
                        // the same act, whose order is open.
                        let is_true = |it: &(Pid, Tag, ExitCause)| {
                            let of = pids.iter().position(|pid| *pid == it.0);
                            of.and_then(|of| model.ended.get(&of)) == Some(&it.2)
                        };
                        let is_told = |it: &_| expected.contains(it) || is_true(it);
                        assert!(seen.iter().all(is_told), "{act:?}: {number}");
                        continue;
                    }
                    seen.sort_by_key(|it| (it.0, it.1));
                    expected.sort_by_key(|it| (it.0, it.1));
                    assert_eq!(seen, expected, "{act:?}: {number}");
                }
            }
            for (number, one) in all.into_iter().enumerate() {
                if let Some(cause) = model.ended.get(&number) {
                    assert_eq!(cause_of(&rt.wait(one.handle)), *cause);
                }
            }
        });
    }
}

/// Its `init` fails or panics.
struct Fails(bool);

impl Process for Fails {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        assert_eq!(ctx.links().len(), 1);
        assert!(!self.0, "on purpose: init");
        Err("no init".into())
    }

    fn step(&mut self, _: &Context, _: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
        Ok(())
    }
}

// pins: L1, L4
#[test]
fn a_child_is_linked_from_its_first_moment_on_however_soon_it_ends() {
    let scheduler = start(2);
    for _ in 0..100 {
        let parent = puppet(&scheduler);
        parent.tell(|ctx, _| {
            ctx.linked()
                .spawn(process_fn(|_, _, _| Err("soon".into())))?;
            Ok(())
        });
        let reason = exit(parent.handle);
        assert!(
            matches!(&reason, ExitReason::Exited(it) if *it == failed("soon")),
            "{reason}"
        );
    }
}

// pins: L4
#[test]
fn a_child_that_is_linked_to_the_dead_takes_its_parent_along() {
    let scheduler = start(1);
    let parent = puppet(&scheduler);
    parent.tell(|ctx, _| {
        let nobody = Pid::new(ctx.pid().host(), 4_000_000_000);
        let child = process_fn(move |ctx, _, _| Ok(ctx.link(nobody)?));
        ctx.linked().spawn(child)?;
        Ok(())
    });
    let reason = exit(parent.handle);
    assert!(
        matches!(reason, ExitReason::Exited(ExitCause::NotFound)),
        "{reason}"
    );
}

// pins: L1
#[test]
fn a_child_whose_init_fails_is_an_error_and_no_signal() {
    let scheduler = start(1);
    let parent = puppet(&scheduler);
    parent.have(|ctx, _| {
        ctx.trap_exits(TAG);
        for panics in [false, true] {
            let spawner = ctx.linked().linked();
            let spawner = spawner.watched(1, ganger_link::Lane::InOrder);
            let error = spawner.spawn(Fails(panics)).unwrap_err();
            let is_panic = matches!(error.kind, SubmitErrorKind::InitPanicked(_));
            assert_eq!(is_panic, panics);
            assert_eq!(ctx.links(), []);
        }
        Ok(())
    });
    // Two more steps, so that anything that was sent has come.
    parent.have(|_, out| {
        out.go_on();
        Ok(())
    });
    parent.have(|_, _| Ok(()));
    assert_eq!(parent.told(), []);
    assert_eq!(scheduler.stats().live, 1);
}

// pins: L6
#[test]
fn a_link_to_the_dead_is_a_signal_and_kill_can_not_be_trapped() {
    let scheduler = start(1);
    let (one, other, gone) = (puppet(&scheduler), puppet(&scheduler), puppet(&scheduler));
    let dead = gone.pid();
    scheduler.terminate(dead).unwrap();
    exit(gone.handle);
    other.have(move |ctx, _| {
        ctx.trap_exits(TAG);
        ctx.link(dead)?;
        ctx.link(dead)?;
        ctx.unlink(dead)?;
        ctx.link(dead)?;
        Ok(())
    });
    let its_pid = other.pid();
    one.have(move |ctx, _| {
        ctx.link(its_pid)?;
        ctx.link(its_pid)?;
        assert_eq!(ctx.links(), [its_pid]);
        assert!(matches!(
            ctx.link("nobody"),
            Err(TargetError::NoSuchName(_))
        ));
        let elsewhere: Pid = "{elsewhere|1}".parse().unwrap();
        assert!(matches!(
            ctx.link(elsewhere),
            Err(TargetError::Elsewhere(_))
        ));
        Ok(())
    });
    other.have(|_, _| Ok(()));
    assert_eq!(other.told(), [(dead, TAG, ExitCause::NotFound)]);
    // It traps exits, and is terminated all the same. Its peer ends with the same cause.
    scheduler.terminate(its_pid).unwrap();
    assert!(matches!(exit(other.handle), ExitReason::Terminated));
    let reason = exit(one.handle);
    assert!(
        matches!(reason, ExitReason::Exited(ExitCause::Terminated)),
        "{reason}"
    );
    let detached = Context::detached(dead);
    assert_eq!(detached.link(dead), Err(TargetError::Detached));
    assert!(detached.exit(dead, ExitCause::Done).is_err());
    assert!(detached.linked().spawn(Fails(false)).is_err());
    assert!(detached.scheduler().is_none());
}

// pins: L5
#[test]
fn after_an_unlink_in_a_step_a_notice_that_waits_is_not_shown() {
    let scheduler = start(1);
    let (one, other) = (puppet(&scheduler), puppet(&scheduler));
    let its_pid = other.pid();
    one.have(move |ctx, _| {
        ctx.trap_exits(TAG);
        Ok(ctx.link(its_pid)?)
    });
    // Its step goes on until the other one has ended, and then unlinks.
    let scheduler_handle = scheduler.handle();
    one.have(move |ctx, _| {
        let handle = scheduler_handle;
        handle.terminate(its_pid)?;
        let begin = std::time::Instant::now();
        while handle.address(its_pid).is_some() && begin.elapsed() < PATIENCE {
            ctx.blocking(std::thread::yield_now);
        }
        Ok(ctx.unlink(its_pid)?)
    });
    one.have(|_, out| {
        out.go_on();
        Ok(())
    });
    one.have(|_, _| Ok(()));
    assert_eq!(one.told(), []);
    assert!(matches!(exit(other.handle), ExitReason::Terminated));
}

// pins: L4
#[test]
fn many_that_are_linked_end_together() {
    const MANY: usize = 20_000;
    let scheduler = start(2);
    let parent = puppet(&scheduler);
    parent.have(|ctx, _| {
        for _ in 0..MANY {
            ctx.linked().spawn(process_fn(|_, _, _| Ok(())))?;
        }
        assert_eq!(ctx.links().len(), MANY);
        Ok(())
    });
    let pid = parent.pid();
    let last = puppet(&scheduler);
    last.have(move |ctx, _| Ok(ctx.link(pid)?));
    parent.tell(|_, _| Err("boom".into()));
    assert!(matches!(exit(last.handle), ExitReason::Exited(it) if it == failed("boom")));
    let begin = std::time::Instant::now();
    while scheduler.stats().live > 0 {
        assert!(begin.elapsed() < PATIENCE);
        std::thread::yield_now();
    }
}

// pins: P12
#[test]
fn a_child_that_ends_by_a_link_to_the_dead_has_been_started_and_is_told_of() {
    let scheduler = start(2);
    let gone = scheduler.spawn(process_fn(|_, _, out| {
        out.done(());
        Ok(())
    }));
    let gone = gone.unwrap();
    let dead = gone.pid();
    exit(gone);
    let parent = puppet(&scheduler);
    parent.have(move |ctx, _| {
        ctx.trap_exits(1);
        let spawner = ctx.linked().watched(2, Lane::Overtaking).monitored(3);
        spawner.spawn(process_fn(move |ctx, _, _| Ok(ctx.link(dead)?)))?;
        Ok(())
    });
    let begin = Instant::now();
    let mut told = Vec::new();
    while told.len() < 3 && begin.elapsed() < PATIENCE {
        parent.have(|_, _| Ok(()));
        told.extend(parent.told());
    }
    let mut told: Vec<_> = told.into_iter().map(|it| (it.1, it.2)).collect();
    told.sort_unstable_by_key(|it| it.0);
    assert_eq!(told, [1, 2, 3].map(|tag| (tag, ExitCause::NotFound)));
}

#[test]
fn an_unlink_withdraws_each_notice_of_a_peer_that_was_linked_to_anew() {
    let scheduler = start(1);
    let gone = scheduler.spawn(process_fn(|_, _, out| {
        out.done(());
        Ok(())
    }));
    let gone = gone.unwrap();
    let dead = gone.pid();
    exit(gone);
    let told = scheduler.spawn(process_fn({
        let mut step = 0;
        move |ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput| {
            step += 1;
            match step {
                1 => ctx.trap_exits(1),
                // The notice of the first one is left.
                2 | 3 => ctx.link(dead)?,
                4 => {
                    assert_eq!(events.len(), 2);
                    ctx.unlink(dead)?;
                    assert!(events.next().is_none());
                    out.done(());
                    return Ok(());
                }
                _ => return Err("too many steps".into()),
            }
            out.go_on();
            Ok(())
        }
    }));
    assert!(exit(told.unwrap()).is_done());
}
