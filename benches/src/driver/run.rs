//! Runs a plan and collects its results.

use super::child::Ending;
use super::lines::{Absence, Figure, Reason};
use super::plan::{Contest, Turn};
use super::stop::Stop;
use crate::stats::{Summary, median, ratio};
use crate::text::{figure, with_unit};
use crate::whole::catalog::Peer;
use crate::whole::job::Job;
use crate::whole::sample::Sample;
use ganger_bench_options::mode::Mode;
use indicatif::{ProgressBar, ProgressStyle};
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

    /// Returns how many bytes of memory may be used; `None` where the system does not say.
    fn memory(&self) -> Option<u64>;
}

/// Runs all contests, until the user wants to stop.
pub(super) fn measure(
    plan: &[Contest],
    runner: &mut dyn Runner,
    stop: &Stop,
) -> (Vec<Figure>, Vec<Absence>) {
    let turns = plan
        .iter()
        .map(|contest| contest.turns().len() as u64)
        .sum();
    // A bar on a terminal; elsewhere a line for each workload.
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} · {eta} left");
    let bar = ProgressBar::new(turns).with_style(style.expect("the template is right"));
    let (mut figures, mut absences) = (Vec::new(), Vec::new());
    for contest in plan {
        let mut scores = Scores {
            contest,
            samples: Vec::new(),
            absences: Vec::new(),
            out: HashSet::new(),
        };
        for turn in contest.turns() {
            if stop.is_wanted() {
                break;
            }
            bar.inc(1);
            bar.set_message(format!("{} {}", turn.job.id, turn.job.peer));
            if let Err((reason, why)) = scores.play(&turn, runner, &figures) {
                scores.drop_out(turn.job.peer, reason, why);
            }
        }
        let some = scores.figures();
        bar.suspend(|| eprintln!("{}", scores.summary(&some)));
        figures.extend(some);
        absences.extend(scores.absences);
        if stop.is_wanted() {
            break;
        }
    }
    bar.finish_and_clear();
    eprintln!("measured for {} s", bar.elapsed().as_secs());
    (figures, absences)
}

/// The results of a contest so far.
struct Scores<'a> {
    contest: &'a Contest,
    /// With their repetitions.
    samples: Vec<(usize, Sample)>,
    absences: Vec<Absence>,
    /// The peers without further turns.
    out: HashSet<Peer>,
}

