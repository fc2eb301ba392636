//! Profiles of programs with known functions.

pub(crate) mod pprof;
mod schema;

use ganger_observe::{Observer, Profile, ProfileError};
use ganger_proc_api::{Context, Events, Process, StepOutput, StepResult, process_fn};
use ganger_sched::{Builder, Observe, Scheduler, StepLooksRefused};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// Enough for shares within wide bounds in nearly all runs.
const ENOUGH: u64 = 300;

const SECOND: Duration = Duration::from_secs(1);

fn builder() -> Builder {
    Scheduler::builder().workers(1).profiles(true)
}

// The same work by different code: no compiler merges the functions.

#[inline(never)]
fn grind(rounds: u64) {
    for round in 0..rounds {
        black_box(round.wrapping_mul(3) ^ 5);
    }
}

#[inline(never)]
fn sift(rounds: u64) {
    for round in 0..rounds {
        black_box(round.wrapping_mul(7) ^ 9);
    }
}

#[inline(never)]
fn knead(rounds: u64) {
    for round in 0..rounds {
        black_box(round.wrapping_mul(11) ^ 13);
    }
}

/// Grinds for three parts of a step, and sifts for a part.
struct Miller(u64);

impl Process for Miller {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        grind(3 * self.0);
        sift(self.0);
        out.step_again();
        Ok(())
    }
}

/// Kneads for four parts of a step.
struct Baker(u64);

impl Process for Baker {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        knead(4 * self.0);
        out.step_again();
        Ok(())
    }
}

/// Lines of folded stacks, by their numbers of samples.
fn folded(profile: &Profile) -> BTreeMap<String, u64> {
    let text = profile.folded();
    let line = |line: &str| {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        (stack.to_owned(), count.parse().unwrap())
    };
    text.lines().map(line).collect()
}

/// Counts the samples whose stacks have all of these parts.
fn with(profile: &Profile, parts: &[&str]) -> u64 {
    let has_all = |stack: &str| parts.iter().all(|part| stack.contains(part));
    let lines = folded(profile).into_iter();
    lines
        .filter_map(|(stack, count)| has_all(&stack).then_some(count))
        .sum()
}

/// Profiles until a profile has enough samples: a busy machine gives the threads little time.
fn enough(scheduler: &Scheduler) -> Profile {
    let mut time = SECOND;
    loop {
        let profile = Observer::of(scheduler).profile(time, 499).unwrap();
        if profile.samples() >= ENOUGH {
            return profile;
        }
        time = (2 * time).min(8 * SECOND);
    }
}

#[track_caller]
fn assert_share(part: u64, whole: u64, least: u64, most: u64) {
    let percent = 100 * part / whole.max(1);
    assert!(
        (least..=most).contains(&percent),
        "{part} of {whole} are {percent} %, and not {least} to {most} %"
    );
}

/// Profiles two processes on the same worker, with steps of `rounds` rounds.
fn mill_and_bakery(rounds: u64) {
    let scheduler = builder().observe(Observe::Counts).start().unwrap();
    let spawner = scheduler.spawner().labelled("tenant;7");
    spawner.submit(Miller(rounds), "mill", ()).unwrap();
    scheduler.submit(Baker(rounds), "bake", ()).unwrap();
    let profile = enough(&scheduler);
    let all = profile.samples();
    // Line tables name an optimised function without its type, where it has inlined calls.
    let step = |name| {
        if cfg!(debug_assertions) {
            name
        } else {
            "step;"
        }
    };
    let miller = &["::Miller;mill;tenant,7;", step("Miller as ")][..];
    let baker = &["::Baker;bake;", step("Baker as ")][..];
    let of = |who: &[&str], function| with(&profile, &[who, &[function]].concat());
    // Three parts, a part, and four parts.
    assert_share(of(miller, "grind"), all, 22, 52);
    assert_share(of(miller, "sift"), all, 4, 25);
    assert_share(of(baker, "knead"), all, 33, 67);
    // No process has the functions of the other.
    assert_eq!(of(miller, "knead") + of(baker, "grind"), 0);
    // The scheduler's own frames are left out.
    for outside in ["ganger_sched::worker", "clone", "tenant;7"] {
        assert_eq!(with(&profile, &[outside]), 0, "{outside}");
    }
    assert!(profile.asked() >= all);
    assert_eq!(profile.hz(), 499);
    pprof::check(&profile);
}

// pins: V14
#[test]
fn functions_have_their_shares_below_the_processes_that_call_them() {
    mill_and_bakery(100_000);
}

/// Profiles steps with an end before a question comes: the signal's handler names the step found.
// pins: V14
#[test]
fn short_steps_have_their_shares_as_well() {
    mill_and_bakery(500);
}

// pins: V14
#[test]
fn idle_workers_are_not_asked() {
    let scheduler = builder().workers(3).start().unwrap();
    let ends = process_fn(|_, _, out| {
        out.done(());
        Ok(())
    });
    let _ended = scheduler.spawn(ends).unwrap().wait();
    while scheduler.stats().sleeping < 3 {
        thread::yield_now();
    }
    let profile = Observer::of(&scheduler).profile(SECOND / 4, 99).unwrap();
    assert_eq!((profile.asked(), profile.samples()), (0, 0));
    assert_eq!(profile.folded(), "");
    assert!(profile.lasted() >= SECOND / 4);
    pprof::check(&profile);
}

