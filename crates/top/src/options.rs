//! The command line.

use crate::source::Address;
use std::path::PathBuf;
use std::time::Duration;

/// A live view of a running Ganger program, in the terminal
///
/// Shows the schedulers of a program with an endpoint (`ganger::observe::serve`): workers, busy
/// processes, growing mailboxes, waits and deadlocks, dead letters and alarms. `?` lists the keys.
/// Reads, and acts on a process where the program allows that (`x`). Survives the end of the
/// program, and goes on when the program is back.
///
/// Sort by busy, messages and growth over a window (`n`); filter with `/`, for instance
/// `state:blocked -type:Supervisor sql`. The letters in the last column are warnings: Y never
/// yields, M its mailbox grows, S wakes itself, W waits for long.
#[derive(Debug, Clone, clap::Parser)]
#[command(name = "ganger-top", version, max_term_width = 100)]
pub struct Options {
    /// The address of the endpoint: host:port, or `http://host:port`
    #[arg(default_value = "127.0.0.1:7007")]
    pub address: Address,

    /// The token of the endpoint, if it needs one
    #[arg(long, env = "GANGER_TOKEN", hide_env_values = true)]
    pub token: Option<String>,

    /// The time between two looks: 500ms, 1s, 1m
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = period)]
    pub every: Duration,

    /// Shows a program of the imagination, without an endpoint
    #[arg(long)]
    pub demo: bool,

    /// Prints the head and the first processes once, after two looks, and ends
    #[arg(long)]
    pub once: bool,

    /// With --once: prints JSON, with rates, the newest snapshot, and the first processes
    #[arg(long)]
    pub json: bool,

    /// With --once: the number of printed processes [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub top: Option<u32>,

    /// Begins with this filter, as the key / takes it
    #[arg(long, value_name = "FILTER", default_value = "")]
    pub filter: ganger_observe::api::Filter,

    /// Prints the ten longest turns and waits of a trace's file, and ends
    #[arg(long, value_name = "TRACE", conflicts_with_all = ["address", "demo", "once", "filter"])]
    pub file: Option<PathBuf>,
}

impl Options {
    /// Checks the needs of the options for a single look.
    ///
    /// # Errors
    /// A sentence with the missing option.
    pub fn check(&self) -> Result<(), String> {
        let given = [("--json", self.json), ("--top", self.top.is_some())];
        match given.into_iter().find(|it| it.1 && !self.once) {
            Some((option, _)) => Err(format!(
                "{option} is for a single look that is printed: add --once"
            )),
            None => Ok(()),
        }
    }
}

/// Reads a time from 100 ms to an hour.
fn period(text: &str) -> Result<Duration, String> {
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000)];
    let parsed = units.iter().find_map(|(unit, millis)| {
        let number: f64 = text.strip_suffix(unit)?.trim().parse().ok()?;
        Some(number * f64::from(*millis))
    });
    match parsed {
        Some(millis) if (100.0..=3_600_000.0).contains(&millis) => {
            Ok(Duration::from_secs_f64(millis / 1_000.0))
        }
        _ => Err("write a time from 100ms to 60m, such as 500ms or 2s".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory as _, Parser as _};

    fn parse(arguments: &[&str]) -> Result<Options, String> {
        let all = ["ganger-top"].iter().chain(arguments);
        Options::try_parse_from(all).map_err(|it| it.to_string())
    }

    #[test]
    fn options_are_consistent_and_have_their_defaults() {
        Options::command().debug_assert();
        let options = parse(&[]).unwrap();
        assert_eq!(options.address.to_string(), "127.0.0.1:7007");
        assert_eq!((options.every, options.top), (Duration::from_secs(1), None));
        let options = parse(&["http://[::1]:80", "--every", "1.5s", "--once", "--json"]).unwrap();
        assert_eq!(options.address.to_string(), "[::1]:80");
        assert_eq!(options.every, Duration::from_millis(1_500));
    }

    #[test]
    fn a_wrong_option_says_what_is_right() {
        for wrong in ["1", "0s", "99ms", "61m", "NaNs", "infs", "-1s", "s", ""] {
            let error = parse(&[&*format!("--every={wrong}")]).unwrap_err();
            assert!(error.contains("500ms or 2s"), "{wrong}: {error}");
        }
        assert!(parse(&["https://a"]).unwrap_err().contains("speaks no TLS"));
        assert!(
            parse(&["--filter", "state:lost"])
                .unwrap_err()
                .contains("use ready")
        );
        for alone in [&["--json"][..], &["--demo", "--json"], &["--top", "5"]] {
            let error = parse(alone).unwrap().check().unwrap_err();
            assert!(error.ends_with("printed: add --once"), "{error}");
        }
        assert_eq!(
            parse(&["--once", "--json", "--top", "5"]).unwrap().check(),
            Ok(())
        );
        assert!(parse(&["--file", "a", "--once"]).is_err());
    }
}
