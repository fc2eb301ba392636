//! Runs with programs that fail in silence, and with programs that report an error.

use super::*;
use crate::driver::lines::Point;
use crate::whole::catalog::Id;
use crate::whole::job::Size;
use std::time::Duration;

/// Answers by a function, and keeps its questions.
struct Fake<F> {
    answer: F,
    asked: Vec<(Peer, Option<u64>)>,
    /// The mode of each.
    modes: Vec<Mode>,
    lacks: Option<Mode>,
}

impl<F: FnMut(&Job, usize) -> Ending> Fake<F> {
    fn new(answer: F) -> Self {
        Self {
            answer,
            asked: Vec::new(),
            modes: Vec::new(),
            lacks: None,
        }
    }
}

impl<F: FnMut(&Job, usize) -> Ending> Runner for Fake<F> {
    fn prepare(&mut self, mode: Mode) -> Result<(), String> {
        if self.lacks == Some(mode) {
            return Err("not on this system".to_owned());
        }
        self.modes.push(mode);
        Ok(())
    }

    fn run(&mut self, job: &Job) -> Ending {
        self.asked.push((job.peer, job.processes));
        (self.answer)(job, self.asked.len())
    }

    fn refusal(&self, peer: Peer) -> Option<(Reason, String)> {
        (peer == Peer::Go).then(|| (Reason::NotInstalled, "no go".to_owned()))
    }

    fn memory(&self) -> Option<u64> {
        Some(1_000_000)
    }
}

fn contest(id: Id, peers: &[Peer], reps: usize) -> Contest {
    Contest {
        id,
        point: Point::of(2, Mode::AsIs),
        peers: peers.to_vec(),
        reps,
        size: Size::Quick,
    }
}

fn measured(job: &Job, values: &[(&str, f64)]) -> Ending {
    let sample = |&(variant, value): &(&str, f64)| Sample::new(job, variant, value);
    Ending::Measured(values.iter().map(sample).collect())
}

#[test]
fn repetitions_are_paired_and_whoever_fails_drops_out() {
    let plan = [contest(
        Id::W1,
        &[Peer::Ganger, Peer::Tokio, Peer::Ractor, Peer::Go],
        3,
    )];
    let mut runner = Fake::new(|job: &Job, nth: usize| match job.peer {
        Peer::Ganger => measured(job, &[("time", nth as f64)]),
        Peer::Tokio => measured(job, &[("time", 2.0 * (nth - 1) as f64)]),
        _ => Ending::TimedOut(Duration::from_secs(9)),
    });
    let (figures, absences) = measure(&plan, &mut runner, &Stop::default());
    let asked: Vec<_> = runner.asked.iter().map(|(peer, _)| peer.name()).collect();
    let expected = [
        "ganger", "tokio", "ractor", "ganger", "tokio", "ganger", "tokio",
    ];
    assert_eq!(asked, expected);
    let [ganger, tokio] = &figures[..] else {
        panic!("{figures:?}");
    };
    assert_eq!(ganger.values, [Some(1.0), Some(4.0), Some(6.0)]);
    assert_eq!((ganger.min, ganger.median, ganger.reps), (1.0, 4.0, 3));
    assert_eq!(
        (ganger.ratio_to_ganger, tokio.ratio_to_ganger),
        (None, Some(2.0))
    );
    let reasons: Vec<_> = absences.iter().map(|a| (a.peer, a.reason)).collect();
    let expected = [
        (Peer::Go, Reason::NotInstalled),
        (Peer::Ractor, Reason::Timeout),
    ];
    assert!(reasons.iter().all(|reason| expected.contains(reason)));
    assert_eq!(reasons.len(), 2);
}

