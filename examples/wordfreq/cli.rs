//! The command line.

use clap::Parser;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread;

const AFTER_HELP: &str = "\
A word is a run of letters of any alphabet; upper and lower case are the same. A file with a NUL
byte in its first 8 KiB is binary and is skipped. Symbolic links are not followed. A file that is
reached twice is counted twice. Ctrl-C prints what has been counted so far.

Exit status: 0, 1 if something could not be read, 2 for a wrong command line, 130 after Ctrl-C.

Examples:
  wordfreq src README.md              the 20 most frequent words of a file and a folder
  wordfreq --top 5 --json ~/notes     five, for another program to read";

/// Counts the words in all text files at and below the given paths
#[derive(Debug, Parser)]
#[command(name = "wordfreq", after_help = AFTER_HELP, max_term_width = 100)]
pub(crate) struct Options {
    /// Files, and folders to search for files
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// How many of the most frequent words to print
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) top: usize,

    /// Print a JSON object: the numbers of files, bytes and words, and the top words
    #[arg(long)]
    pub(crate) json: bool,

    /// How many threads count [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    workers: Option<u16>,

    /// Print the scheduler's statistics as well (with --json: on standard error)
    #[arg(long)]
    pub(crate) stats: bool,
}

impl Options {
    /// Returns the number of workers for the scheduler.
    pub(crate) fn workers(&self) -> usize {
        let cores = || thread::available_parallelism().map_or(1, NonZeroUsize::get);
        self.workers.map_or_else(cores, usize::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
    }
}
