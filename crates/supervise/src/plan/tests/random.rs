//! Random plays: against a plain model, and with children that are slow.

use super::*;
use proptest::prelude::{ProptestConfig, any, prop, prop_oneof, proptest};
use proptest::strategy::{Just, Strategy as Values};
use std::collections::HashMap;

/// What happens to a supervisor.
#[derive(Debug, Clone, Copy)]
enum Happens {
    Ends(usize, Ended),
    Stop(usize, bool),
    Restart(usize),
    Wait(u16),
    Breaks(usize),
    Mends,
    Add(u8),
    StopAll,
}

fn happens() -> impl Values<Value = Happens> {
    let how =
        prop_oneof![4 => Just(Ended::Failed), 1 => Just(Ended::Done), 1 => Just(Ended::Asked)];
    prop_oneof![
        12 => (0..8_usize, how).prop_map(|(child, how)| Happens::Ends(child, how)),
        2 => (0..8_usize, any::<bool>()).prop_map(|(child, gone)| Happens::Stop(child, gone)),
        2 => (0..8_usize).prop_map(Happens::Restart),
        6 => (0..4_000_u16).prop_map(Happens::Wait),
        1 => (0..8_usize).prop_map(Happens::Breaks),
        2 => Just(Happens::Mends),
        1 => (0..3_u8).prop_map(Happens::Add),
        1 => Just(Happens::StopAll),
    ]
}

fn strategies() -> impl Values<Value = Strategy> {
    prop_oneof![
        Just(Strategy::OneForOne),
        Just(Strategy::OneForAll),
        Just(Strategy::RestForOne),
        Just(Strategy::Dynamic),
    ]
}

fn child(kind: u8, waits: bool) -> Rules {
    let restart = [Restart::Permanent, Restart::Transient, Restart::Temporary][usize::from(kind)];
    Rules {
        restart,
        back_off: waits.then(|| BackOff::from(SECOND / 10)),
        ..PERMANENT
    }
}

/// For each child whether it is to run when all is quiet, and all failures.
struct Model {
    strategy: Strategy,
    most: usize,
    children: HashMap<usize, (Restart, bool)>,
    failures: Vec<Moment>,
    gone: bool,
}

impl Model {
    fn failed(&mut self, child: usize, now: Moment) {
        self.failures.push(now);
        let recent = |it: &&Moment| now.since(**it) <= 5 * SECOND;
        self.gone |= self.failures.iter().filter(recent).count() > self.most;
        let first = match self.strategy {
            Strategy::OneForAll => 0,
            Strategy::RestForOne => child,
            _ => return,
        };
        if !self.gone {
            let stays = |other: &usize, restart| *other < first || restart != Restart::Temporary;
            self.children.retain(|other, it| stays(other, it.0));
        }
    }

    fn ended(&mut self, child: usize, how: Ended, now: Moment) {
        let restart = self.children[&child].0;
        match (restart, how) {
            (Restart::Permanent, Ended::Done | Ended::Failed)
            | (Restart::Transient, Ended::Failed) => self.failed(child, now),
            _ => self.off(child, false),
        }
    }

    /// The child is not to run.
    fn off(&mut self, child: usize, remove: bool) {
        let Some((restart, wanted)) = self.children.get_mut(&child) else {
            return;
        };
        *wanted = false;
        if remove || *restart == Restart::Temporary || self.strategy == Strategy::Dynamic {
            self.children.remove(&child);
        }
    }

    /// Lets the plan go on, and counts the starts that fail.
    fn follow(&mut self, play: &mut Play) {
        let before = play.log.len();
        play.settle();
        for act in play.log.split_off(before) {
            if let Some(child) = act.strip_prefix('?') {
                self.failed(child.parse().unwrap(), play.now);
            }
        }
    }
}

fn play_against_the_model(strategy: Strategy, most: u32, children: &[Rules], all: &[Happens]) {
    let mut play = Play::new(strategy, most, children);
    let wanted = |(child, rules): (usize, &Rules)| (child, (rules.restart, true));
    let mut model = Model {
        strategy,
        most: most as usize,
        children: children.iter().enumerate().map(wanted).collect(),
        failures: Vec::new(),
        gone: false,
    };
    for it in all {
        // Each happens in a quiet moment, so that the model need not know of half-done groups.
        while play.plan.due() < Moment::NEVER && !model.gone {
            play.now = play.now.max(play.plan.due());
            model.follow(&mut play);
        }
        if model.gone {
            break;
        }
        match *it {
            Happens::Ends(child, how) if matches!(model.children.get(&child), Some((_, true))) => {
                model.ended(child, how, play.now);
                play.plan.ended(play.ids[child], how, play.now);
            }
            Happens::Stop(child, remove) if child < play.ids.len() => {
                model.off(child, remove);
                play.plan.stop_child(play.ids[child], remove);
            }
            Happens::Restart(child) => {
                if let Some((restart, wanted)) = model.children.get_mut(&child)
                    && *restart != Restart::Temporary
                {
                    *wanted = true;
                    play.plan.restart_child(play.ids[child], play.now);
                }
            }
            Happens::Wait(millis) => {
                play.now = play.now.after(Duration::from_millis(u64::from(millis)));
            }
            Happens::Breaks(child) => play.broken.extend(play.ids.get(child)),
            Happens::Mends => play.broken.clear(),
            Happens::Add(kind) => {
                let rules = child(kind, false);
                model.children.insert(play.ids.len(), (rules.restart, true));
                let id = play.plan.add(rules, play.now);
                play.ids.push(id);
            }
            Happens::StopAll => {
                play.plan.stop(Verdict::Stopped, Moment::NEVER);
                model.gone = true;
            }
            _ => {}
        }
        model.follow(&mut play);
        assert_eq!(play.verdict.is_some(), model.gone, "{it:?}");
        if !model.gone && play.plan.due() == Moment::NEVER {
            for (child, id) in play.ids.iter().enumerate() {
                let expected = model.children.get(&child).map(|it| it.1);
                let runs = play.plan.state(*id).map(|it| it == State::Runs);
                assert_eq!(runs, expected, "child {child} after {it:?}");
            }
        }
    }
}

