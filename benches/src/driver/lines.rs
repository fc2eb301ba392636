//! The result as lines of JSON: the machine, a line for each figure, and a line for each missing
//! figure. `docs/BENCHMARKS.md` has the fields.

use super::calm::Calm;
use crate::whole::catalog::{Id, Peer};
use ganger_bench_options::mode::Mode;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{self, BufRead, Write};
use std::path::Path;

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum Line {
    /// The first line: the machine.
    Machine(Machine),
    /// The repetitions of a figure.
    Figure(Figure),
    /// The reason for a missing figure.
    Absent(Absence),
}

/// The whole result of a run of the benchmarks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Results {
    /// The machine.
    pub(super) machine: Machine,
    /// What there is.
    pub(super) figures: Vec<Figure>,
    /// The missing figures.
    pub(super) absences: Vec<Absence>,
}

/// The machine of the measurements, and their settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The model of the processor.
    pub cpu: String,
    /// The number of processors.
    pub cores: usize,
    /// The system and its version.
    pub kernel: String,
    /// The governor of the processors' speed, `?` if the system does not say.
    pub governor: String,
    /// The compiler.
    pub rustc: String,
    /// Peers with their versions, in order.
    pub versions: Vec<(String, String)>,
    /// The name of the allocator.
    pub allocator: String,
    /// The commit, with a `+` when files differ from it; `?` outside of a repository.
    pub commit: String,
    /// The day and time, in UTC.
    pub date: String,
    /// The arguments of the command.
    pub command: String,
    /// Whether sizes were small: they show that everything works, not how fast.
    pub quick: bool,
    /// Whether it ended before all was measured.
    pub interrupted: bool,
    /// The foreign load before runs, if the system says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calm: Option<Calm>,
}

/// The repetitions of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Figure {
    /// The workload.
    pub(super) workload: Id,
    /// The peer.
    pub(super) peer: Peer,
    /// The figure's name within the workload.
    pub(super) variant: String,
    /// Its unit.
    pub(super) unit: String,
    /// How many elements it is the figure of.
    pub(super) n: u64,
    /// The settings.
    #[serde(flatten)]
    pub(super) point: Point,
    /// The least.
    pub(super) min: f64,
    /// The middle.
    pub(super) median: f64,
    /// The greatest.
    pub(super) max: f64,
    /// Of latencies: the median of the repetitions' 50th percentiles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) p50: Option<f64>,
    /// Of latencies: the median of the repetitions' 99th percentiles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) p99: Option<f64>,
    /// Of latencies: the worst of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) worst: Option<f64>,
    /// How many times Ganger's figure it is, pair by pair: above 1, Ganger is ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ratio_to_ganger: Option<f64>,
    /// The number of repetitions with figures.
    pub(super) reps: usize,
    /// The figure of each repetition, in order; `null` for a failed repetition.
    pub(super) values: Vec<Option<f64>>,
    /// Of latencies of all repetitions: upper bounds in nanoseconds, each with its count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) histogram: Vec<(u64, u64)>,
}

/// The reason for a missing figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Absence {
    /// The workload.
    pub(super) workload: Id,
    /// The peer without the figure.
    pub(super) peer: Peer,
    /// The point of the missing figure.
    #[serde(flatten)]
    pub(super) point: Point,
    /// The kind of reason.
    pub(super) reason: Reason,
    /// The reason, for people.
    pub(super) why: String,
}

/// Kinds of reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Reason {
    /// The peer's language is not on this machine.
    NotInstalled,
    /// The peer has no such workload.
    Missing,
    /// The system has no such mode.
    NoMode,
    /// The run would need more memory than the machine has.
    Memory,
    /// The run ended with an error, or answered with a line that is no sample.
    Crashed,
    /// The run did not end in time, and was ended.
    Timeout,
}

/// The settings on which a figure depends: a point of a curve, or a point outside of all curves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Point {
    /// How many threads run processes.
    pub(super) workers: usize,
    /// As many processes in place of the workload's own number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) processes: Option<u64>,
    /// As many producers in place of the workload's own number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) producers: Option<u64>,
    /// What else runs.
    #[serde(default, skip_serializing_if = "Mode::is_as_is")]
    pub(super) mode: Mode,
}

impl Point {
    /// Returns a point outside of curves.
    pub(super) fn of(workers: usize, mode: Mode) -> Self {
        Self {
            workers,
            processes: None,
            producers: None,
            mode,
        }
    }
}

