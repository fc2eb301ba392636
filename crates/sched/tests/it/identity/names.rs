//! Names of processes.

use crate::support::*;
use ganger_proc_api::{
    BoxError, Context, Event, Events, ExitReason, Payloads, Pid, Process, RegisterNameErrorKind,
    StepOutput, StepResult, SubmitErrorKind, UpgradeRequest,
};
use ganger_sched::{ProcessHandle, ProcessState, Scheduler};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

fn names(scheduler: &Scheduler) -> Vec<(String, Pid)> {
    let names = scheduler.names().into_iter();
    names.map(|(name, pid)| (name.into(), pid)).collect()
}

// pins: P11
#[test]
fn a_name_is_one_process_s_until_it_ends_or_loses_it() {
    let scheduler = start(2);
    let [first, second] = [(); 2].map(|()| scheduler.submit(waiter(), "main", ()).unwrap());
    let (one, other) = (first.pid(), second.pid());
    assert_eq!(scheduler.whereis("a"), None);
    scheduler.register_name("a", one).unwrap();
    scheduler.register_name("b", one).unwrap();
    // The same again changes nothing.
    scheduler.register_name("a", one).unwrap();
    let refused = scheduler.register_name("a", other).unwrap_err();
    let taken = RegisterNameErrorKind::Taken { holder: one };
    assert_eq!(
        (&*refused.name, refused.pid, refused.kind),
        ("a", other, taken)
    );
    scheduler
        .upgrade(one, UpgradeRequest::process(waiter(), "main", ()))
        .unwrap();
    until("it is upgraded", || scheduler.stats().total.upgrades == 1);
    assert_eq!(scheduler.whereis("a"), Some(one));
    assert_eq!(scheduler.unregister_name("a"), Some(one));
    assert_eq!(scheduler.unregister_name("a"), None);
    scheduler.register_name("a", other).unwrap();
    scheduler.terminate(one).unwrap();
    exit(first);
    assert_eq!(names(&scheduler), [("a".to_owned(), other)]);
    let refused = scheduler.register_name("b", one).unwrap_err();
    assert_eq!(refused.kind, RegisterNameErrorKind::NotFound);
    assert!(refused.to_string().contains(&one.to_string()));
    assert_eq!(scheduler.whereis("b"), None);
    scheduler.register_name("b", other).unwrap();
    scheduler.terminate(other).unwrap();
    exit(second);
    assert_eq!(names(&scheduler), []);
}

/// Checks that repeated calls tell the process once: otherwise each call would cost a turn, and a
/// node in a mailbox beyond any limit.
// pins: P13
#[test]
fn who_asks_for_a_taken_name_again_and_again_has_its_process_told_once() {
    let scheduler = start(1);
    let [first, second] = [(); 2].map(|()| scheduler.submit(waiter(), "main", ()).unwrap());
    scheduler.register_name("leader", first.pid()).unwrap();
    let turns = || {
        until_state(&scheduler, second.pid(), ProcessState::Idle);
        scheduler.stats().total.turns
    };
    let before = turns();
    for _ in 0..1_000 {
        let refused = scheduler.register_name("leader", second.pid());
        assert!(refused.is_err());
        until_state(&scheduler, second.pid(), ProcessState::Idle);
    }
    assert!(turns() <= before + 2, "{} turns", turns() - before);
    for handle in [first, second] {
        scheduler.terminate(handle.pid()).unwrap();
        exit(handle);
    }
    assert_eq!(names(&scheduler), []);
}

/// Takes a name in `init`, and may fail then.
struct Named {
    name: &'static str,
    fails: bool,
}

impl Process for Named {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        ctx.register_name(self.name)?;
        // The same again changes nothing.
        ctx.register_name(self.name)?;
        assert_eq!(ctx.whereis(self.name), Some(ctx.pid()));
        if self.fails {
            return Err("on purpose".into());
        }
        Ok(())
    }

    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if events.any(|event| matches!(event, Event::Cancel(_))) {
            out.done(());
        }
        Ok(())
    }
}

// pins: P1
#[test]
fn a_process_that_takes_a_name_has_it_when_it_is_visible_and_not_when_it_fails() {
    let scheduler = start(1);
    let submit = |fails| scheduler.submit(Named { name: "n", fails }, "main", ());
    for _ in 0..3 {
        let refused = submit(true).unwrap_err();
        assert!(matches!(refused.kind, SubmitErrorKind::InitFailed(_)));
        assert_eq!(names(&scheduler), []);
    }
    let handle = submit(false).unwrap();
    assert_eq!(scheduler.whereis("n"), Some(handle.pid()));
    assert!(submit(false).is_err(), "the name is taken");
    assert_eq!(scheduler.whereis("n"), Some(handle.pid()));
    scheduler.cancel(handle.pid(), "enough").unwrap();
    exit(handle);
    assert_eq!(names(&scheduler), []);
    let detached = Context::detached("{main|7}".parse().unwrap());
    assert!(detached.register_name("n").is_err() && detached.whereis("n").is_none());
}

