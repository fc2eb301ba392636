//! A failed run: whether it fails again, the simplest run that fails like it, and the report.

use crate::choices::{Decision, Source};
use crate::plan::Plan;
use crate::shrink::{cost, shrink};
use crate::trace::Trace;
use ganger_observe::trace;
use ganger_sched::Recording;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::{env, fmt, thread};

/// The seed to run alone, in the environment.
pub(crate) const SEED: &str = "GANGER_SIM_SEED";

/// The decisions to make, in the environment: numbers with commas between them.
pub(crate) const DECISIONS: &str = "GANGER_SIM_DECISIONS";

/// The file for the trace of a failed run, in the environment.
const TRACE: &str = "GANGER_SIM_TRACE";

/// How many runs the search for a simpler run may take.
const TRIES: u64 = 2_000;

/// How many moves these runs may have in all.
const MOVES: u64 = 2_000_000;

/// With fewer runs than this hardly any run becomes simpler.
const FEW: u64 = 10;

/// How many lines of moves the report of a failure shows.
const SHOWN: usize = 60;

/// How many lines of faults the report shows.
const WRONG: usize = 20;

/// The end of the reason when the run is stuck: no actor can move, and the test still waits.
pub(crate) const STUCK: &str = "nothing moves any more";

/// The likely reason for a stuck run.
const HINT: &str = "Does a handler answer from a thread of its own? No such thread moves here: \
                    use `rt.clock().after`.";

/// The outcome of a run.
pub(crate) struct Outcome {
    pub(crate) failure: Option<Failure>,
    pub(crate) made: Vec<Decision>,
    /// The same decisions, by moves.
    pub(crate) plan: Plan,
    pub(crate) moves: u64,
    pub(crate) trace: Trace,
    pub(crate) audits: u64,
    /// The scheduler's recording, of a failed run with a file for its trace.
    pub(crate) recording: Option<Recording>,
}

/// Returns the file for the trace of a failed run, if the environment has a file.
pub(crate) fn trace_file() -> Option<OsString> {
    env::var_os(TRACE).filter(|file| !file.is_empty())
}

/// Why a run has failed.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) why: String,
    /// Where the panic was.
    pub(crate) place: String,
    /// The simulation has failed the run itself; `place` is the call in the test.
    pub(crate) given_up: bool,
    /// The scheduler's dump, and the waits of its processes, when the run is stuck.
    pub(crate) stuck: Option<String>,
}

impl Failure {
    /// Returns whether both failures are of the same kind. They are when they have the same place,
    /// and the simulation gives the same reason but for numbers and details.
    fn is_like(&self, other: &Self) -> bool {
        self.place == other.place && self.kind() == other.kind()
    }

    fn kind(&self) -> Option<String> {
        let (kind, _details) = self.why.split_once(':').unwrap_or((&self.why, ""));
        let letters = kind.chars().filter(|letter| !letter.is_ascii_digit());
        self.given_up.then(|| letters.collect())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.why, self.place)
    }
}

impl Outcome {
    pub(crate) fn decisions(&self) -> Vec<u32> {
        self.made.iter().map(|it| it.chose).collect()
    }

    /// Shows the faults, the last moves, and for a stuck run the remaining processes. Writes the
    /// file of the trace.
    pub(crate) fn shown(&mut self) -> String {
        let mut shown = String::new();
        let wrong = self.trace.wrong();
        if !wrong.is_empty() {
            shown += "What goes wrong in it:\n";
            let beyond = wrong.len().saturating_sub(WRONG);
            if beyond > 0 {
                shown += &format!("({beyond} more before)\n");
            }
            wrong[beyond..]
                .iter()
                .for_each(|line| shown += &format!("{line}\n"));
            shown.push('\n');
        }
        shown += &format!("Its last moves:\n{}", self.trace.last_lines(SHOWN));
        if let Some(dump) = self.failure.as_ref().and_then(|it| it.stuck.as_ref()) {
            shown += &format!("\nWhat is left:\n{dump}\n\n{HINT}\n");
        }
        if let (Some(file), Some(recording)) = (trace_file(), self.recording.take()) {
            let file = file.display();
            shown += &match write(&recording.into()) {
                Ok(()) => format!("\nIts trace is in {file}, for https://ui.perfetto.dev\n"),
                Err(error) => format!("\nIts trace can't be written to {file}: {error}\n"),
            };
        }
        shown
    }

    fn fails_like(&self, failure: &Failure) -> bool {
        let own = self.failure.as_ref();
        own.is_some_and(|own| own.is_like(failure))
    }
}

/// A failed run of [`Sim::try_seeds`](crate::Sim::try_seeds). Its text is the report with which
/// [`Sim::check_seeds`](crate::Sim::check_seeds) panics.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedRun {
    /// The seed.
    pub seed: u64,
    /// The decisions of the simplest run that fails like it, for
    /// [`Sim::replay`](crate::Sim::replay).
    pub decisions: Vec<u32>,
    pub(crate) text: String,
}