impl Results {
    /// Writes all lines.
    ///
    /// # Errors
    /// The errors of the writer.
    pub(super) fn write(&self, mut out: impl Write) -> io::Result<()> {
        let machine = [Line::Machine(self.machine.clone())].into_iter();
        let figures = self.figures.iter().cloned().map(Line::Figure);
        let absences = self.absences.iter().cloned().map(Line::Absent);
        for line in machine.chain(figures).chain(absences) {
            writeln!(out, "{}", serde_json::to_string(&line)?)?;
        }
        out.flush()
    }

    /// Reads all lines, except empty lines.
    ///
    /// # Errors
    /// The errors of the reader, and invalid lines, with their numbers.
    pub(super) fn read(reader: impl BufRead) -> Result<Self, String> {
        let (mut results, mut has_machine) = (Self::default(), false);
        for (number, line) in (1..).zip(reader.lines()) {
            let line = line.map_err(|error| error.to_string())?;
            if line.trim().is_empty() {
                continue;
            }
            let line = serde_json::from_str(&line);
            match line.map_err(|error| format!("line {number}: {error}"))? {
                Line::Machine(_) if has_machine => {
                    return Err(format!("line {number}: a second machine"));
                }
                Line::Machine(machine) => {
                    results.machine = machine;
                    has_machine = true;
                }
                Line::Figure(figure) => results.figures.push(figure),
                Line::Absent(absence) => results.absences.push(absence),
            }
        }
        if has_machine {
            Ok(results)
        } else {
            Err("it has no line of the kind `machine`".to_owned())
        }
    }

    /// Returns whether a peer crashed, or did not end, in any workload.
    pub(super) fn has_failed(&self, peer: Peer) -> bool {
        let is_failure = |reason| matches!(reason, Reason::Crashed | Reason::Timeout);
        let mut absences = self.absences.iter();
        absences.any(|absence| absence.peer == peer && is_failure(absence.reason))
    }

    /// Reads a file.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read), with the path; and why the file can't be opened.
    pub(super) fn load(path: &Path) -> Result<Self, String> {
        let file = std::fs::File::open(path);
        let file = file.map_err(|error| format!("can't read {}: {error}", path.display()))?;
        Self::read(io::BufReader::new(file))
            .map_err(|error| format!("{} is no result: {error}", path.display()))
    }
}

impl Reason {
    /// Returns the reason in a word or two.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::NotInstalled => "not installed",
            Self::Missing => "has no such workload",
            Self::NoMode => "mode not available",
            Self::Memory => "left out",
            Self::Crashed => "failed",
            Self::Timeout => "timed out",
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |n: u64, one: &str, many: &str| match n {
            1 => format!("1 {one}"),
            n => format!("{n} {many}"),
        };
        f.write_str(&count(self.workers as u64, "worker", "workers"))?;
        if let Some(processes) = self.processes {
            write!(f, ", {}", count(processes, "process", "processes"))?;
        }
        if let Some(producers) = self.producers {
            write!(f, ", {}", count(producers, "producer", "producers"))?;
        }
        match self.mode {
            Mode::AsIs => Ok(()),
            Mode::Loops => write!(f, ", {}", self.mode.text()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::fixture;

    #[test]
    fn results_survive_being_written_and_read() {
        let results = fixture::results();
        assert!(results.figures.iter().any(|f| !f.histogram.is_empty()));
        assert!(results.figures.iter().any(|f| f.values.contains(&None)));
        assert!(!results.absences.is_empty());
        let mut text = Vec::new();
        results.write(&mut text).unwrap();
        assert!(Results::read(&text[..]).unwrap() == results);
    }

    #[test]
    fn a_line_has_the_fields_that_are_documented() {
        let docs = include_str!("../../../docs/BENCHMARKS.md");
        let mut text = Vec::new();
        fixture::results().write(&mut text).unwrap();
        for line in std::str::from_utf8(&text).unwrap().lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            for (field, value) in line.as_object().unwrap() {
                assert!(docs.contains(&format!("|`{field}`|")), "{field}");
                for inner in value.as_object().into_iter().flat_map(|value| value.keys()) {
                    assert!(docs.contains(&format!("|`{field}.{inner}`|")), "{inner}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_result_is_refused_with_its_line() {
        let machine = serde_json::to_string(&Line::Machine(Machine::default())).unwrap();
        for (text, reason) in [
            (
                format!("{machine}\n\n{{\"kind\":\"other\"}}"),
                "line 3: unknown variant",
            ),
            (format!("{machine}\n{machine}"), "line 2: a second machine"),
            (String::new(), "no line of the kind `machine`"),
        ] {
            let error = Results::read(text.as_bytes()).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
