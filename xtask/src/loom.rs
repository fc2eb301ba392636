//! The loom models: each in a process of its own, as many at a time as the machine has cores.
//!
//! A process a model gives its exact time, and an end to a runaway model. Models are the tests in
//! the files `tests/it/loom_*.rs`, and the unit tests in modules whose name starts with `loom_`.

use crate::Failure;
use crate::cargo::{Cargo, Ending, Run, Test};
use crate::root::{IT, Tree, root};
use crate::totals::Totals;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

/// Longer than any model takes on a busy machine, and than several times the limit of the deep set.
const MOST: Duration = Duration::from_secs(1_200);
const TIMES: u32 = 4;

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Runs the deep set: the same models with a higher bound on preemptions
    #[arg(long)]
    deep: bool,

    /// The bound of the deep set; 255 is as good as none
    #[arg(long, value_name = "N", default_value_t = 6, requires = "deep")]
    preemptions: u8,

    /// Stops a model after this many seconds; its exploration so far counts [default: 600 in the
    /// deep set, never otherwise]
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,

    /// The crates, by package or by folder [default: all with models]
    #[arg(value_name = "CRATE")]
    crates: Vec<String>,
}

/// The time limit of a model in the gate, enough for five models of six; slower models run to their
/// end every night.
const IN_THE_GATE: u64 = 12;

/// The seconds of a model in the deep set.
const DEEP: u64 = 600;

impl Options {
    /// The bounded set, in a bounded time.
    pub(crate) fn of_the_gate() -> Self {
        Self {
            seconds: Some(IN_THE_GATE),
            ..Self::default()
        }
    }

    /// After how many seconds a model stops.
    fn limit(&self) -> Option<u64> {
        self.seconds.or(self.deep.then_some(DEEP))
    }

    /// Returns the environment of a model.
    fn env(&self) -> Vec<(&'static str, String)> {
        let mut env = Vec::new();
        if self.deep {
            env.push(("LOOM_MAX_PREEMPTIONS", self.preemptions.to_string()));
        }
        if let Some(seconds) = self.limit() {
            env.push(("LOOM_MAX_DURATION", seconds.to_string()));
        }
        env
    }
}

/// Builds the models and runs them all, even if a model fails.
pub(crate) fn run(options: &Options, totals: &mut Totals) -> Result<(), Failure> {
    let tree = Tree::own();
    let mut models = Vec::new();
    for package in chosen(&options.crates, packages()?, "models")? {
        let stderr = build(&tree, &package, None)?.stderr()?;
        let tests = Test::list(&stderr, &tree, &package)?;
        let tests = tests.into_iter().filter(is_model);
        models.extend(tests.map(|model| (package.clone(), model)));
    }
    if models.is_empty() {
        return Err("there are no models".into());
    }
    let results = Mutex::new(Totals::default());
    at_a_time(cores(), models, |_, (package, model)| {
        let passed = run_one(&package, &model, options);
        // A lock is poisoned only if a thread has panicked, and then the caller panics too.
        if let Ok(mut results) = results.lock() {
            results.count(passed);
        }
    });
    let results = results.into_inner()?;
    println!("loom: {results}");
    *totals += results;
    if results.failed == 0 {
        Ok(())
    } else {
        Err(format!("{} models", results.failed).into())
    }
}

/// Returns the packages with models: they depend on loom. All other packages get loom through
/// `ganger-sync`.
pub(crate) fn packages() -> Result<Vec<String>, Failure> {
    let mut packages = Vec::new();
    for entry in fs::read_dir(root().join("crates"))? {
        let folder = entry?.path();
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        if manifest.contains("cfg(ganger_loom)")
            && let Some(name) = folder.file_name()
        {
            packages.push(format!("ganger-{}", name.to_string_lossy()));
        }
    }
    packages.sort();
    Ok(packages)
}

/// Returns the asked packages of `packages`, by package or by folder; without any, all of them. The
/// error names `what` they have.
pub(crate) fn chosen(
    asked: &[String],
    packages: Vec<String>,
    what: &str,
) -> Result<Vec<String>, Failure> {
    if asked.is_empty() {
        return Ok(packages);
    }
    let find = |name: &String| {
        let same = |package: &&String| *package == name || package[7..] == **name;
        let found = packages.iter().find(same).cloned();
        found.ok_or_else(|| format!("{name} has no {what}; these have: {}", packages.join(", ")))
    };
    Ok(asked.iter().map(find).collect::<Result<_, _>>()?)
}

