//! Single cases.

mod random;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A plan, its time, and children that obey it.
struct Play {
    plan: Plan,
    now: Instant,
    /// The acts: `+3` a start, `-3` a cancellation, `!3` a termination, `~3` forgotten.
    log: Vec<String>,
    ids: Vec<ChildId>,
    /// These end when they are asked to; the others when they are terminated.
    obey: bool,
    /// These can't be started.
    broken: Vec<ChildId>,
    verdict: Option<Verdict>,
}

impl Play {
    fn new(strategy: Strategy, most: u32, children: &[Rules]) -> Self {
        Self::with(strategy, AutoShutdown::Never, most, children)
    }

    fn with(strategy: Strategy, auto: AutoShutdown, most: u32, children: &[Rules]) -> Self {
        let window = Arc::new(Mutex::new(Window::new(most, 5 * SECOND)));
        let mut play = Self {
            plan: Plan::new(strategy, auto, window, 7),
            now: Instant::from_nanos(1),
            log: Vec::new(),
            ids: Vec::new(),
            obey: true,
            broken: Vec::new(),
            verdict: None,
        };
        for rules in children {
            let id = play.plan.add(*rules, play.now);
            play.ids.push(id);
        }
        play.settle();
        play.plan.run();
        play
    }

    fn settle(&mut self) {
        while let Some(act) = self.plan.next(self.now) {
            match act {
                Act::Start(id) if self.broken.contains(&id) => {
                    self.log.push(format!("?{}", id.0));
                    self.plan.not_started(id, self.now);
                }
                Act::Start(id) => {
                    self.log.push(format!("+{}", id.0));
                    self.plan.started(id, self.now);
                }
                Act::Cancel(id, _) => {
                    self.log.push(format!("-{}", id.0));
                    if self.obey {
                        self.plan.ended(id, Ended::Asked, self.now);
                    }
                }
                Act::Terminate(id) => {
                    self.log.push(format!("!{}", id.0));
                    self.plan.ended(id, Ended::Failed, self.now);
                }
                Act::Forget(id) => self.log.push(format!("~{}", id.0)),
                Act::End(verdict) => {
                    assert_eq!(self.verdict.replace(verdict), None);
                    self.log.push("end".into());
                }
            }
        }
    }

    fn ends(&mut self, child: usize, how: Ended) -> &mut Self {
        self.plan.ended(self.ids[child], how, self.now);
        self.settle();
        self
    }

    fn wait(&mut self, time: Duration) -> &mut Self {
        self.now = self.now.after(time);
        self.settle();
        self
    }

    /// Takes the list of acts since the last call.
    fn said(&mut self) -> String {
        std::mem::take(&mut self.log).join(" ")
    }

    fn runs(&self, child: usize) -> bool {
        self.plan.state(self.ids[child]) == Some(State::Runs)
    }
}

fn rules(restart: Restart) -> Rules {
    Rules {
        restart,
        ..Rules::default()
    }
}

const PERMANENT: Rules = Rules {
    restart: Restart::Permanent,
    stop: ShutdownTimeout::Within(SECOND),
    back_off: None,
    significant: false,
};

// pins: S1
#[test]
fn each_strategy_restarts_its_group_backwards_and_then_forwards() {
    let cases = [
        (Strategy::OneForOne, "+1"),
        (Strategy::Dynamic, "+1"),
        (Strategy::OneForAll, "-3 -2 -0 +0 +1 +2 +3"),
        (Strategy::RestForOne, "-3 -2 +1 +2 +3"),
    ];
    for (strategy, expected) in cases {
        let mut play = Play::new(strategy, 3, &[PERMANENT; 4]);
        assert_eq!(play.said(), "+0 +1 +2 +3");
        assert_eq!(play.ends(1, Ended::Failed).said(), expected, "{strategy:?}");
    }
}

