//! Keys and certificates for the nodes of a cluster.

mod issue;

use crate::Failure;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The folder of the authority: each node's files are in a folder of its name
    folder: PathBuf,
    /// The names of the nodes
    #[arg(required = true)]
    names: Vec<String>,
    /// How many years the certificates are valid
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=50))]
    years: u16,
}

/// The length of a year on average, in seconds.
const YEAR: u64 = 31_556_952;

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    for name in &options.names {
        let is_of_name = |it: char| it.is_ascii_alphanumeric() || "-_.".contains(it);
        if name.is_empty() || name.starts_with('.') || !name.chars().all(is_of_name) {
            let what = "letters, digits, `-`, `_` and `.` can";
            return Err(format!("{name:?} can't be in a certificate: {what}").into());
        }
    }
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed()?;
    let year = 1970 + i32::try_from(since.as_secs() / YEAR)?;
    // Valid from the begin of this year: clocks of nodes may be behind.
    let years = [year, year + i32::from(options.years) + 1];
    issue::issue(&options.folder, &options.names, years)?;
    let folder = options.folder.display();
    for name in &options.names {
        println!("{folder}/{name}: for the machine of {name}");
    }
    let key = issue::AUTHORITY_KEY;
    println!("{folder}/{key}: for more certificates later, and for no node. Keep it secret.");
    Ok(())
}
