//! The report's part on the states of the machine: the measured modes, the foreign load, and
//! Ganger's ratios with idle loops.

use super::view::{Lead, Row, View};
use crate::driver::lines::{Absence, Reason};
use crate::text::times;
use ganger_bench_options::mode::Mode;

impl<'a> View<'a> {
    /// Returns the same view with idle loops, without curves; `None` unless both modes have
    /// figures.
    #[must_use]
    pub fn with_loops(&self) -> Option<Self> {
        (!self.loops.is_empty()).then(|| Self {
            mode: Mode::Loops,
            rows: self.loops.clone(),
            loops: Vec::new(),
            curves: Vec::new(),
            ..self.clone()
        })
    }

    /// The same figure with idle loops.
    #[must_use]
    pub fn row_with_loops(&self, row: &Row<'_>) -> Option<&Row<'a>> {
        let is_same = |other: &&Row<'_>| (other.id, other.variant) == (row.id, row.variant);
        self.loops.iter().find(is_same)
    }

    /// Returns Ganger's lead over the best peer with idle loops.
    #[must_use]
    pub fn lead_with_loops(&self, row: &Row<'_>) -> Option<Lead<'a>> {
        self.row_with_loops(row).and_then(Row::lead)
    }

    /// Returns whether the absence holds in its mode alone, so that the report must name the mode.
    pub(super) fn is_of_one_mode(&self, absence: &Absence) -> bool {
        let key = |it: &Absence| (it.workload, it.peer, it.processes, it.producers, it.workers);
        let rows = match absence.mode == self.mode {
            true => &self.loops,
            false => &self.rows,
        };
        let mut rows = rows.iter().filter(|row| row.id == absence.workload);
        let has_figure = rows.any(|row| row.figures().any(|f| f.peer == absence.peer));
        let is_other = |it: &&Absence| it.mode != absence.mode && key(it) == key(absence);
        let mut others = self.absences.iter().filter(is_other);
        has_figure || others.any(|it| (it.reason, &it.why) != (absence.reason, &absence.why))
    }
}

/// Describes the state of the machine, in a sentence or two.
#[must_use]
pub(super) fn state(view: &View<'_>) -> String {
    let modes = match (view.mode, view.loops.is_empty()) {
        (Mode::AsIs, true) => "Measured as the machine is.",
        (Mode::AsIs, false) => {
            "Measured as the machine is, and whole workloads with an idle-priority loop on every \
             processor, too."
        }
        (Mode::Loops, _) => "Measured with an idle-priority loop on every processor.",
    };
    let calm = match &view.machine.calm {
        Some(calm) => calm.text(),
        None => "How busy others kept the machine is not known.".to_owned(),
    };
    let lacks = view.absences.iter().find(|it| it.reason == Reason::NoMode);
    match lacks {
        Some(absence) => format!(
            "{modes} {} it could not be: {}. {calm}",
            capitalised(absence.mode.text()),
            absence.why
        ),
        None => format!("{modes} {calm}"),
    }
}

/// A cell of the column for idle loops: how many times the best peer's figure Ganger's is there.
#[must_use]
pub(super) fn cell(lead: Option<&Lead<'_>>) -> String {
    match lead {
        Some(lead) => format!("{} {}", times(lead.times), lead.best.peer),
        None => "–".to_owned(),
    }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    first.chain(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::fixture;
    use crate::driver::report::{markdown, standing};
    use crate::whole::catalog::{Id, Peer};

    #[test]
    fn figures_with_loops_are_a_column_and_do_not_count_in_the_summary() {
        let mut results = fixture::results();
        results
            .figures
            .retain(|f| f.workload == Id::W1 && f.workers == 2);
        results
            .figures
            .retain(|f| matches!(f.peer, Peer::Ganger | Peer::Tokio));
        for figure in &mut results.figures {
            figure.min = match (figure.mode, figure.peer) {
                (Mode::AsIs, Peer::Ganger) => 5.0,
                (Mode::AsIs, _) => 20.0,
                (Mode::Loops, Peer::Ganger) => 30.0,
                (Mode::Loops, _) => 20.0,
            };
        }
        let view = View::of(&results);
        assert_eq!((view.rows.len(), view.loops.len()), (1, 1));
        assert!((view.lead_with_loops(&view.rows[0]).unwrap().times - 1.5).abs() < 1e-9);
        let said = standing(&view);
        assert!(
            said.starts_with("Ahead of every peer in 1 of 1 figures of whole workloads; closest:"),
            "{said}"
        );
        assert!(
            said.contains("\nWith idle loops, ahead of every peer in 0 of 1 figures of whole"),
            "{said}"
        );
        let text = markdown(&view);
        assert!(text.contains("| 1.50× tokio |"), "{text}");
        assert!(
            text.contains("## Whole workloads, with idle loops"),
            "{text}"
        );

        results.figures.retain(|figure| figure.mode == Mode::Loops);
        let view = View::of(&results);
        assert_eq!((view.mode, view.loops.len()), (Mode::Loops, 0));
        let said = standing(&view);
        assert!(
            said.starts_with("With idle loops, ahead of every peer in 0 of 1"),
            "{said}"
        );
        assert!(state(&view).starts_with("Measured with an idle-priority loop"));
    }

    #[test]
    fn the_state_says_what_was_not_to_be_had() {
        let mut results = fixture::results();
        let said = state(&View::of(&results));
        assert!(
            said.contains("processor, too. The machine was busy: before 3 of 120"),
            "{said}"
        );
        results.figures.retain(|figure| figure.mode == Mode::AsIs);
        let absence = results.absences.last_mut().unwrap();
        assert_eq!(absence.mode, Mode::Loops);
        (absence.reason, absence.why) = (Reason::NoMode, "not on this system".to_owned());
        results.machine.calm = None;
        let expected = "Measured as the machine is. With idle loops it could not be: not on this \
                        system. How busy others kept the machine is not known.";
        assert_eq!(state(&View::of(&results)), expected);
    }

    #[test]
    fn the_mode_of_an_absence_is_said_where_the_other_has_a_figure() {
        let mut results = fixture::results();
        let places = |results: &_| -> Vec<Vec<String>> {
            let reasons = View::of(results).reasons();
            let of_go = reasons.into_iter().filter(|reason| reason.0 == Peer::Go);
            of_go.map(|reason| reason.3).collect()
        };
        assert_eq!(places(&results), [["W1"]], "the same in both modes");
        results
            .absences
            .retain(|it| it.peer != Peer::Go || it.mode == Mode::Loops);
        assert_eq!(places(&results), [["W1"]], "no figure in any mode");
        let mut figure = results.figures[0].clone();
        assert_eq!((figure.workload, figure.mode), (Id::W1, Mode::AsIs));
        figure.peer = Peer::Go;
        results.figures.push(figure);
        assert_eq!(places(&results), [["W1 (with idle loops)"]]);
    }
}