// pins: S1
#[test]
fn a_member_of_a_group_that_ends_slowly_is_waited_for_and_then_terminated() {
    let mut play = Play::new(Strategy::OneForAll, 3, &[PERMANENT; 3]);
    play.obey = false;
    play.said();
    assert_eq!(play.ends(0, Ended::Failed).said(), "-2");
    assert_eq!(play.wait(SECOND / 2).said(), "");
    assert_eq!(play.wait(SECOND / 2).said(), "!2 -1");
    assert_eq!(play.wait(SECOND).said(), "!1 +0 +1 +2");
}

// pins: S2
#[test]
fn who_is_restarted_depends_on_how_it_has_ended() {
    use Ended::{Asked, Done, Failed};
    for (restart, how, expected) in [
        (Restart::Permanent, Done, "+0"),
        (Restart::Permanent, Failed, "+0"),
        (Restart::Permanent, Asked, ""),
        (Restart::Transient, Done, ""),
        (Restart::Transient, Failed, "+0"),
        (Restart::Transient, Asked, ""),
        (Restart::Temporary, Failed, "~0"),
        (Restart::Temporary, Done, "~0"),
    ] {
        let mut play = Play::new(Strategy::OneForOne, 3, &[rules(restart)]);
        play.said();
        assert_eq!(play.ends(0, how).said(), expected, "{restart:?} {how:?}");
    }
}

// pins: S2
#[test]
fn a_temporary_child_is_not_restarted_for_the_death_of_a_sibling() {
    let children = [PERMANENT, rules(Restart::Temporary), PERMANENT];
    let mut play = Play::new(Strategy::OneForAll, 3, &children);
    play.said();
    assert_eq!(play.ends(0, Ended::Failed).said(), "-2 -1 ~1 +0 +2");
}

// pins: S3
#[test]
fn more_than_so_many_restarts_in_the_window_end_all_children_and_then_the_supervisor() {
    let mut play = Play::new(Strategy::OneForOne, 2, &[PERMANENT; 2]);
    play.said();
    assert_eq!(play.ends(0, Ended::Failed).said(), "+0");
    assert_eq!(play.ends(0, Ended::Failed).said(), "+0");
    assert_eq!(play.ends(0, Ended::Failed).said(), "-1 end");
    assert_eq!(play.verdict, Some(Verdict::GaveUp(play.ids[0])));
}

// pins: S3
#[test]
fn the_window_slides_and_none_is_permitted_with_zero() {
    let mut play = Play::new(Strategy::OneForOne, 1, &[PERMANENT]);
    for _ in 0..10 {
        play.wait(5 * SECOND + Duration::from_nanos(1));
        play.ends(0, Ended::Failed);
        assert!(play.runs(0));
    }
    assert!(!play.wait(5 * SECOND).ends(0, Ended::Failed).runs(0));
    let mut play = Play::new(Strategy::OneForOne, 0, &[PERMANENT]);
    assert_eq!(play.ends(0, Ended::Failed).said(), "+0 end");
}

// pins: S3
#[test]
fn a_group_restart_counts_once() {
    let mut play = Play::new(Strategy::OneForAll, 1, &[PERMANENT; 5]);
    play.obey = false;
    play.ends(4, Ended::Failed);
    // While they are asked to go, some fail by themselves.
    play.ends(0, Ended::Failed).ends(3, Ended::Failed);
    play.ends(2, Ended::Failed).ends(1, Ended::Failed);
    assert!((0..5).all(|child| play.runs(child)));
    assert_eq!(play.verdict, None);
}

// pins: S3
#[test]
fn a_failed_restart_counts_and_is_tried_again() {
    let mut play = Play::new(Strategy::OneForOne, 3, &[PERMANENT]);
    play.said();
    play.broken = play.ids.clone();
    assert_eq!(play.ends(0, Ended::Failed).said(), "?0 ?0 ?0 end");
    assert_eq!(play.verdict, Some(Verdict::GaveUp(play.ids[0])));
    let mut play = Play::new(Strategy::RestForOne, 3, &[PERMANENT; 3]);
    play.said();
    play.broken = vec![play.ids[1]];
    assert_eq!(
        play.ends(0, Ended::Failed).said(),
        "-2 -1 +0 ?1 ?1 ?1 -0 end"
    );
}

