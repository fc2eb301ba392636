//! Random plays with children that are slow. The specification of supervisors is in
//! `ganger-model`.

use super::*;
use proptest::prelude::{ProptestConfig, any, prop, prop_oneof, proptest};
use proptest::strategy::{Just, Strategy as Values};

/// An event of a supervisor.
#[derive(Debug, Clone, Copy)]
enum Happens {
    Ends(usize, Ended),
    Stop(usize, bool),
    Restart(usize),
    Wait(u16),
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

fn child(kind: u8) -> Rules {
    let restart = [Restart::Permanent, Restart::Transient, Restart::Temporary][usize::from(kind)];
    Rules {
        restart,
        back_off: Some(BackOff::from(SECOND / 10)),
        ..PERMANENT
    }
}

/// Plays with children that end when it pleases them: the rules of order hold at each act.
fn play_with_slow_children(strategy: Strategy, most: u32, children: &[Rules], all: &[Happens]) {
    let window = Arc::new(Mutex::new(Window::new(most, 5 * SECOND)));
    let mut plan = Plan::new(strategy, AutoShutdown::Never, window, 7);
    let mut now = Instant::from_nanos(1);
    let mut ids: Vec<_> = children.iter().map(|it| plan.add(*it, now)).collect();
    // Whether it runs, and has been asked to end.
    let mut alive: BTreeMap<ChildId, bool> = BTreeMap::new();
    // By when they have last been asked to.
    let mut asked: BTreeMap<ChildId, Instant> = BTreeMap::new();
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
                    let before = asked.insert(id, by);
                    match alive.insert(id, true) {
                        Some(true) => assert!(before.is_some_and(|before| by <= before)),
                        was_asked => assert_eq!(was_asked, Some(false)),
                    }
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
                    _ = plan.restart_child(*id, now);
                }
            }
            Happens::Wait(millis) => now = now.after(Duration::from_millis(millis.into())),
            Happens::Add(kind) if !plan.is_stopping() => {
                ids.push(plan.add(child(kind), now));
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
    while plan.due() < Instant::NEVER {
        now = plan.due();
        go_on(&mut plan, now, &mut alive);
    }
    assert!(verdict.is_some() && now <= by.after(SECOND), "{alive:?}");
    let starts_most = children.len() + all.len() * (children.len() + all.len() + 1);
    assert!(starts <= starts_most);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    // pins: S1, S4, S5
    #[test]
    fn the_order_holds_with_children_that_are_slow(
        strategy in strategies(),
        most in 0..20_u32,
        kinds in prop::collection::vec(0..3_u8, 0..6),
        all in prop::collection::vec(happens(), 0..60),
    ) {
        let children: Vec<_> = kinds.iter().map(|kind| child(*kind)).collect();
        play_with_slow_children(strategy, most, &children, &all);
    }
}