/// Returns the call that builds a package's test programs with models, or only the program of a
/// file in `tests` or of `unit`.
pub(crate) fn build(tree: &Tree, package: &str, only: Option<&str>) -> Result<Cargo, Failure> {
    let test = Cargo::new(["test", "--release", "--no-run", "--all-features", "-p"]);
    let test = test.args([package]);
    let test = test.at(tree).under_loom();
    Ok(match only {
        Some("unit") => test.args(["--lib"]),
        Some(file) => test.args(["--test", tree.program(package, file)]),
        None if has_model_files(&tree.package(package).join("tests").join(IT))? => {
            test.args(["--lib", "--test", IT])
        }
        None => test.args(["--lib"]),
    })
}

fn has_model_files(folder: &Path) -> Result<bool, Failure> {
    if !folder.is_dir() {
        return Ok(false);
    }
    for file in fs::read_dir(folder)? {
        let name = file?.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("loom_") && name.ends_with(".rs") {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(crate) fn is_model(test: &Test) -> bool {
    test.file.starts_with("loom_") || test.name.contains("loom_")
}

/// As many as the machine can run at a time.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Does all the work, `threads` pieces at a time; each gets the number of its thread, too.
pub(crate) fn at_a_time<T: Send>(threads: usize, work: Vec<T>, run: impl Fn(usize, T) + Sync) {
    let queue = Mutex::new(work.into_iter());
    let (queue, run) = (&queue, &run);
    thread::scope(|scope| {
        for number in 0..threads {
            scope.spawn(move || {
                // A lock is poisoned only if a thread has panicked, and then the scope panics too.
                while let Some(piece) = queue.lock().ok().and_then(|mut queue| queue.next()) {
                    run(number, piece);
                }
            });
        }
    });
}

/// Runs a model, and prints its result in a line, or all its output if it failed.
fn run_one(package: &str, model: &Test, options: &Options) -> bool {
    let limit = options.limit().map(Duration::from_secs);
    let most = MOST.max(TIMES * limit.unwrap_or_default());
    let Run { ending, time, text } = model.run(&options.env(), Some(most));
    let passed = ending == Ending::Passed;
    let cut = limit.is_some_and(|limit| time >= limit);
    let verdict = match (passed, cut) {
        (true, false) => "ok",
        (true, true) => "ok (stopped at the time limit)",
        (false, _) if ending == Ending::Hung => "FAILED: it does not end",
        (false, _) => "FAILED",
    };
    let Test { file, name, .. } = model;
    println!(
        "{:>7.1} s {:>7} runs  {package} {file} {name}: {verdict}",
        time.as_secs_f64(),
        runs(&text),
    );
    if !passed {
        println!("{text}");
    }
    passed
}

/// Returns how many runs a model's output tells of.
fn runs(text: &str) -> u64 {
    // The name of the test comes first in a line.
    let told = text.lines().filter_map(|line| line.split_once("runs: "));
    told.filter_map(|(_, runs)| runs.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_chosen_by_package_or_folder() {
        let all = || vec!["ganger-deque".to_owned(), "ganger-mpsc".to_owned()];
        let asked = |name: &str| chosen(&[name.to_owned()], all(), "models");
        assert_eq!(asked("mpsc").unwrap(), ["ganger-mpsc"]);
        assert_eq!(asked("ganger-deque").unwrap(), ["ganger-deque"]);
        assert_eq!(chosen(&[], all(), "models").unwrap(), all());
        let error = asked("relay").unwrap_err().to_string();
        assert_eq!(
            error,
            "relay has no models; these have: ganger-deque, ganger-mpsc"
        );
    }

    #[test]
    fn the_gate_bounds_the_time_and_the_deep_set_the_preemptions_as_well() {
        let duration = |seconds: &str| ("LOOM_MAX_DURATION", seconds.to_owned());
        assert!(Options::default().env().is_empty());
        assert_eq!(Options::of_the_gate().env(), [duration("12")]);
        let deep = Options {
            deep: true,
            preemptions: 6,
            ..Options::default()
        };
        let preemptions = ("LOOM_MAX_PREEMPTIONS", "6".to_owned());
        assert_eq!(deep.env(), [preemptions, duration("600")]);
    }

    #[test]
    fn every_night_explores_all_crates_with_models() {
        let workflow = root().join(".github/workflows/nightly.yml");
        let workflow = fs::read_to_string(workflow).unwrap();
        let folders = packages().unwrap().join(", ").replace("ganger-", "");
        assert!(
            workflow.contains(&format!("crate: [{folders}]")),
            "{folders}"
        );
    }
}