impl fmt::Display for FailedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for FailedRun {}

/// Makes the report of a failure, and finds the decisions of the simplest run that fails like it.
/// The failure is of `seed`, or of one of the explored ways.
///
/// It `announce`s the failure at once, because the rest may take a while. Then it makes the same
/// decisions once more, to see whether they decide all relevant events. Then it makes the run
/// simpler. `attempt` makes a run of given decisions, with a limit on its moves.
pub(crate) fn report(
    seed: Option<u64>,
    outcome: &mut Outcome,
    failure: &Failure,
    announce: impl FnOnce(&str),
    attempt: impl Fn(Source, u64) -> Outcome,
) -> (String, Vec<u32>) {
    let what = match seed {
        Some(seed) => format!("seed {seed} fails"),
        None => "one of the ways fails".to_owned(),
    };
    let moves = outcome.moves;
    // A simpler run may take longer, but not much.
    let most = 2 * moves + 1;
    let again = |decisions: &[u32]| attempt(Source::Given(decisions.to_vec()), most);
    let tries = match MOVES / most {
        ..FEW => 0,
        tries => tries.min(TRIES),
    };
    let simpler = if tries > 0 { ", and made simpler" } else { "" };
    announce(&format!("{what}: {failure}; it is repeated{simpler}"));
    let mut simplest = outcome.decisions();
    let mut last = again(&simplest);
    let mut is_steady = last.fails_like(failure) && last.made == outcome.made;
    if is_steady && tries > 0 {
        simplest = simplest_of(outcome, tries, |plan, seed| {
            let outcome = attempt(Source::Plan(plan, seed), most);
            outcome.fails_like(failure).then_some(outcome)
        });
        last = again(&simplest);
        is_steady = last.fails_like(failure);
    }
    if !is_steady {
        let shown = outcome.shown();
        let text = format!(
            "{what}: {failure}\n\n\
             It did not fail again when the same decisions were made once more: something in the \
             test is not decided by the seed (threads, the machine's clock, randomness, state that \
             is kept between runs).\n\n\
             {shown}"
        );
        return (text, simplest);
    }
    let program = program();
    let repeat = match seed {
        Some(seed) => format!("Repeat it: {SEED}={seed} {program}\n"),
        None => String::new(),
    };
    let simpler = if tries > 0 || seed.is_none() {
        let (of, list) = (last.moves, list(&simplest));
        format!(
            "The simplest run that fails like this, of {of} moves instead of {moves}: \
             {DECISIONS}={list} {program}\n\n"
        )
    } else {
        format!("It is not made simpler, because it takes {moves} moves.\n\n")
    };
    let shown = last.shown();
    let text = format!("{what}: {failure}\n\n{repeat}{simpler}{shown}");
    (text, simplest)
}

/// Writes a trace to the file of the environment.
fn write(trace: &trace::Trace) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(trace_file().unwrap_or_default())?);
    trace.write_perfetto(&mut file)?;
    file.flush()
}

/// Finds the decisions of the simplest run that fails like `outcome`, in at most `tries` tries.
fn simplest_of(
    outcome: &Outcome,
    tries: u64,
    attempt: impl Fn(Plan, Option<u64>) -> Option<Outcome>,
) -> Vec<u32> {
    let mut best = outcome.decisions();
    let mut lowest = cost(&outcome.plan, outcome.moves);
    let mut plan = outcome.plan.clone();
    plan.trim();
    shrink(plan, lowest, tries, &mut |plan, seed| {
        let mut outcome = attempt(plan.clone(), seed)?;
        let cost = cost(&outcome.plan, outcome.moves);
        outcome.plan.trim();
        if cost < lowest {
            lowest = cost;
            best = outcome.decisions();
        }
        Some((outcome.plan, cost))
    });
    // Beyond the given decisions each decision takes the first alternative.
    best.truncate(best.iter().rposition(|&it| it > 0).map_or(0, |at| at + 1));
    best
}

/// Writes decisions in the form of the environment variable.
fn list(decisions: &[u32]) -> String {
    // An empty list would count as no setting.
    if decisions.is_empty() {
        return "0".to_owned();
    }
    let list: Vec<_> = decisions.iter().map(u32::to_string).collect();
    list.join(",")
}

