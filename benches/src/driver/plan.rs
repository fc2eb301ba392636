//! The runs and their order: workload by workload, and within each all peers in turns, so that
//! other load on the machine hits all of them alike.

use super::lines::Point;
use crate::whole::catalog::{Id, Peer};
use crate::whole::job::{Job, Size};
use ganger_bench_options::mode::Mode;
use ganger_bench_options::options::{Options, cores};

/// A workload at a point, run by all of its peers in turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Contest {
    /// The workload.
    pub(super) id: Id,
    /// With how many workers, processes, producers.
    pub(super) point: Point,
    /// The peers with this workload; Ganger is the first.
    pub(super) peers: Vec<Peer>,
    /// How often each peer runs the workload.
    pub(super) reps: usize,
    /// How much each run does.
    pub(super) size: Size,
}

/// The quantity of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Curve {
    /// Worker threads.
    Workers,
    /// Processes at the same time.
    Processes,
    /// Producers of a single consumer.
    Producers,
}

/// A step of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    /// The repetition, from 0.
    pub(super) rep: usize,
    /// The other load of the machine.
    pub(super) mode: Mode,
    /// The job of this step.
    pub(super) job: Job,
}

/// The number of repetitions at a point of a curve, low because a curve has many points.
const CURVE_REPS: usize = 3;

impl Curve {
    /// All of them.
    pub(super) const ALL: [Self; 3] = [Self::Workers, Self::Processes, Self::Producers];

    /// Returns the workloads of this curve.
    pub(super) fn workloads(self) -> &'static [Id] {
        match self {
            Self::Workers => &[Id::W2, Id::W4b, Id::W6],
            Self::Processes => &[Id::W8],
            Self::Producers => &[Id::W6],
        }
    }

    /// Returns the name of the parameter.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Workers => "workers",
            Self::Processes => "processes",
            Self::Producers => "producers",
        }
    }

    /// Returns the place of a figure of this point on the curve; `None` if it belongs to another
    /// curve, or to none, as with idle loops. The main point is on the curve over workers, and on
    /// the curve over processes if the workload's elements are processes.
    pub(super) fn place(self, id: Id, point: Point, n: u64, workers: usize) -> Option<u64> {
        if point.mode != Mode::AsIs {
            return None;
        }
        let is_own = point.workers == workers;
        match (self, point.processes, point.producers) {
            (Self::Workers, None, None) => u64::try_from(point.workers).ok(),
            (Self::Processes, Some(processes), None) if is_own => Some(processes),
            (Self::Processes, None, None) if is_own && id.spec().of == "processes" => Some(n),
            (Self::Producers, None, Some(producers)) if is_own => Some(producers),
            _ => None,
        }
    }

    /// Returns the point with this number on the curve.
    pub(super) fn point(self, base: Point, count: u64) -> Point {
        let mut point = base;
        match self {
            Self::Workers => point.workers = usize::try_from(count).unwrap_or(usize::MAX),
            Self::Processes => point.processes = Some(count),
            Self::Producers => point.producers = Some(count),
        }
        point
    }

    /// Returns its points in addition to the main point.
    fn points(self, base: Point, size: Size, cores: usize) -> Vec<Point> {
        let counts: Vec<u64> = match (self, size) {
            (Self::Workers, Size::Full) => workers(4 * cores),
            (Self::Workers, Size::Quick) => vec![1, 2],
            // A million is the workload's own number.
            (Self::Processes, Size::Full) => vec![1_000, 10_000, 100_000, 10_000_000],
            (Self::Processes, Size::Quick) => vec![1_000],
            (Self::Producers, Size::Full) => vec![1, 2, 4, 8],
            (Self::Producers, Size::Quick) => vec![1, 2],
        };
        let points = counts.into_iter().map(|count| self.point(base, count));
        points.filter(|point| *point != base).collect()
    }
}

/// Powers of two up to the most, and the most.
fn workers(most: usize) -> Vec<u64> {
    let most = most as u64;
    let powers = (0..).map(|exponent| 1 << exponent);
    let mut counts: Vec<u64> = powers.take_while(|&count| count < most).collect();
    counts.push(most);
    counts
}

/// Returns the contests for the options.
pub(super) fn plan(options: &Options) -> Vec<Contest> {
    plan_on(options, cores())
}

/// Plans as [`plan`] does, on a machine with this number of cores.
fn plan_on(options: &Options, cores: usize) -> Vec<Contest> {
    let size = options.size();
    let base = Point::of(options.workers.map_or(cores, usize::from), Mode::AsIs);
    let is_chosen = |id: &Id| options.only.is_empty() || options.only.contains(id);
    let contest = |id: Id, point, reps| Contest {
        id,
        point,
        peers: peers(id, &options.peers),
        reps,
        size,
    };
    let ids = Id::ALL.iter().copied().filter(is_chosen);
    let main = |id| {
        let points = modes(id, options.modes()).iter();
        let points = points.map(move |&mode| Point { mode, ..base });
        points.map(move |point| contest(id, point, options.reps()))
    };
    let mut contests: Vec<_> = ids.flat_map(main).collect();
    let curves = Curve::ALL.into_iter();
    for curve in curves.filter(|_| options.modes().contains(&Mode::AsIs)) {
        if curve == Curve::Workers && options.workers.is_some() {
            continue;
        }
        let reps = options.reps().min(CURVE_REPS);
        let ids = curve.workloads().iter().copied().filter(is_chosen);
        for id in ids {
            let points = curve.points(base, size, cores);
            contests.extend(points.into_iter().map(|point| contest(id, point, reps)));
        }
    }
    contests
}

