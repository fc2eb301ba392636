//! The summary: the number of figures in which Ganger is ahead,
//! and a line for each figure that counts, with the best peer and the target.

use super::modes::cell;
use super::view::{Lead, Row, Standing, View};
use crate::text::{figure, times, with_unit};
use crate::whole::catalog::Id;
use ganger_bench_options::mode::Mode;

/// Figures that are summed up together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    Cluster,
    Deque,
    Mailbox,
}

/// A figure with the best peer's and the target; a dash for a missing figure.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) title: String,
    /// How many times the best peer's figure Ganger's is.
    pub(super) times: Option<f64>,
    pub(super) ours: String,
    pub(super) best: String,
    pub(super) target: String,
    /// Ganger's figure as a multiple of the best peer's with idle loops, and this peer; `None`
    /// without such a measurement.
    pub(super) with_loops: Option<(String, Option<f64>)>,
}

impl Part {
    /// All, in the order of the report.
    pub(super) const ALL: [Self; 4] = [Self::Whole, Self::Cluster, Self::Deque, Self::Mailbox];

    pub(super) fn heading(self) -> &'static str {
        match self {
            Self::Whole => "Whole workloads",
            Self::Cluster => "Cluster",
            Self::Deque => "Deque",
            Self::Mailbox => "Mailbox",
        }
    }

    pub(super) fn has(self, id: Id) -> bool {
        match self {
            Self::Whole => !id.is_queue() && !id.is_of_cluster(),
            Self::Cluster => id.is_of_cluster(),
            Self::Deque => id == Id::Deque,
            Self::Mailbox => id == Id::Mailbox,
        }
    }
}

/// The lines of a part.
pub(super) fn lines(view: &View<'_>, part: Part) -> Vec<Line> {
    let rows = view.rows.iter().filter(|row| part.has(row.id));
    let rows = rows.filter(|row| row.metric().is_some());
    // Of Ganger's own variants of a queue, only variants with a target.
    let rows = rows.filter(|row| !row.peers.is_empty() || !row.id.is_queue() || row.has_goals());
    rows.map(|row| Line::of(view, row)).collect()
}

/// Whether any of them was measured with idle loops.
pub(super) fn has_loops(lines: &[Line]) -> bool {
    let dash = cell(None);
    lines
        .iter()
        .any(|line| line.with_loops.as_ref().is_some_and(|it| it.0 != dash))
}

impl Line {
    fn of(view: &View<'_>, row: &Row<'_>) -> Self {
        let said = |min: f64| with_unit(&figure(min), row.unit);
        let dash = || "–".to_owned();
        let lead = row.lead();
        let (target, ours) = (view.target(row), row.ours.map(|ours| ours.min));
        let is_reached = target
            .zip(ours)
            .is_some_and(|(target, ours)| ours <= target);
        let mark = if is_reached { "reached" } else { "open" };
        let target = target.filter(|_| ours.is_some());
        Self {
            title: row.title(),
            times: lead.as_ref().map(|lead| lead.times),
            ours: ours.map_or_else(dash, said),
            best: lead.map_or_else(dash, |lead| {
                format!("{} {}", lead.best.peer, said(lead.best.min))
            }),
            target: target.map_or_else(dash, |most| format!("{}, {mark}", said(most))),
            with_loops: (!view.loops.is_empty()).then(|| {
                let lead = view.lead_with_loops(row);
                (cell(lead.as_ref()), lead.map(|lead| lead.times))
            }),
        }
    }

    /// How many times the best peer's figure Ganger's is, for people.
    pub(super) fn ratio(&self) -> String {
        self.times.map_or_else(|| "–".to_owned(), times)
    }
}

/// Returns Ganger's standings, each with its name: in all, and, if both exist, in whole workloads
/// and in queues alone.
pub(super) fn standings<'a>(view: &View<'a>) -> Vec<(&'static str, Standing<'a>)> {
    let all = [
        ("whole workloads and queues", view.standing(|_| true)),
        ("whole workloads", view.standing(|id| !id.is_queue())),
        ("queues", view.standing(Id::is_queue)),
    ];
    let mut all = Vec::from(all);
    all.retain(|(_, standing)| standing.of > 0);
    // With a single kind, the standing in all is the same.
    if all.len() == 2 {
        all.remove(0);
    }
    all
}