/// Returns the command that repeats a run.
fn program() -> String {
    let current = thread::current();
    // A test's thread has the test's name; where tests have no thread of their own, the name is
    // unknown.
    match current.name() {
        None | Some("main") => "(the same program again)".to_owned(),
        Some(test) => {
            // Cargo sets this variable for the programs that it runs.
            let package =
                env::var("CARGO_PKG_NAME").map_or(String::new(), |it| format!("-p {it} "));
            format!("cargo test {package}-- --exact {test}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Entry;
    use std::cell::{Cell, RefCell};

    /// Creates a plan of the test's own decisions.
    fn plan(decisions: &[u32]) -> Plan {
        let entry = |&chose: &u32| Entry {
            what: "test",
            chose,
            depth: 0,
        };
        Plan {
            between: decisions.iter().map(entry).collect(),
            moves: Vec::new(),
        }
    }

    fn numbers(source: Source) -> Vec<u32> {
        match source {
            Source::Seed(_) => unreachable!("the decisions are given"),
            Source::Given(decisions) => decisions,
            Source::Plan(plan, _) => plan.between.iter().map(|it| it.chose).collect(),
        }
    }

    fn outcome(fails: bool, decisions: &[u32], moves: u64) -> Outcome {
        let failure = fails.then(|| Failure {
            why: "it is wrong".to_owned(),
            place: "here".to_owned(),
            given_up: false,
            stuck: None,
        });
        let made = decisions.iter().map(|&chose| Decision { of: 9, chose });
        Outcome {
            failure,
            made: made.collect(),
            plan: plan(decisions),
            moves,
            trace: Trace::default(),
            audits: 0,
            recording: None,
        }
    }

    /// Returns the report of a run with these decisions, and the announcement.
    fn report(
        moves: u64,
        decisions: &[u32],
        attempt: impl Fn(&[u32], u64) -> Outcome,
    ) -> (String, String) {
        let mut first = outcome(true, decisions, moves);
        let failure = first.failure.clone().unwrap();
        let announced = RefCell::default();
        let announce = |text: &str| _ = announced.replace(text.to_owned());
        let (report, _) = super::report(Some(7), &mut first, &failure, announce, |source, most| {
            assert_ne!(*announced.borrow(), "", "it is announced first");
            attempt(&numbers(source), most)
        });
        (report, announced.into_inner())
    }

    #[test]
    fn a_long_run_is_announced_and_not_made_simpler() {
        for (moves, most) in [(1_000_000, 2_000_001), (20_000, 2_100_000)] {
            let spent = Cell::new(0);
            let (report, announced) = report(moves, &[1; 500], |decisions, limit| {
                spent.set(spent.get() + limit);
                let ones = decisions.iter().filter(|&&it| it > 0);
                outcome(ones.count() > 450, decisions, moves)
            });
            assert!(announced.starts_with("seed 7 fails: it is wrong (here)"));
            assert!(spent.get() <= most, "{} moves", spent.get());
            let is_simpler = report.contains("simplest");
            assert_eq!(is_simpler, moves < 1_000_000, "{report}");
            assert!(report.contains("Repeat it: GANGER_SIM_SEED=7 "), "{report}");
        }
    }

    #[test]
    fn what_does_not_fail_again_is_not_said_to_be_repeatable() {
        // The second run passes; it fails in another way; it fails twice, and not a third time.
        for kind in 0..3 {
            let runs = Cell::new(0);
            let (report, _) = report(10, &[1, 2, 3], |decisions, _| {
                runs.set(runs.get() + 1);
                match kind {
                    0 => outcome(false, decisions, 10),
                    1 => outcome(true, &[1, 2], 10),
                    _ => outcome(runs.get() == 1, decisions, 10),
                }
            });
            assert!(report.contains("It did not fail again"), "{report}");
            assert!(!report.contains("GANGER_SIM"), "{report}");
            assert!(kind == 2 || runs.get() == 1, "{} runs", runs.get());
        }
    }

    #[test]
    fn what_fails_again_is_made_simpler() {
        let (report, _) = report(10, &[1, 2, 3, 4], |decisions, _| {
            outcome(decisions.contains(&3), decisions, 12)
        });
        let simplest = "of 12 moves instead of 10: GANGER_SIM_DECISIONS=0,0,3 cargo test ";
        assert!(report.contains(simplest), "{report}");
        let package = env::var("CARGO_PKG_NAME").map_or(String::new(), |it| format!("-p {it} "));
        assert!(
            report.contains(&format!("cargo test {package}-- ")),
            "{report}"
        );
        let exact = "-- --exact failure::tests::what_fails_again_is_made_simpler\n";
        assert!(report.contains(exact), "{report}");
    }

    #[test]
    fn what_is_alike_has_the_same_place_and_kind() {
        let failure = |why: &str, given_up| Failure {
            why: why.to_owned(),
            place: "here".to_owned(),
            given_up,
            stuck: None,
        };
        let alike = |a, b, given_up| failure(a, given_up).is_like(&failure(b, given_up));
        assert!(alike("1 is 2", "nothing like it", false));
        assert!(alike(
            "{sim|17} has not ended",
            "{sim|5} has not ended",
            true
        ));
        assert!(alike("R4 is broken: this", "R4 is broken: that", true));
        assert!(!alike(
            "no end after 12 moves",
            "{sim|5} has not ended",
            true
        ));
        let mut elsewhere = failure("1 is 2", false);
        elsewhere.place = "there".to_owned();
        assert!(!elsewhere.is_like(&failure("1 is 2", false)));
    }
}