/// Returns the modes of a workload's measurements. Queues take long, and their threads are pinned
/// where it matters: they are measured in the first mode.
fn modes(id: Id, modes: &[Mode]) -> &[Mode] {
    if id.is_queue() { &modes[..1] } else { modes }
}

/// Returns the workload's chosen peers, and Ganger.
fn peers(id: Id, chosen: &[Peer]) -> Vec<Peer> {
    let is_chosen =
        |peer: &Peer| chosen.is_empty() || *peer == Peer::Ganger || chosen.contains(peer);
    id.spec().peers.iter().copied().filter(is_chosen).collect()
}

impl Contest {
    /// Returns the job of a peer.
    pub(super) fn job(&self, peer: Peer) -> Job {
        let mut job = Job::new(self.id, peer, self.point.workers, self.size);
        job.processes = self.point.processes;
        job.producers = self.point.producers;
        job
    }

    /// Returns its runs in their order: A B C A B C. A single run of queues has all of its peers
    /// and repetitions.
    pub(super) fn turns(&self) -> Vec<Turn> {
        if self.id.is_queue() {
            let mut job = self.job(Peer::Ganger);
            job.rounds = Some(self.reps as u64);
            let mode = self.point.mode;
            return vec![Turn { rep: 0, mode, job }];
        }
        let reps = 0..self.reps;
        reps.flat_map(|rep| {
            let turn = move |&peer| Turn {
                rep,
                mode: self.point.mode,
                job: self.job(peer),
            };
            self.peers.iter().map(turn)
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn options(args: &str) -> Options {
        let args = ["bench"].into_iter().chain(args.split_whitespace());
        Options::parse_from(args)
    }

    #[test]
    fn peers_take_turns() {
        let options = options("--only W1 --peers tokio,actix --reps 2 --workers 3 --mode as-is");
        let plan = plan_on(&options, 2);
        assert_eq!(plan.len(), 1);
        let turns = plan[0].turns();
        let who: Vec<_> = turns.iter().map(|turn| (turn.rep, turn.job.peer)).collect();
        let round = [Peer::Ganger, Peer::Tokio, Peer::Actix];
        let expected: Vec<_> = [0, 1]
            .into_iter()
            .flat_map(|rep| round.map(|peer| (rep, peer)))
            .collect();
        assert_eq!(who, expected);
        assert!(turns.iter().all(|turn| turn.job.workers == 3));
    }

    #[test]
    fn modes_are_contests_of_their_own_without_curves_and_queues() {
        let of = |args| -> Vec<_> {
            let plan = plan_on(&options(args), 2);
            let say = |contest: &Contest| (contest.id, contest.point.to_string());
            plan.iter().map(say).collect()
        };
        let both = of("--only W6,deque --mode both");
        let (as_is, loops) = (
            "2 workers".to_owned(),
            "2 workers, with idle loops".to_owned(),
        );
        let main = [
            (Id::W6, as_is.clone()),
            (Id::W6, loops.clone()),
            (Id::Deque, as_is),
        ];
        assert_eq!(both[..3], main);
        let usual = of("--only W6,deque --mode as-is");
        assert_eq!(both[3..], usual[2..], "the curves");
        let others = of("--only W6,deque --mode loops");
        assert_eq!(others, [(Id::W6, loops.clone()), (Id::Deque, loops)]);
        for contest in plan_on(&options("--only W6 --mode both"), 2) {
            let mut turns = contest.turns().into_iter();
            assert!(turns.all(|turn| turn.mode == contest.point.mode));
        }
    }

    #[test]
    fn curves_reach_from_one_to_the_most_and_repeat_no_point() {
        let plan = plan_on(&options("--mode as-is"), 2);
        let of = |id, place: fn(Point) -> Option<u64>| -> Vec<u64> {
            let points = plan.iter().filter(|contest| contest.id == id);
            points.filter_map(|contest| place(contest.point)).collect()
        };
        let processes = of(Id::W8, |point| point.processes);
        assert_eq!(processes, [1_000, 10_000, 100_000, 10_000_000]);
        assert_eq!(of(Id::W6, |point| point.producers), [1, 2, 4, 8]);
        // The first is the main point, at which everything is measured.
        assert_eq!(of(Id::W2, |point| Some(point.workers as u64)), [2, 1, 4, 8]);
        assert_eq!(of(Id::W1, |point| Some(point.workers as u64)), [2]);
        assert!(
            plan.iter()
                .skip(Id::ALL.len())
                .all(|contest| contest.reps == CURVE_REPS)
        );
        let workers = plan_on(&options("--workers 2 --only W2 --mode as-is"), 2);
        assert_eq!(workers.len(), 1, "who says how many gets no curve");
        assert_eq!(super::workers(12), [1, 2, 4, 8, 12]);
    }

    #[test]
    fn queues_are_one_run_of_all() {
        let plan = plan_on(&options("--only deque --peers st3 --reps 7"), 2);
        assert_eq!(plan[0].peers, [Peer::Ganger, Peer::St3]);
        let turns = plan[0].turns();
        assert_eq!((turns.len(), turns[0].job.rounds), (1, Some(7)));
    }
}
