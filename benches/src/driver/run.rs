//! Runs a plan and collects its results.

use super::child::Ending;
use super::lines::{Absence, Figure, Point, Reason};
use super::plan::{Contest, Turn};
use super::progress::Progress;
use super::stop::Stop;
use crate::stats::{Summary, median, ratio};
use crate::text::{figure, with_unit};
use crate::whole::catalog::{Id, Peer};
use crate::whole::job::Job;
use crate::whole::sample::Sample;
use ganger_bench_options::mode::Mode;
use std::collections::{BTreeMap, HashSet};

/// Runs a job: a process of its own, or in tests a function.
pub(super) trait Runner {
    /// Brings the machine into this mode, and waits until other programs leave it alone.
    ///
    /// # Errors
    /// Why the machine has no such mode.
    fn prepare(&mut self, mode: Mode) -> Result<(), String>;

    /// Runs it to its end.
    fn run(&mut self, job: &Job) -> Ending;

    /// Returns the reason for not running this peer, if any.
    fn refusal(&self, peer: Peer) -> Option<(Reason, String)>;

    /// How many bytes of memory may be used; `None` where the system does not say.
    fn memory(&self) -> Option<u64>;
}

/// Runs all contests, until the user wants to stop.
pub(super) fn measure(
    plan: &[Contest],
    runner: &mut dyn Runner,
    stop: &Stop,
) -> (Vec<Figure>, Vec<Absence>) {
    let turns = plan.iter().map(|contest| contest.turns().len()).sum();
    let progress = Progress::new(turns);
    let (mut figures, mut absences) = (Vec::new(), Vec::new());
    for contest in plan {
        let mut scores = Scores::new(contest);
        for turn in contest.turns() {
            if stop.is_wanted() {
                break;
            }
            progress.begin(&turn);
            scores.play(&turn, runner, &figures);
        }
        progress.say(&scores.summary());
        let (some, none) = scores.finish();
        figures.extend(some);
        absences.extend(none);
        if stop.is_wanted() {
            break;
        }
    }
    progress.finish();
    (figures, absences)
}

/// The results of a contest so far.
struct Scores<'a> {
    contest: &'a Contest,
    /// By peer and variant, in the order of peers and of their first lines.
    figures: Vec<Score>,
    absences: Vec<Absence>,
    /// The peers that have dropped out.
    out: HashSet<Peer>,
}

/// The samples of a figure.
struct Score {
    peer: Peer,
    variant: String,
    /// The last of them; all have the same unit and number.
    sample: Sample,
    values: Vec<Option<f64>>,
    percentiles: Vec<Percentiles>,
    histogram: BTreeMap<u64, u64>,
}

#[derive(Clone, Copy)]
struct Percentiles {
    p50: Option<f64>,
    p99: Option<f64>,
    max: Option<f64>,
}

impl<'a> Scores<'a> {
    fn new(contest: &'a Contest) -> Self {
        Self {
            contest,
            figures: Vec::new(),
            absences: Vec::new(),
            out: HashSet::new(),
        }
    }

    /// Runs a turn, unless it has a reason not to.
    fn play(&mut self, turn: &Turn, runner: &mut dyn Runner, known: &[Figure]) {
        let job = &turn.job;
        if self.out.contains(&job.peer) {
            return;
        }
        if let Some((reason, why)) = refusal(job, runner, known) {
            self.drop_out(job.peer, reason, why);
            return;
        }
        if let Err(why) = runner.prepare(turn.mode) {
            self.drop_out(job.peer, Reason::NoMode, why);
            return;
        }
        match runner.run(job) {
            Ending::Measured(samples) => match self.strange(job, &samples) {
                None => self.add(turn.rep, samples),
                Some(why) => self.drop_out(job.peer, Reason::Crashed, why),
            },
            Ending::Missing(why) => self.drop_out(job.peer, Reason::Missing, why),
            Ending::Crashed(why) => self.drop_out(job.peer, Reason::Crashed, why),
            Ending::TimedOut(limit) => {
                let why = format!("it had not ended after {} s", limit.as_secs_f64());
                self.drop_out(job.peer, Reason::Timeout, why);
            }
            Ending::Stopped => {}
        }
    }

    /// Returns why these can't be the samples of this job.
    fn strange(&self, job: &Job, samples: &[Sample]) -> Option<String> {
        let is_queue = job.id.is_queue();
        let is_own = |sample: &&Sample| {
            let is_peer = is_queue || sample.peer == job.peer;
            let metric = job.spec().metric(&sample.variant);
            let is_metric = is_queue || metric.is_some_and(|metric| metric.unit == sample.unit);
            sample.workload == job.id && is_peer && is_metric
        };
        let other = samples.iter().find(|sample| !is_own(sample))?;
        Some(format!(
            "it answered with the figure of something else: {}",
            other.line()
        ))
    }

    fn add(&mut self, rep: usize, samples: Vec<Sample>) {
        let is_queue = self.contest.id.is_queue();
        for sample in samples {
            if !self.contest.peers.contains(&sample.peer) {
                continue;
            }
            let score = self.score(&sample);
            // A run of queues has all repetitions, in order.
            let rep = if is_queue { score.values.len() } else { rep };
            score.add(rep, sample);
        }
    }

    fn score(&mut self, sample: &Sample) -> &mut Score {
        let is_it = |score: &Score| score.peer == sample.peer && score.variant == sample.variant;
        let at = self.figures.iter().position(is_it).unwrap_or_else(|| {
            self.figures.push(Score::new(sample.clone()));
            self.figures.len() - 1
        });
        &mut self.figures[at]
    }

