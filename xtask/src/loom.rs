//! The loom models: each in a process of its own, as many at a time as the machine has cores.
//!
//! A process a model gives its exact time, and an end to one that runs away. Models are the tests
//! in the files `tests/loom_*.rs`, and the unit tests in modules whose name starts with `loom_`.

use crate::Failure;
use crate::cargo::Cargo;
use crate::root::root;
use crate::totals::Totals;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Runs the deep set: the same models with a higher bound on preemptions
    #[arg(long)]
    deep: bool,

    /// The bound of the deep set; 255 is as good as none
    #[arg(long, value_name = "N", default_value_t = 6, requires = "deep")]
    preemptions: u8,

    /// After how many seconds a model of the deep set stops; what it explored so far counts
    #[arg(long, value_name = "N", default_value_t = 600, requires = "deep")]
    seconds: u64,

    /// The crates, by package or by folder [default: all that have models]
    #[arg(value_name = "CRATE")]
    crates: Vec<String>,
}

/// One test, and the program that has it.
struct Model {
    package: String,
    program: PathBuf,
    /// The test file, or `unit`.
    file: String,
    name: String,
}

/// Builds the models and runs them all, also when one fails.
pub(crate) fn run(options: &Options, totals: &mut Totals) -> Result<(), Failure> {
    let mut models = Vec::new();
    for package in chosen(&options.crates, packages()?)? {
        models.extend(build(&package)?);
    }
    if models.is_empty() {
        return Err("there are no models".into());
    }
    let queue = Mutex::new(models.into_iter());
    let results = Mutex::new(Totals::default());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZeroUsize::get) {
            scope.spawn(|| {
                // A lock is poisoned only if a thread has panicked, and then the scope panics too.
                while let Some(model) = queue.lock().ok().and_then(|mut queue| queue.next()) {
                    let passed = model.run(options);
                    if let Ok(mut results) = results.lock() {
                        results.count(passed);
                    }
                }
            });
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

/// The packages that have models: those that depend on loom. All others get it through
/// `ganger-sync`.
pub(crate) fn packages() -> Result<Vec<String>, Failure> {
    let mut packages = Vec::new();
    for entry in fs::read_dir(root().join("crates"))? {
        let folder = entry?.path();
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        if manifest.contains("cfg(loom)")
            && let Some(name) = folder.file_name()
        {
            packages.push(format!("ganger-{}", name.to_string_lossy()));
        }
    }
    packages.sort();
    Ok(packages)
}

fn folder(package: &str) -> PathBuf {
    root()
        .join("crates")
        .join(package.trim_start_matches("ganger-"))
}

fn chosen(asked: &[String], packages: Vec<String>) -> Result<Vec<String>, Failure> {
    if asked.is_empty() {
        return Ok(packages);
    }
    let find = |name: &String| {
        let same = |package: &&String| *package == name || package[7..] == **name;
        let found = packages.iter().find(same).cloned();
        found.ok_or_else(|| format!("{name} has no models; these have: {}", packages.join(", ")))
    };
    Ok(asked.iter().map(find).collect::<Result<_, _>>()?)
}

/// Builds a package's test programs and asks them for their models.
fn build(package: &str) -> Result<Vec<Model>, Failure> {
    let test = Cargo::new(["test", "--release", "--no-run", "--lib", "-p", package]).under_loom();
    let has_files = fs::read_dir(folder(package).join("tests"))
        .is_ok_and(|mut all| all.any(|file| file.is_ok_and(|file| is_model_file(&file.path()))));
    let test = if has_files {
        test.args(["--test", "loom_*"])
    } else {
        test
    };
    let mut models = Vec::new();
    for (source, program) in executables(&test.stderr()?) {
        let program = root().join(program);
        let list = Command::new(&program)
            .args(["--list", "--format", "terse"])
            .output()?;
        if !list.status.success() {
            return Err(format!("{} --list: {}", program.display(), list.status).into());
        }
        let source = Path::new(source);
        let is_file = is_model_file(source);
        let stem = source.file_stem().unwrap_or_default().to_string_lossy();
        let file = if is_file {
            stem.into_owned()
        } else {
            "unit".to_owned()
        };
        let list = String::from_utf8(list.stdout)?;
        let names = list.lines().filter_map(|line| line.strip_suffix(": test"));
        models.extend(
            names
                .filter(|name| is_file || name.contains("loom_"))
                .map(|name| Model {
                    package: package.to_owned(),
                    program: program.clone(),
                    file: file.clone(),
                    name: name.to_owned(),
                }),
        );
    }
    Ok(models)
}

fn is_model_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("loom_") && name.ends_with(".rs")
}

