//! A workload that all deques run in turn.

use super::{Crossbeam, Deque, Ganger, St3};
use std::fmt;
use std::hint::black_box;

/// The deques of every contest; Ganger's is the first.
pub(super) const DEQUES: [&str; 3] = [Ganger::NAME, Crossbeam::NAME, St3::NAME];

/// Runs a prepared workload once and returns its figures, one for each metric; `NAN` for what could
/// not be measured. It allocates its deques itself, unless there are many.
pub type Run = Box<dyn FnMut() -> Vec<f64>>;

/// What deques are made to do.
pub trait Workload {
    /// What the tables call it, with its size.
    fn name(&self) -> String;

    /// What it measures, with units. Of every figure, less is better.
    fn metrics(&self) -> &'static [&'static str];

    /// Everything that is not to be measured.
    fn prepare<D: Deque>(&self) -> Run;
}

/// A workload and all deques, ready to run.
pub struct Contest {
    name: String,
    metrics: &'static [&'static str],
    entrants: Vec<(&'static str, Run)>,
}

/// The figures of one workload.
#[derive(Debug)]
pub struct Outcome {
    /// That of the workload.
    pub name: String,
    /// Those of the workload.
    pub metrics: &'static [&'static str],
    /// The deques, Ganger's first, and the variants.
    pub rows: Vec<Row>,
}

/// The figures of one deque.
#[derive(Debug)]
pub struct Row {
    /// The name of the deque.
    pub deque: &'static str,
    /// For each metric the figures of all repetitions, in order.
    pub samples: Vec<Vec<f64>>,
}

impl Contest {
    /// All deques.
    pub fn new(workload: &impl Workload) -> Self {
        Self {
            name: workload.name(),
            metrics: workload.metrics(),
            entrants: Vec::from_iter(DEQUES.into_iter().zip([
                workload.prepare::<Ganger>(),
                workload.prepare::<Crossbeam>(),
                workload.prepare::<St3>(),
            ])),
        }
    }

    /// The same with another entrant, which runs a variant of the workload.
    ///
    /// # Panics
    /// When the variant measures something else.
    #[must_use]
    pub fn and<D: Deque>(mut self, name: &'static str, variant: &impl Workload) -> Self {
        assert_eq!(variant.metrics(), self.metrics);
        self.entrants.push((name, variant.prepare::<D>()));
        self
    }

    /// The name of the workload.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Lets every deque run once, so that all are warm, and then `reps` times, one deque after the
    /// other within each repetition.
    ///
    /// # Panics
    /// When a deque has not done what it was told to do.
    #[must_use]
    pub fn run(mut self, reps: usize) -> Outcome {
        let empty = |deque| Row {
            deque,
            samples: vec![Vec::with_capacity(reps); self.metrics.len()],
        };
        let mut rows: Vec<Row> = self.entrants.iter().map(|&(name, _)| empty(name)).collect();
        for (_, run) in &mut self.entrants {
            run();
        }
        for rep in 0..reps {
            let _gap = gap(rep);
            for (row, (_, run)) in rows.iter_mut().zip(&mut self.entrants) {
                let figures = run();
                assert_eq!(figures.len(), row.samples.len());
                for (samples, figure) in row.samples.iter_mut().zip(figures) {
                    samples.push(figure);
                }
            }
        }
        Outcome {
            name: self.name,
            metrics: self.metrics,
            rows,
        }
    }
}

/// Moves what is allocated while it is there. Where a deque lies can make a processor twice as slow,
/// and an allocator that is asked for the same gives the same: each repetition has it elsewhere.
fn gap(rep: usize) -> Vec<u8> {
    const LINE: usize = 64;
    const LINES: usize = 64;
    black_box(Vec::with_capacity(LINE * (1 + 13 * rep % LINES)))
}

impl fmt::Debug for Contest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entrants = self.entrants.iter().map(|(name, _)| name);
        f.debug_struct("Contest")
            .field("name", &self.name)
            .field("entrants", &entrants.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// Writes down who runs.
    struct Roll(Rc<RefCell<Vec<&'static str>>>);

    impl Workload for Roll {
        fn name(&self) -> String {
            "roll".to_owned()
        }

        fn metrics(&self) -> &'static [&'static str] {
            &["turns"]
        }

        fn prepare<D: Deque>(&self) -> Run {
            let turns = Rc::clone(&self.0);
            Box::new(move || {
                turns.borrow_mut().push(D::NAME);
                vec![f64::from(u32::try_from(turns.borrow().len()).unwrap())]
            })
        }
    }

    #[test]
    fn deques_take_turns_and_the_first_round_does_not_count() {
        let turns = Rc::new(RefCell::new(Vec::new()));
        let outcome = Contest::new(&Roll(Rc::clone(&turns))).run(2);
        assert_eq!(*turns.borrow(), [DEQUES; 3].concat());
        let samples: Vec<_> = outcome.rows.iter().map(|row| &row.samples[0][..]).collect();
        assert_eq!(samples, [[4.0, 7.0], [5.0, 8.0], [6.0, 9.0]]);
    }
}