#[inline(never)]
fn waits_on_purpose(released: &mpsc::Receiver<()>) {
    // The wait ends with the drop of the sender.
    let _released = released.recv();
    black_box(());
}

/// Keeps all workers in a step that waits until the result is dropped.
pub(crate) fn stuck(scheduler: &Scheduler) -> Vec<mpsc::Sender<()>> {
    let workers = scheduler.stats().workers;
    let (releases, begun): (Vec<_>, Vec<_>) = (0..workers)
        .map(|_| {
            let (release, released) = mpsc::channel();
            let (begins, begun) = mpsc::channel();
            let waits = process_fn(move |_, _, out| {
                begins.send(()).unwrap();
                waits_on_purpose(&released);
                out.done(());
                Ok(())
            });
            scheduler.spawn(waits).unwrap();
            (release, begun)
        })
        .unzip();
    begun.into_iter().for_each(|it| it.recv().unwrap());
    releases
}

// pins: V14
#[test]
fn steps_that_are_stuck_on_all_workers_are_seen() {
    let scheduler = builder().workers(2).max_spares(0).start().unwrap();
    let releases = stuck(&scheduler);
    let profile = enough(&scheduler);
    assert_share(
        with(&profile, &["waits_on_purpose"]),
        profile.samples(),
        90,
        100,
    );
    drop(releases);
}

// pins: V14
#[test]
fn one_profile_of_a_scheduler_is_made_at_a_time() {
    let scheduler = builder().start().unwrap();
    let other = builder().start().unwrap();
    let observer = Observer::of(&scheduler);
    let looks = scheduler.step_looks().unwrap();
    let refused = observer.profile(SECOND, 99).unwrap_err();
    assert_eq!(refused, ProfileError::Refused(StepLooksRefused::Busy));
    assert!(refused.to_string().contains("try again"), "{refused}");
    // A refusal leaves the right with its owner.
    assert_eq!(observer.profile(SECOND, 99).unwrap_err(), refused);
    // Another scheduler is another matter.
    assert!(Observer::of(&other).profile(SECOND / 100, 99).is_ok());
    drop(looks);
    assert!(observer.profile(SECOND / 100, 99).is_ok());
}

// pins: V14
#[test]
fn without_the_builder_and_at_a_wrong_rate_there_is_none() {
    let reports = Scheduler::builder().long_step_backtraces(true);
    for builder in [Scheduler::builder(), reports] {
        let scheduler = builder.build().unwrap();
        let refused = Observer::of(&scheduler).profile(SECOND, 99).unwrap_err();
        assert_eq!(refused, ProfileError::Refused(StepLooksRefused::NotAllowed));
        assert!(
            refused.to_string().contains("`Builder::profiles`"),
            "{refused}"
        );
    }
    let scheduler = builder().build().unwrap();
    for hz in [0, 1_001, u32::MAX] {
        let refused = Observer::of(&scheduler).profile(SECOND, hz).unwrap_err();
        assert_eq!(refused, ProfileError::Rate(hz));
    }
}

/// Threads come and go, steps are reported with backtraces, and the scheduler stops.
// pins: V14, G6
#[test]
fn spares_reports_and_a_stop_do_not_disturb_a_profile() {
    let scheduler = builder()
        .workers(2)
        .keep_spares(Duration::ZERO)
        .long_step_backtraces(true)
        .report_interval(Duration::ZERO)
        .quiet_failures()
        .start()
        .unwrap();
    let is_over = Arc::<AtomicBool>::default();
    for _ in 0..4 {
        let is_over = Arc::clone(&is_over);
        let sleeps = process_fn(move |_, _, out| {
            thread::sleep(Duration::from_millis(20));
            // Ordering: SeqCst: a test.
            if is_over.load(Ordering::SeqCst) {
                out.done(());
            } else {
                out.step_again();
            }
            Ok(())
        });
        scheduler.spawn(sleeps).unwrap();
    }
    let observer = Observer::of(&scheduler);
    let has_backtrace = || {
        let steps = scheduler.long_steps();
        steps.iter().any(|it| it.backtrace.is_some())
    };
    let mut samples = 0;
    while samples == 0 || !has_backtrace() {
        let profile = observer.profile(SECOND / 5, 1_000).unwrap();
        samples += profile.samples();
        pprof::check(&profile);
    }
    thread::scope(|scope| {
        let profile = scope.spawn(|| observer.profile(SECOND, 1_000).unwrap());
        // Ordering: SeqCst: a test.
        is_over.store(true, Ordering::SeqCst);
        scheduler.stop(10 * SECOND).unwrap();
        pprof::check(&profile.join().unwrap());
    });
    // No thread is left.
    let profile = observer.profile(SECOND / 20, 1_000).unwrap();
    assert_eq!((profile.asked(), profile.samples()), (0, 0));
}
