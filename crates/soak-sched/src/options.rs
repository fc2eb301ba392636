//! The command line.

use std::path::PathBuf;
use std::time::Duration;

/// The soak of Ganger's scheduler: workloads on real threads, with faults and exact accounts
///
/// Rounds that a seed draws, until the time is over. A round is a scheduler with one to four times
/// as many workers as cores. It has waves of workloads (mesh, ring, fan-in, fan-out, storms of
/// processes, commands, steps that block), with terminations, cancellations and upgrades in
/// between, and a stop with processes alive. After each wave the counts must agree. When nothing
/// moves for a while, the soak shows every worker, every process and every thread. Ctrl-C ends the
/// soak after the round, a second Ctrl-C at once.
#[derive(Debug, Clone, clap::Parser)]
#[command(name = "ganger-soak", max_term_width = 100)]
pub struct Options {
    /// For how many minutes it runs
    #[arg(long, value_name = "N", default_value_t = 5.0, value_parser = positive)]
    pub minutes: f64,

    /// For how many seconds, in the place of minutes
    #[arg(long, value_name = "N", conflicts_with = "minutes", value_parser = positive)]
    pub seconds: Option<f64>,

    /// The first seed, as printed by an earlier soak [default: any]
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,

    /// Gives up after this many seconds in which nothing moves
    #[arg(long, value_name = "N", default_value_t = 30.0, value_parser = positive)]
    pub patience: f64,

    /// After how many seconds it gives up on a round, though something moves
    #[arg(long, value_name = "N", default_value_t = 600.0, value_parser = positive)]
    pub round_limit: f64,

    /// Leaks this many bytes for each thousand processes, to try whether the soak finds the leak
    #[arg(long, value_name = "BYTES", default_value_t = 0, hide = true)]
    pub leak: u64,

    /// Writes the summary to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

impl Options {
    /// Returns for how long it runs.
    #[must_use]
    pub fn time(&self) -> Duration {
        Duration::from_secs_f64(self.seconds.unwrap_or(60.0 * self.minutes))
    }
}

/// Reads a number of seconds or minutes: up to a year.
fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number <= 525_600.0 => Ok(number),
        Ok(_) => Err("has to be more than 0, and at most 525600".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
    }

    #[test]
    fn time_is_in_minutes_or_in_seconds() {
        let time = |args: &[&str]| {
            let line = ["ganger-soak"].iter().chain(args);
            Options::try_parse_from(line).map(|options| options.time())
        };
        assert_eq!(time(&[]).unwrap(), Duration::from_secs(300));
        assert_eq!(
            time(&["--minutes", "0.5"]).unwrap(),
            Duration::from_secs(30)
        );
        assert_eq!(time(&["--seconds", "7"]).unwrap(), Duration::from_secs(7));
        for wrong in [["--minutes", "0"], ["--seconds", "-1"], ["--patience", "x"]] {
            assert!(time(&wrong).is_err(), "{wrong:?}");
        }
    }
}