/// Children that end when it pleases them: the rules of order hold at each act.
fn play_with_slow_children(strategy: Strategy, most: u32, children: &[Rules], all: &[Happens]) {
    let window = Arc::new(Mutex::new(Window::new(most, 5 * SECOND)));
    let mut plan = Plan::new(strategy, AutoShutdown::Never, window, 7);
    let mut now = Moment::from_nanos(1);
    let mut ids: Vec<_> = children.iter().map(|it| plan.add(*it, now)).collect();
    // Whether it runs, and has been asked to end.
    let mut alive: BTreeMap<ChildId, bool> = BTreeMap::new();
    let (mut starts, mut verdict) = (0, None);
    let is_group = matches!(strategy, Strategy::OneForAll | Strategy::RestForOne);
    let mut go_on = |plan: &mut Plan, now, alive: &mut BTreeMap<ChildId, bool>| {
        while let Some(act) = plan.next(now) {
            assert_eq!(verdict, None, "{act:?} after the end");
            match act {
                Act::Start(id) => {
                    assert_eq!(alive.insert(id, false), None, "{id:?} runs twice");
                    assert!(!is_group || alive.values().all(|asked| !asked));
                    plan.started(id, now);
                    starts += 1;
                }
                Act::Cancel(id, by) => {
                    assert!(by >= now);
                    if is_group || (plan.is_stopping() && strategy != Strategy::Dynamic) {
                        let later = || alive.range(id..).skip(1).map(|it| *it.1);
                        let is_last = if plan.is_stopping() {
                            later().next().is_none()
                        } else {
                            later().all(|asked| !asked)
                        };
                        assert!(is_last, "{id:?} is asked before later ones have ended");
                    }
                    assert_eq!(alive.insert(id, true), Some(false));
                }
                Act::Terminate(id) => {
                    assert!(alive.remove(&id).is_some());
                    plan.ended(id, Ended::Failed, now);
                }
                Act::Forget(id) => assert!(!alive.contains_key(&id)),
                Act::End(it) => {
                    assert!(alive.is_empty());
                    verdict = Some(it);
                }
            }
        }
    };
    go_on(&mut plan, now, &mut alive);
    plan.run();
    for it in all {
        match *it {
            Happens::Ends(child, how) => {
                if let Some(id) = ids.get(child)
                    && alive.remove(id).is_some()
                {
                    plan.ended(*id, how, now);
                }
            }
            Happens::Stop(child, remove) => {
                if let Some(id) = ids.get(child) {
                    plan.stop_child(*id, remove);
                }
            }
            Happens::Restart(child) => {
                if let Some(id) = ids.get(child) {
                    plan.restart_child(*id, now);
                }
            }
            Happens::Wait(millis) => now = now.after(Duration::from_millis(millis.into())),
            Happens::Add(kind) if !plan.is_stopping() => {
                ids.push(plan.add(child(kind, true), now));
            }
            Happens::StopAll => plan.stop(Verdict::Stopped, now.after(2 * SECOND)),
            _ => {}
        }
        go_on(&mut plan, now, &mut alive);
        let due = plan.due();
        assert!(due > now, "it is due, and nothing is done");
    }
    // Whatever has happened: a stop ends within its time.
    let by = now.after(3 * SECOND);
    plan.stop(Verdict::Stopped, by);
    go_on(&mut plan, now, &mut alive);
    while plan.due() < Moment::NEVER {
        now = plan.due();
        go_on(&mut plan, now, &mut alive);
    }
    assert!(verdict.is_some() && now <= by.after(SECOND), "{alive:?}");
    let starts_most = children.len() + all.len() * (children.len() + all.len() + 1);
    assert!(starts <= starts_most);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    // pins: S1, S2, S3
    #[test]
    fn a_plan_does_what_its_model_says(
        strategy in strategies(),
        most in 0..4_u32,
        kinds in prop::collection::vec(0..3_u8, 0..5),
        waits in any::<bool>(),
        all in prop::collection::vec(happens(), 0..40),
    ) {
        let children: Vec<_> = kinds.iter().map(|kind| child(*kind, waits)).collect();
        play_against_the_model(strategy, most, &children, &all);
    }

    // pins: S1, S4, S5
    #[test]
    fn the_order_holds_with_children_that_are_slow(
        strategy in strategies(),
        most in 0..20_u32,
        kinds in prop::collection::vec(0..3_u8, 0..6),
        all in prop::collection::vec(happens(), 0..60),
    ) {
        let children: Vec<_> = kinds.iter().map(|kind| child(*kind, true)).collect();
        play_with_slow_children(strategy, most, &children, &all);
    }
}