// pins: S4
#[test]
fn children_start_in_order_and_one_that_does_not_ends_those_before_it_backwards() {
    let window = Arc::new(Mutex::new(Window::new(3, 5 * SECOND)));
    let mut play = Play::new(Strategy::OneForOne, 3, &[]);
    play.plan = Plan::new(Strategy::OneForOne, AutoShutdown::Never, window, 7);
    play.ids = (0..4).map(|_| play.plan.add(PERMANENT, play.now)).collect();
    play.broken = vec![play.ids[2]];
    play.settle();
    assert_eq!(play.said(), "+0 +1 ?2 -1 -0 end");
    assert_eq!(play.verdict, Some(Verdict::NotStarted(play.ids[2])));
}

// pins: S5
#[test]
fn each_child_has_its_own_time_to_stop() {
    let children = [
        ShutdownTimeout::AtOnce,
        ShutdownTimeout::Within(SECOND),
        ShutdownTimeout::Unlimited,
    ]
    .map(|stop| Rules { stop, ..PERMANENT });
    let mut play = Play::new(Strategy::OneForOne, 3, &children);
    play.obey = false;
    play.said();
    play.plan.stop(Verdict::Stopped, Instant::NEVER);
    play.settle();
    assert_eq!(play.said(), "-2");
    assert_eq!(play.wait(1_000 * SECOND).said(), "");
    assert_eq!(play.ends(2, Ended::Asked).said(), "-1");
    assert_eq!(play.wait(SECOND).said(), "!1 !0 end");
}

// pins: S5
#[test]
fn a_stop_with_an_end_shares_the_time_that_is_left() {
    let unlimited = Rules {
        stop: ShutdownTimeout::Unlimited,
        ..PERMANENT
    };
    let mut play = Play::new(Strategy::OneForOne, 3, &[unlimited; 4]);
    play.obey = false;
    play.said();
    let by = play.now.after(8 * SECOND);
    play.plan.stop(Verdict::Stopped, by);
    play.settle();
    assert_eq!(play.wait(5 * SECOND).said(), "-3");
    assert_eq!(play.wait(SECOND / 2).said(), "!3 -2");
    assert_eq!(play.ends(2, Ended::Asked).said(), "-1");
    assert_eq!(play.wait(SECOND).said(), "");
    assert_eq!(play.wait(SECOND).said(), "!1 -0");
    assert_eq!(play.plan.due(), by, "the last one has all that is left");
    assert_eq!(play.wait(SECOND).said(), "!0 end");
}

// pins: S5, S11
#[test]
fn a_stop_that_gets_an_end_asks_again_with_less_time() {
    let mut play = Play::new(Strategy::OneForOne, 3, &[PERMANENT; 3]);
    play.obey = false;
    play.said();
    play.plan.stop(Verdict::Stopped, Instant::NEVER);
    play.settle();
    assert_eq!(play.said(), "-2");
    let due = play.plan.due();
    // More time than the child has by itself.
    play.plan.must_stop_by(due.after(9 * SECOND));
    play.settle();
    assert_eq!((play.said().as_str(), play.plan.due()), ("-2", due));
    play.plan.must_stop_by(play.now.after(SECOND * 9 / 10));
    play.settle();
    assert_eq!(play.said(), "-2");
    assert_eq!(play.wait(SECOND * 6 / 10).said(), "!2 -1");
    play.plan.must_stop_by(play.now.after(2 * SECOND));
    play.settle();
    assert_eq!(play.said(), "", "the earliest moment counts");
    assert_eq!(play.wait(SECOND * 3 / 10).said(), "!1 -0 !0 end");
}

// pins: S6
#[test]
fn dynamic_children_stop_all_at_once_and_are_forgotten() {
    let mut play = Play::new(Strategy::Dynamic, 3, &[PERMANENT; 3]);
    play.obey = false;
    play.said();
    assert_eq!(play.ends(1, Ended::Asked).said(), "~1");
    play.plan.stop(Verdict::Stopped, Instant::NEVER);
    play.settle();
    assert_eq!(play.said(), "-2 -0");
    assert_eq!(play.wait(SECOND).said(), "!0 !2 end");
}