/// The source files and test programs in what `cargo test --no-run` says.
///
/// `  Executable tests/loom_drop.rs (target/loom/release/deps/loom_drop-0123456789abcdef)`
fn executables(stderr: &str) -> impl Iterator<Item = (&str, &str)> {
    stderr.lines().filter_map(|line| {
        let line = line.trim_start().strip_prefix("Executable ")?;
        let (source, program) = line.strip_suffix(')')?.split_once(" (")?;
        Some((source.trim_start_matches("unittests ").trim(), program))
    })
}

impl Model {
    /// Runs it, and says how it went in one line, or with all its output when it failed.
    fn run(&self, options: &Options) -> bool {
        let mut command = Command::new(&self.program);
        command
            .args(["--exact", &self.name, "--nocapture"])
            .current_dir(folder(&self.package));
        if options.deep {
            command.env("LOOM_MAX_PREEMPTIONS", options.preemptions.to_string());
            command.env("LOOM_MAX_DURATION", options.seconds.to_string());
        }
        let start = Instant::now();
        let output = command.output();
        let time = start.elapsed();
        let (passed, text) = match output {
            Ok(output) => {
                let stdout = String::from_utf8_lossy(&output.stdout);
                let ran = Totals {
                    passed: 1,
                    failed: 0,
                };
                let counted = stdout.lines().any(|line| Totals::of_line(line) == ran);
                let text = format!("{stdout}{}", String::from_utf8_lossy(&output.stderr));
                (output.status.success() && counted, text)
            }
            Err(error) => (false, error.to_string()),
        };
        let cut = options.deep && time >= Duration::from_secs(options.seconds);
        let verdict = match (passed, cut) {
            (true, false) => "ok",
            (true, true) => "ok (stopped at the time limit)",
            (false, _) => "FAILED",
        };
        let Self {
            package,
            file,
            name,
            ..
        } = self;
        println!(
            "{:>7.1} s  {package} {file} {name}: {verdict}",
            time.as_secs_f64()
        );
        if !passed {
            println!("{text}");
        }
        passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_found_in_what_cargo_says() {
        let stderr = "   Compiling ganger-deque v0.1.0 (/crates/deque)\n    Finished `release`\n  \
                      Executable unittests src/lib.rs (target/loom/release/deps/ganger_deque-1)\n  \
                      Executable tests/loom_drop.rs (target/loom/release/deps/loom_drop-2)\n";
        let found: Vec<_> = executables(stderr).collect();
        let programs = [
            "target/loom/release/deps/ganger_deque-1",
            "target/loom/release/deps/loom_drop-2",
        ];
        assert_eq!(
            found,
            [
                ("src/lib.rs", programs[0]),
                ("tests/loom_drop.rs", programs[1])
            ]
        );
        assert!(is_model_file(Path::new("tests/loom_drop.rs")));
        assert!(!is_model_file(Path::new("src/lib.rs")));
    }

    #[test]
    fn crates_are_chosen_by_package_or_folder() {
        let all = || vec!["ganger-deque".to_owned(), "ganger-mpsc".to_owned()];
        let asked = |name: &str| chosen(&[name.to_owned()], all());
        assert_eq!(asked("mpsc").unwrap(), ["ganger-mpsc"]);
        assert_eq!(asked("ganger-deque").unwrap(), ["ganger-deque"]);
        assert_eq!(chosen(&[], all()).unwrap(), all());
        let error = asked("relay").unwrap_err().to_string();
        assert_eq!(
            error,
            "relay has no models; these have: ganger-deque, ganger-mpsc"
        );
    }

    #[test]
    fn crates_with_models_are_found() {
        assert!(packages().unwrap().contains(&"ganger-sync".to_owned()));
    }
}