// pins: P12
#[test]
fn who_is_told_of_an_end_finds_the_name_free() {
    const ROUNDS: u64 = 300;
    let scheduler = start(2);
    let mut started = 0;
    let heir = process(move |ctx, events, out| {
        let exits = events
            .filter(|event| matches!(event, Event::Exit(_)))
            .count();
        if started > 0 && exits == 0 {
            return Ok(());
        }
        assert_eq!(ctx.whereis("child"), None);
        if started == ROUNDS {
            out.done(started);
            return Ok(());
        }
        started += 1;
        let name = "child";
        let child = ctx.submit(Named { name, fails: false }, "main", ())?;
        ctx.monitor(child, started)?;
        Ok(ctx.cancel(child, "at once")?)
    });
    assert_eq!(
        exit_number(scheduler.submit(heir, "main", ()).unwrap()),
        ROUNDS
    );
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Clone, Copy, Debug)]
enum Act {
    Submit,
    Register(usize, usize),
    Unregister(usize),
    End(usize),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        2 => Just(Act::Submit),
        8 => (0..NAMES.len(), 0..8_usize).prop_map(|(name, who)| Act::Register(name, who)),
        3 => (0..NAMES.len()).prop_map(Act::Unregister),
        2 => (0..8_usize).prop_map(Act::End),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // pins: P12
    #[test]
    fn names_are_those_of_a_map(acts in proptest::collection::vec(act(), 0..80)) {
        let scheduler = start(1);
        let mut handles: Vec<ProcessHandle> = Vec::new();
        let mut model: BTreeMap<&str, Pid> = BTreeMap::new();
        for act in acts {
            match act {
                Act::Submit => handles.push(scheduler.submit(waiter(), "main", ()).unwrap()),
                Act::Register(name, who) if !handles.is_empty() => {
                    let (name, pid) = (NAMES[name], handles[who % handles.len()].pid());
                    let given = scheduler.register_name(name, pid).map_err(|it| it.kind);
                    let expected = match model.get(name) {
                        Some(&holder) if holder == pid => Ok(()),
                        Some(&holder) => Err(RegisterNameErrorKind::Taken { holder }),
                        None => {
                            model.insert(name, pid);
                            Ok(())
                        }
                    };
                    prop_assert_eq!(given, expected);
                }
                Act::Unregister(name) => {
                    let taken = scheduler.unregister_name(NAMES[name]);
                    prop_assert_eq!(taken, model.remove(NAMES[name]));
                }
                Act::End(who) if !handles.is_empty() => {
                    let handle = handles.swap_remove(who % handles.len());
                    let pid = handle.pid();
                    scheduler.terminate(pid).unwrap();
                    prop_assert!(matches!(exit(handle), ExitReason::Terminated));
                    model.retain(|_, holder| *holder != pid);
                }
                Act::Register(..) | Act::End(_) => {}
            }
            let expected = model.iter().map(|(&name, &pid)| (name.to_owned(), pid));
            prop_assert_eq!(names(&scheduler), expected.collect::<Vec<_>>());
            for name in NAMES {
                prop_assert_eq!(scheduler.whereis(name), model.get(name).copied());
            }
        }
    }
}

/// Checks that no name is left when threads give names to ending processes, and take them away.
#[test]
fn no_name_outlives_its_process_whoever_gives_it_meanwhile() {
    const ROUNDS: usize = 400;
    let scheduler = start(2);
    let given = AtomicUsize::new(0);
    for _ in 0..ROUNDS {
        let handle = scheduler.submit(waiter(), "main", ()).unwrap();
        let (pid, barrier) = (handle.pid(), Barrier::new(3));
        thread::scope(|scope| {
            for thread in 0..2 {
                let (barrier, given, scheduler) = (&barrier, &given, &scheduler);
                scope.spawn(move || {
                    barrier.wait();
                    for name in NAMES {
                        if scheduler.register_name(name, pid).is_ok() {
                            // Ordering: Relaxed: a count, read when the threads have ended.
                            given.fetch_add(1, Ordering::Relaxed);
                        }
                        if thread == 0 {
                            let _whose = scheduler.unregister_name(name);
                        }
                    }
                });
            }
            barrier.wait();
            scheduler.terminate(pid).unwrap();
        });
        exit(handle);
        assert_eq!(names(&scheduler), []);
    }
    // Ordering: Relaxed: a count, read when the threads have ended.
    assert_ne!(given.load(Ordering::Relaxed), 0);
}

/// Checks that the end frees a name, whichever came last, when a thread takes the name away while
/// another gives it back.
#[test]
fn a_name_that_is_taken_away_and_given_again_goes_with_its_process() {
    let scheduler = start(1);
    for _ in 0..100 {
        let handle = scheduler.submit(waiter(), "main", ()).unwrap();
        let pid = handle.pid();
        scheduler.register_name("a", pid).unwrap();
        thread::scope(|scope| {
            let taker = scope.spawn(|| assert_eq!(scheduler.unregister_name("a"), Some(pid)));
            while !taker.is_finished() {
                scheduler.register_name("a", pid).unwrap();
                thread::yield_now();
            }
            scheduler.register_name("a", pid).unwrap();
        });
        assert_eq!(scheduler.whereis("a"), Some(pid));
        scheduler.terminate(pid).unwrap();
        exit(handle);
        assert_eq!(names(&scheduler), []);
    }
}

/// Checks a context that outlives its process, whose PID another process has by now: it gives no
/// name, and takes none away.
#[test]
fn who_has_ended_does_not_touch_the_names_of_its_successor() {
    const ROUNDS: usize = 2_000;
    let scheduler = start(1);
    let pid = Pid::new(scheduler.host_name(), 7);
    let old = context_of_the_dead(&scheduler, pid);
    let _second = scheduler.submit_as(pid, waiter(), "main", ()).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // Ordering: Relaxed: nothing is read on the strength of this load.
            while !is_over.load(Ordering::Relaxed) {
                assert!(old.register_name("a").is_err());
            }
        });
        for _ in 0..ROUNDS {
            assert_eq!(scheduler.whereis("a"), None);
            scheduler.register_name("a", pid).unwrap();
            assert_eq!(scheduler.whereis("a"), Some(pid));
            assert_eq!(scheduler.unregister_name("a"), Some(pid));
        }
        // Ordering: Relaxed: nothing is read on the strength of this store.
        is_over.store(true, Ordering::Relaxed);
    });
}