/// In how many figures Ganger is ahead, a line for each standing.
#[must_use]
pub fn standing(view: &View<'_>) -> String {
    let mut sentences = Vec::new();
    for view in [Some(view), view.with_loops().as_ref()]
        .into_iter()
        .flatten()
    {
        sentences.extend(standings(view).iter().map(|it| sentence(view.mode, it)));
    }
    match sentences.is_empty() {
        true => "Nothing was measured of both Ganger and a peer.".to_owned(),
        false => sentences.join("\n"),
    }
}

fn sentence(mode: Mode, (of_what, standing): &(&str, Standing<'_>)) -> String {
    let Standing { ahead, of, worst } = standing;
    let start = match mode {
        Mode::AsIs => "Ahead",
        Mode::Loops => "With idle loops, ahead",
    };
    let mut text = format!("{start} of every peer in {ahead} of {of} figures of {of_what}");
    if let Some(lead) = worst {
        let Lead { best, .. } = lead;
        text += &format!(
            "; {}: {} {}, {} {}'s {}",
            lead.word(),
            lead.id,
            lead.variant,
            times(lead.times),
            best.peer,
            with_unit(&figure(best.min), &best.unit),
        );
    }
    text + "."
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::fixture;
    use crate::whole::catalog::Peer;

    #[test]
    fn every_figure_that_counts_has_a_line_and_no_other() {
        let results = fixture::results();
        let view = View::of(&results);
        let mut counted = 0;
        for part in Part::ALL {
            let lines = lines(&view, part);
            counted += lines.iter().filter(|line| line.times.is_some()).count();
            assert!(lines.iter().all(|line| line.title != fixture::OTHER.0));
        }
        assert_eq!(counted, view.standing(|_| true).of);
        let mailbox = lines(&view, Part::Mailbox);
        let of = |title: &str| mailbox.iter().find(|line| line.title == title);
        let drain = of("take 64 that wait, an item, u64 (drain)").unwrap();
        assert_eq!((drain.times, drain.best.as_str()), (None, "–"));
        assert_ne!(drain.target, "–");
        // The variant by single sends is for comparison, and has no target of its own.
        let one_by_one = "2 producers, groups of 16, u64 (one by one): producers' CPU ns";
        assert_eq!(of(one_by_one), None);
    }

    #[test]
    fn a_target_is_reached_or_open() {
        let mut results = fixture::results();
        results.figures.retain(|figure| figure.workload == Id::W5);
        for (ours, target) in [
            (5.0, "5.00 ns, reached"),
            (5.01, "5.00 ns, open"),
            (20.0, "5.00 ns, open"),
        ] {
            for figure in &mut results.figures {
                figure.min = if figure.peer == Peer::Ganger {
                    ours
                } else {
                    10.0
                };
            }
            let line = &lines(&View::of(&results), Part::Whole)[0];
            assert_eq!(line.target, target);
        }
        results.figures.retain(|figure| figure.peer != Peer::Ganger);
        let line = &lines(&View::of(&results), Part::Whole)[0];
        assert_eq!((line.ours.as_str(), line.target.as_str()), ("–", "–"));
    }

    #[test]
    fn all_is_said_where_there_are_both_kinds() {
        let mut results = fixture::results();
        results.figures.retain(|figure| figure.mode == Mode::AsIs);
        for figure in &mut results.figures {
            figure.min = match (figure.workload, figure.peer) {
                (_, Peer::Ganger) => 10.0,
                (Id::W5, Peer::Tokio) => 8.0,
                (Id::Mailbox, Peer::Kanal) if figure.variant.ends_with("100, u64") => 5.0,
                _ => 20.0,
            };
        }
        let text = standing(&View::of(&results));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        let (whole, queues) = (113, 40);
        assert_eq!(
            lines[0],
            format!(
                "Ahead of every peer in {} of {} figures of whole workloads and queues; worst: \
                 mailbox one thread, bursts of 100, u64, 2.00× kanal's 5.00 ns.",
                whole + queues - 2,
                whole + queues,
            )
        );
        assert_eq!(
            lines[1],
            format!(
                "Ahead of every peer in {} of {whole} figures of whole workloads; worst: W5 time, \
                 1.25× tokio's 8.00 ns.",
                whole - 1
            )
        );
        assert!(lines[2].contains(&format!(" {} of {queues} figures of queues;", queues - 1)));
        results.figures.retain(|figure| figure.workload == Id::W1);
        let text = standing(&View::of(&results));
        assert_eq!(
            text,
            "Ahead of every peer in 1 of 1 figures of whole workloads; closest: W1 time, 0.50× \
             tokio's 20.0 ns."
        );
        results.figures.clear();
        assert!(standing(&View::of(&results)).starts_with("Nothing was measured"));
    }
}