#[test]
fn figures_of_two_modes_are_no_pairs() {
    let as_is = contest(Id::W1, &[Peer::Ganger, Peer::Tokio], 2);
    let mut loops = as_is.clone();
    loops.point.mode = Mode::Loops;
    let plan = [as_is, loops];
    let answer = |job: &Job, nth| match (job.peer, nth) {
        (Peer::Ganger, ..=4) => measured(job, &[("time", 1.0)]),
        (Peer::Ganger, _) => measured(job, &[("time", 10.0)]),
        _ => measured(job, &[("time", 20.0)]),
    };
    let mut runner = Fake::new(answer);
    let (figures, _) = measure(&plan, &mut runner, &Stop::default());
    let modes = [[Mode::AsIs; 4], [Mode::Loops; 4]].concat();
    assert_eq!(runner.modes, modes, "one after the other");
    let ratios: Vec<_> = figures
        .iter()
        .filter_map(|figure| Some((figure.point.mode, figure.ratio_to_ganger?)))
        .collect();
    assert_eq!(ratios, [(Mode::AsIs, 20.0), (Mode::Loops, 2.0)]);

    let mut runner = Fake::new(answer);
    runner.lacks = Some(Mode::Loops);
    let (figures, absences) = measure(&plan, &mut runner, &Stop::default());
    assert!(figures.iter().all(|figure| figure.point.mode == Mode::AsIs));
    assert_eq!((figures.len(), absences.len()), (2, 2));
    for absence in absences {
        assert_eq!(
            (absence.point.mode, absence.reason),
            (Mode::Loops, Reason::NoMode)
        );
        assert_eq!(absence.why, "not on this system");
    }
}

#[test]
fn what_would_not_fit_into_memory_is_left_out() {
    let mut more = contest(Id::W8, &[Peer::Ganger, Peer::Tokio], 1);
    more.point.processes = Some(1_000);
    let plan = [contest(Id::W8, &[Peer::Ganger, Peer::Tokio], 1), more];
    let mut runner = Fake::new(|job: &Job, _| {
        let bytes = if job.peer == Peer::Tokio {
            1_200.0
        } else {
            300.0
        };
        measured(job, &[("rss", bytes), ("spawn", 1.0), ("wake", 1.0)])
    });
    let (figures, absences) = measure(&plan, &mut runner, &Stop::default());
    assert_eq!(runner.asked.last(), Some(&(Peer::Ganger, Some(1_000))));
    assert_eq!(figures.len(), 6 + 3);
    assert_eq!(absences[0].reason, Reason::Memory);
    assert!(
        absences[0].why.contains("1000 processes would need"),
        "{absences:?}"
    );
}

#[test]
fn a_run_of_queues_has_all_peers_and_repetitions() {
    let plan = [contest(Id::Deque, &[Peer::Ganger, Peer::St3], 2)];
    let mut runner = Fake::new(|job: &Job, _| {
        let mut samples = Vec::new();
        for (rep, peer) in [
            (1.0, Peer::Ganger),
            (4.0, Peer::St3),
            (1.0, Peer::CrossbeamDeque),
        ]
        .into_iter()
        .cycle()
        .take(6)
        {
            let mut like = Job::new(Id::W1, peer, job.workers, job.size);
            like.rounds = Some(1);
            let mut sample = Sample::new(&like, "time", rep);
            sample.workload = Id::Deque;
            sample.variant = "push and pop".to_owned();
            samples.push(sample);
        }
        Ending::Measured(samples)
    });
    let (figures, _) = measure(&plan, &mut runner, &Stop::default());
    let who: Vec<_> = figures
        .iter()
        .map(|figure| (figure.peer, figure.reps))
        .collect();
    assert_eq!(
        who,
        [(Peer::Ganger, 2), (Peer::St3, 2)],
        "the other was not asked for"
    );
    assert_eq!(figures[1].ratio_to_ganger, Some(4.0));
}

#[test]
fn what_is_there_stays_when_somebody_stops() {
    let plan = [
        contest(Id::W1, &[Peer::Ganger, Peer::Tokio], 2),
        contest(Id::W2, &[Peer::Ganger], 1),
    ];
    let stop = Stop::default();
    let at_third = stop.clone();
    let mut runner = Fake::new(move |job: &Job, nth| {
        if nth == 3 {
            at_third.now();
            return Ending::Stopped;
        }
        measured(job, &[("time", 5.0)])
    });
    let (figures, absences) = measure(&plan, &mut runner, &stop);
    assert_eq!(runner.asked.len(), 3);
    assert_eq!((figures.len(), absences.len()), (2, 0));
}
