//! The example program on the project's own files.

use crate::Failure;
use crate::cargo::Cargo;
use crate::root::{files, root};

pub(crate) fn run() -> Result<(), Failure> {
    let mut files = files()?;
    // Each crate has links to the project's licences, and nothing is counted twice.
    files.retain(|file| !root().join(file).is_symlink());
    let run = ["run", "--release", "-p", "ganger-examples"];
    let wordfreq = Cargo::new(run).args(["--bin", "wordfreq", "--features", "wordfreq"]);
    let json = wordfreq
        .args(["--", "--json", "--top", "5"])
        .paths(&files)
        .stdout()?;
    print!("{json}");
    check(&json, files.len())
}

/// Checks the program's output: a single JSON object that accounts for every file.
fn check(json: &str, files: usize) -> Result<(), Failure> {
    let line = json.trim_end();
    if !(line.starts_with('{') && line.ends_with('}') && line.lines().count() == 1) {
        return Err("wordfreq printed something else than one JSON object".into());
    }
    let number = |key| number(line, key).ok_or(format!("no number {key:?} in wordfreq's output"));
    let (counted, skipped) = (number("files")?, number("skipped")?);
    if counted == 0 || counted + skipped != files {
        let what = format!("wordfreq counted {counted} files and skipped {skipped} of {files}");
        return Err(what.into());
    }
    Ok(())
}

/// The whole number under `key`.
fn number(json: &str, key: &str) -> Option<usize> {
    let (_, rest) = json.split_once(&format!("\"{key}\":"))?;
    let rest = rest.trim_start();
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_must_be_accounted_for() {
        let json = "{\"files\":12,\"skipped\": 1,\"words\":3}\n";
        check(json, 13).unwrap();
        assert!(check(json, 12).is_err());
        assert!(check("{\"files\":0,\"skipped\":1}", 1).is_err());
    }

    #[test]
    fn other_output_is_an_error() {
        for output in [
            "",
            "12 files\n",
            "{\"files\":1}\n",
            "{\"files\":1,\"skipped\":0}\n{}\n",
        ] {
            assert!(check(output, 1).is_err(), "{output:?}");
        }
    }
}