impl Scores<'_> {
    /// Runs a turn. The error is a reason not to.
    fn play(
        &mut self,
        turn: &Turn,
        runner: &mut dyn Runner,
        known: &[Figure],
    ) -> Result<(), (Reason, String)> {
        let job = &turn.job;
        if self.out.contains(&job.peer) {
            return Ok(());
        }
        if let Some(refusal) = refusal(job, runner, known) {
            return Err(refusal);
        }
        let prepared = runner.prepare(turn.mode);
        prepared.map_err(|why| (Reason::NoMode, why))?;
        match runner.run(job) {
            Ending::Measured(samples) => {
                if let Some(other) = samples.iter().find(|sample| !is_of(job, sample)) {
                    let other = other.line();
                    let why = format!("it answered with the figure of something else: {other}");
                    return Err((Reason::Crashed, why));
                }
                samples.into_iter().for_each(|it| self.add(turn.rep, it));
                Ok(())
            }
            Ending::Missing(why) => Err((Reason::Missing, why)),
            Ending::Crashed(why) => Err((Reason::Crashed, why)),
            Ending::TimedOut(limit) => {
                let why = format!("it had not ended after {} s", limit.as_secs_f64());
                Err((Reason::Timeout, why))
            }
            Ending::Stopped => Ok(()),
        }
    }

    fn add(&mut self, rep: usize, sample: Sample) {
        if !self.contest.peers.contains(&sample.peer) {
            return;
        }
        let is_same =
            |(_, it): &&(usize, Sample)| (it.peer, &it.variant) == (sample.peer, &sample.variant);
        // A run of queues has all repetitions, in order.
        let rep = match self.contest.id.is_queue() {
            true => self.samples.iter().filter(is_same).count(),
            false => rep,
        };
        self.samples.push((rep, sample));
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

    /// Returns the figures, compared figures together, and Ganger's first.
    fn figures(&self) -> Vec<Figure> {
        let mut variants: Vec<&str> = Vec::new();
        let mut groups = BTreeMap::<(usize, Peer), BTreeMap<usize, &Sample>>::new();
        for (rep, sample) in &self.samples {
            let known = variants.iter().position(|it| *it == sample.variant);
            let variant = known.unwrap_or_else(|| {
                variants.push(&sample.variant);
                variants.len() - 1
            });
            let group = groups.entry((variant, sample.peer)).or_default();
            group.insert(*rep, sample);
        }
        let figure = |(&(variant, peer), group): (&_, &BTreeMap<_, _>)| {
            let ours = groups.get(&(variant, Peer::Ganger));
            self.figure(group, ours.filter(|_| peer != Peer::Ganger))
        };
        groups.iter().filter_map(figure).collect()
    }

    fn figure(&self, group: &Reps<'_>, ours: Option<&Reps<'_>>) -> Option<Figure> {
        let values = |of: &Reps<'_>| -> Vec<Option<f64>> {
            let last = of.last_key_value().map_or(0, |(&rep, _)| rep + 1);
            let value = |rep| of.get(&rep).map(|sample| sample.value);
            (0..last).map(value).collect()
        };
        let (_, last) = group.last_key_value()?;
        let mine = values(group);
        let summary = Summary::of(&mine)?;
        let all = |of: fn(&Sample) -> Option<f64>| group.values().filter_map(move |it| of(it));
        let mut histogram = BTreeMap::new();
        for &(upper, count) in group.values().flat_map(|it| &it.histogram) {
            *histogram.entry(upper).or_default() += count;
        }
        Some(Figure {
            workload: self.contest.id,
            peer: last.peer,
            variant: last.variant.clone(),
            unit: last.unit.clone(),
            n: last.n,
            point: self.contest.point,
            min: summary.min,
            median: summary.median,
            max: summary.max,
            p50: median(all(|it| it.p50)),
            p99: median(all(|it| it.p99)),
            worst: all(|it| it.max).reduce(f64::max),
            ratio_to_ganger: ours.and_then(|ours| ratio(&mine, &values(ours))),
            reps: summary.count,
            values: mine,
            histogram: histogram.into_iter().collect(),
        })
    }

    /// Returns a line for people: the minimum of each peer's first variant, or the reason for its
    /// absence.
    fn summary(&self, figures: &[Figure]) -> String {
        let (id, point) = (self.contest.id, self.contest.point);
        let title = format!("{:<7} {:<36} ({point})", id, id.spec().name);
        if id.is_queue() {
            return format!("{title} {} figures", figures.len());
        }
        let of = |peer: &Peer| {
            let measured = figures.iter().find(|figure| figure.peer == *peer);
            let measured = measured.map(|it| with_unit(&figure(it.min), &it.unit));
            let absence = self.absences.iter().find(|absence| absence.peer == *peer);
            let said = measured.or(absence.map(|it| it.reason.text().to_owned()));
            format!("{peer} {}", said.as_deref().unwrap_or("–"))
        };
        let peers: Vec<_> = self.contest.peers.iter().map(of).collect();
        format!("{title} {}", peers.join(", "))
    }
}

/// The samples of a figure, by their repetitions.
type Reps<'a> = BTreeMap<usize, &'a Sample>;

/// Returns whether a sample can be of this job.
fn is_of(job: &Job, sample: &Sample) -> bool {
    let is_metric = || {
        let metric = job.spec().metric(&sample.variant);
        sample.peer == job.peer && metric.is_some_and(|it| it.unit == sample.unit)
    };
    sample.workload == job.id && (job.id.is_queue() || is_metric())
}

/// Returns why a job can't be run, if so.
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