// pins: S6
#[test]
fn a_child_that_is_stopped_stays_stopped_until_it_is_asked_for() {
    let mut play = Play::new(Strategy::OneForAll, 0, &[PERMANENT; 3]);
    play.said();
    assert!(play.plan.stop_child(play.ids[1], false));
    play.settle();
    assert_eq!(play.said(), "-1");
    assert!(!play.plan.stop_child(play.ids[1], false));
    assert!(play.plan.restart_child(play.ids[1], play.now));
    play.settle();
    assert_eq!(play.said(), "+1");
    assert!(play.plan.restart_child(play.ids[0], play.now));
    play.settle();
    assert_eq!((play.said().as_str(), play.verdict), ("-0 +0", None));
    play.plan.stop_child(play.ids[0], true);
    play.settle();
    assert_eq!(play.said(), "-0 ~0");
}

// pins: S7
#[test]
fn waits_grow_and_begin_anew_when_the_child_was_stable() {
    let back_off = BackOff::from(SECOND).jitter(0.0).longest(8 * SECOND);
    let child = Rules {
        back_off: Some(back_off.stable_after(10 * SECOND)),
        ..PERMANENT
    };
    let mut play = Play::new(Strategy::OneForOne, 100, &[child]);
    for seconds in [1, 2, 4, 8, 8] {
        play.ends(0, Ended::Failed);
        assert_eq!(play.plan.due(), play.now.after(seconds * SECOND));
        play.wait(seconds * SECOND - Duration::from_nanos(1));
        assert!(!play.runs(0));
        play.wait(Duration::from_nanos(1));
        assert!(play.runs(0));
    }
    play.wait(10 * SECOND).ends(0, Ended::Failed);
    assert_eq!(play.plan.due(), play.now.after(SECOND));
    // Waits for failing starts do not count as running time of the child.
    play.broken = play.ids.clone();
    for seconds in [1, 2, 4, 8, 8, 8] {
        assert_eq!(play.plan.due(), play.now.after(seconds * SECOND));
        play.wait(seconds * SECOND);
    }
}

// pins: S7
#[test]
fn the_jitter_is_within_its_bounds_and_is_no_constant() {
    let back_off = BackOff::from(SECOND).jitter(0.25);
    let child = Rules {
        back_off: Some(back_off.factor(1.0)),
        ..PERMANENT
    };
    let mut play = Play::new(Strategy::OneForOne, 100, &[child]);
    let mut waits = BTreeSet::new();
    for _ in 0..50 {
        play.ends(0, Ended::Failed);
        let wait = play.plan.due().since(play.now);
        assert!(wait >= SECOND * 3 / 4 && wait <= SECOND * 5 / 4, "{wait:?}");
        waits.insert(wait);
        play.wait(wait);
    }
    assert!(waits.len() > 40);
}

// pins: S8
#[test]
fn a_supervisor_ends_with_its_significant_children_that_end_by_themselves() {
    let significant = Rules {
        significant: true,
        ..rules(Restart::Transient)
    };
    let children = [significant, significant, PERMANENT];
    let mut any = Play::with(Strategy::OneForOne, AutoShutdown::Any, 3, &children);
    any.said();
    assert_eq!(any.ends(0, Ended::Failed).said(), "+0");
    any.plan.stop_child(any.ids[0], false);
    any.settle();
    assert_eq!(any.said(), "-0");
    assert_eq!(any.ends(1, Ended::Done).said(), "-2 end");
    assert_eq!(any.verdict, Some(Verdict::Finished));

    let mut all = Play::with(Strategy::OneForOne, AutoShutdown::All, 3, &children);
    all.said();
    assert_eq!(all.ends(1, Ended::Done).said(), "");
    assert!(all.plan.restart_child(all.ids[1], all.now));
    all.settle();
    assert_eq!(all.said(), "+1");
    assert_eq!(all.ends(0, Ended::Done).said(), "");
    assert_eq!(all.ends(1, Ended::Done).said(), "-2 end");
}