    fn drop_out(&mut self, peer: Peer, reason: Reason, why: String) {
        self.out.insert(peer);
        self.absences.push(Absence {
            workload: self.contest.id,
            peer,
            point: self.contest.point,
            reason,
            why,
        });
    }

    /// Returns a line for people: the minimum of each peer's first variant, or the reason for its
    /// absence.
    fn summary(&self) -> String {
        let (id, point) = (self.contest.id, self.contest.point);
        let title = format!("{:<7} {:<18}", id, id.spec().name);
        if id.is_queue() {
            return format!("{title} {} figures", self.figures.len());
        }
        let of = |peer: &Peer| {
            let score = self.figures.iter().find(|score| score.peer == *peer);
            let min = score.and_then(|score| Some((Summary::of(&score.values)?.min, score)));
            let absence = self.absences.iter().find(|absence| absence.peer == *peer);
            match (min, absence) {
                (Some((min, score)), _) => {
                    format!("{peer} {}", with_unit(&figure(min), &score.sample.unit))
                }
                (None, Some(absence)) => format!("{peer} {}", absence.reason.text()),
                (None, None) => format!("{peer} –"),
            }
        };
        let peers: Vec<_> = self.contest.peers.iter().map(of).collect();
        let place = if point.processes.is_some() || point.producers.is_some() {
            format!(" ({point})")
        } else {
            let mode = match point.mode {
                Mode::AsIs => String::new(),
                Mode::Loops => format!(", {}", point.mode.text()),
            };
            format!(" ({} w{mode})", point.workers)
        };
        format!("{title}{place} {}", peers.join(", "))
    }

    fn finish(self) -> (Vec<Figure>, Vec<Absence>) {
        let (contest, scores) = (self.contest, &self.figures);
        let ours = |variant: &str| {
            let is_ours = |s: &&Score| s.peer == Peer::Ganger && s.variant == variant;
            scores.iter().find(is_ours).map(|score| &score.values[..])
        };
        let figures = scores.iter().filter_map(|score| {
            let against = ours(&score.variant).filter(|_| score.peer != Peer::Ganger);
            score.figure(contest.id, contest.point, against)
        });
        let mut figures: Vec<_> = figures.collect();
        // Compared figures together, and Ganger first; variants keep their order.
        let mut variants: Vec<&str> = scores.iter().map(|score| score.variant.as_str()).collect();
        let mut seen = HashSet::new();
        variants.retain(|variant| seen.insert(*variant));
        figures.sort_by_key(|figure| {
            let variant = variants
                .iter()
                .position(|&variant| variant == figure.variant);
            (variant, figure.peer)
        });
        (figures, self.absences)
    }
}

impl Score {
    fn new(sample: Sample) -> Self {
        Self {
            peer: sample.peer,
            variant: sample.variant.clone(),
            sample,
            values: Vec::new(),
            percentiles: Vec::new(),
            histogram: BTreeMap::new(),
        }
    }

    fn add(&mut self, rep: usize, sample: Sample) {
        if self.values.len() <= rep {
            self.values.resize(rep + 1, None);
        }
        self.values[rep] = Some(sample.value);
        self.percentiles.push(Percentiles {
            p50: sample.p50,
            p99: sample.p99,
            max: sample.max,
        });
        for &(upper, count) in &sample.histogram {
            *self.histogram.entry(upper).or_default() += count;
        }
        self.sample = sample;
    }

    fn figure(&self, id: Id, point: Point, ours: Option<&[Option<f64>]>) -> Option<Figure> {
        let summary = Summary::of(&self.values)?;
        let all = |of: fn(&Percentiles) -> Option<f64>| self.percentiles.iter().filter_map(of);
        Some(Figure {
            workload: id,
            peer: self.peer,
            variant: self.variant.clone(),
            unit: self.sample.unit.clone(),
            n: self.sample.n,
            point,
            min: summary.min,
            median: summary.median,
            max: summary.max,
            p50: median(all(|p| p.p50)),
            p99: median(all(|p| p.p99)),
            worst: all(|p| p.max).reduce(f64::max),
            ratio_to_ganger: ours.and_then(|ours| ratio(&self.values, ours)),
            reps: summary.count,
            values: self.values.clone(),
            histogram: self
                .histogram
                .iter()
                .map(|(&upper, &count)| (upper, count))
                .collect(),
        })
    }
}

/// Why a job can't be run, if so.
fn refusal(job: &Job, runner: &dyn Runner, known: &[Figure]) -> Option<(Reason, String)> {
    if let Some(refusal) = runner.refusal(job.peer) {
        return Some(refusal);
    }
    let of_each = known.iter().rev().find(|figure| {
        figure.workload == job.id && figure.peer == job.peer && figure.variant == "rss"
    })?;
    let (processes, there_is) = (job.processes?, runner.memory()?);
    let needed = of_each.min * processes as f64;
    // The estimate lacks the allocator's holes, and the system needs some memory, too.
    let is_too_much = needed > 0.7 * there_is as f64;
    is_too_much.then(|| {
        let giga = |bytes: f64| figure(bytes / 1e9);
        let why = format!(
            "{processes} processes would need {} GB; {} GB are free",
            giga(needed),
            giga(there_is as f64)
        );
        (Reason::Memory, why)
    })
}

#[cfg(test)]
mod tests;
