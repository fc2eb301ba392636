//! The loom models: each in a process of its own, as many at a time as the machine has cores.
//!
//! A process a model gives its exact time, and an end to a runaway model. Models are the tests in
//! the files `tests/it/loom_*.rs`, and the unit tests in modules whose name starts with `loom_`.

use crate::Failure;
use crate::cargo::{Cargo, Ending, Run, Test};
use crate::root::{IT, Tree, crates};
use crate::totals::Totals;
use std::fs;
use std::num::NonZeroUsize;
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
    /// Returns the options of the bounded set, in a bounded time.
    pub(crate) fn of_the_gate() -> Self {
        Self {
            seconds: Some(IN_THE_GATE),
            ..Self::default()
        }
    }

    /// Returns after how many seconds a model stops.
    fn limit(&self) -> Option<u64> {
        self.seconds.or(self.deep.then_some(DEEP))
    }

    /// Returns the environment of a model.
    fn env(&self) -> Vec<(&'static str, String)> {
        let preemptions = self.deep.then(|| self.preemptions.to_string());
        let seconds = self.limit().map(|seconds| seconds.to_string());
        let preemptions = preemptions.map(|it| ("LOOM_MAX_PREEMPTIONS", it));
        let seconds = seconds.map(|it| ("LOOM_MAX_DURATION", it));
        preemptions.into_iter().chain(seconds).collect()
    }
}

/// Builds the models and runs them all, even if a model fails.
pub(crate) fn run(options: &Options, totals: &mut Totals) -> Result<(), Failure> {
    let tree = Tree::own();
    let mut models = Vec::new();
    for package in chosen(&options.crates, packages()?, "models")? {
        let stderr = build(&tree, &package, None).stderr()?;
        let tests = Test::list(&stderr, &tree, &package)?;
        let tests = tests.into_iter().filter(is_model);
        models.extend(tests.map(|model| (package.clone(), model)));
    }
    let passed = at_a_time(cores(), models, |(package, model)| {
        run_one(&package, &model, options)
    });
    let mut results = Totals::default();
    passed.into_iter().for_each(|passed| results.count(passed));
    println!("loom: {results}");
    *totals += results;
    results.result()
}

/// Returns the packages with models: they depend on loom. All other packages get loom through
/// `ganger-sync`.
pub(crate) fn packages() -> Result<Vec<String>, Failure> {
    let with_loom = crates()?.into_iter().filter(|(_, manifest)| {
        let targets = manifest.get("target").and_then(toml::Value::as_table);
        targets.is_some_and(|targets| targets.keys().any(|it| it.contains("ganger_loom")))
    });
    Ok(with_loom.map(|(name, _)| name).collect())
}

/// Returns the asked packages of `packages`, by package or by folder; without any, all of them. The
/// error for another name says that it has no `what`.
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
pub(crate) fn build(tree: &Tree, package: &str, only: Option<&str>) -> Cargo {
    let test = format!("test --release --no-run --all-features -p {package}");
    let test = Cargo::new(&test).at(tree).under_loom();
    let folder = tree.package(package).join("tests").join(IT);
    let mut files = fs::read_dir(folder).into_iter().flatten().flatten();
    match only {
        Some("unit") => test.args("--lib"),
        Some(file) => test.args("--test").arg(tree.program(package, file)),
        None if files.any(|file| file.file_name().to_string_lossy().starts_with("loom_")) => {
            test.args("--lib --test it")
        }
        None => test.args("--lib"),
    }
}

pub(crate) fn is_model(test: &Test) -> bool {
    test.called.contains("loom_")
}

/// Returns how many models the machine can run at a time.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Does all the work, `threads` pieces at a time, and returns the results in any order.
pub(crate) fn at_a_time<T: Send, R: Send>(
    threads: usize,
    work: Vec<T>,
    run: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let queue = Mutex::new(work.into_iter());
    let next = || queue.lock().expect("no thread panics with it").next();
    let worker = || Vec::from_iter(std::iter::from_fn(next).map(&run));
    thread::scope(|scope| {
        let threads = Vec::from_iter((0..threads).map(|_| scope.spawn(worker)));
        let results = threads
            .into_iter()
            .map(|it| it.join().expect("no work panics"));
        results.flatten().collect()
    })
}

/// Runs a model, and prints its result in a line, or all its output if it failed.
fn run_one(package: &str, model: &Test, options: &Options) -> bool {
    let limit = options.limit().map(Duration::from_secs);
    let most = MOST.max(TIMES * limit.unwrap_or_default());
    let Run { ending, time, text } = model.run(&options.env(), most);
    let verdict = match ending {
        Ending::Passed if limit.is_some_and(|it| time >= it) => "ok (stopped at the time limit)",
        Ending::Passed => "ok",
        Ending::Hung => "FAILED: it does not end",
        Ending::Failed | Ending::Killed => "FAILED",
    };
    // The name of the test comes first in a line.
    let told = text.lines().filter_map(|line| line.split_once("runs: "));
    let runs: u64 = told.filter_map(|(_, runs)| runs.parse::<u64>().ok()).sum();
    let seconds = time.as_secs_f64();
    let called = &model.called;
    println!("{seconds:>7.1} s {runs:>7} runs  {package} {called}: {verdict}");
    if ending != Ending::Passed {
        println!("{text}");
    }
    ending == Ending::Passed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_chosen_by_package_or_folder() {
        let all = || vec!["ganger-deque".to_owned(), "ganger-mpsc".to_owned()];
        let asked = |name: &str| chosen(&[name.to_owned()], all(), "models");
        assert_eq!(asked("mpsc").unwrap(), asked("ganger-mpsc").unwrap());
        let error = asked("relay").unwrap_err().to_string();
        assert!(error.starts_with("relay has no models; these have: "));
    }

    #[test]
    fn every_night_explores_all_crates_with_models() {
        let workflow = include_str!("../../.github/workflows/nightly.yml");
        let folders = packages().unwrap().join(", ").replace("ganger-", "");
        let matrix = format!("crate: [{folders}]");
        assert!(workflow.contains(&matrix), "{matrix}");
    }
}
