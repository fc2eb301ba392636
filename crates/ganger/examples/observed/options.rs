//! The arguments of the program.

use super::faults::Fault;
use ganger::BoxError;
use std::time::Duration;

pub(crate) const HELP: &str = "\
Opens a shop to look into, and serves its page.

  --listen ADDRESS    where the page is; 127.0.0.1:7007 unless said otherwise
  --workers NUMBER    of the scheduler; one for each processor unless said otherwise
  --sessions NUMBER   idle processes; 200 unless said otherwise
  --busy NUMBER       processes that compute a little ten times a second; none unless said otherwise
  --token TOKEN       needs it, and lets the page cancel, end and suspend processes
  --fault FAULT       begins with flood, deadlock, stuck or crash
  --for TIME          ends after 30s, 500ms or 2m
";

pub(crate) struct Options {
    pub(crate) listen: String,
    pub(crate) workers: Option<usize>,
    pub(crate) sessions: usize,
    pub(crate) busy: usize,
    pub(crate) token: Option<String>,
    pub(crate) fault: Option<Fault>,
    pub(crate) time: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:7007".to_owned(),
            workers: None,
            sessions: 200,
            busy: 0,
            token: None,
            fault: None,
            time: None,
        }
    }
}

impl Options {
    /// Returns none when help is asked for.
    pub(crate) fn parse(
        mut arguments: impl Iterator<Item = String>,
    ) -> Result<Option<Self>, BoxError> {
        let mut options = Self::default();
        while let Some(name) = arguments.next() {
            if ["-h", "--help"].contains(&&*name) {
                return Ok(None);
            }
            let mut value = || arguments.next().ok_or(format!("{name} needs a value"));
            match &*name {
                "--listen" => options.listen = value()?,
                "--workers" => options.workers = Some(value()?.parse()?),
                "--sessions" => options.sessions = value()?.parse()?,
                "--busy" => options.busy = value()?.parse()?,
                "--token" => options.token = Some(value()?),
                "--fault" => options.fault = Some(value()?.parse()?),
                "--for" => options.time = Some(time(&value()?)?),
                _ => return Err(format!("{name} is no argument; --help lists them").into()),
            }
        }
        Ok(Some(options))
    }
}

/// Reads a time such as `30s`, `500ms` or `2m`.
fn time(text: &str) -> Result<Duration, BoxError> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let milliseconds = match &text[digits.len()..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        _ => return Err(format!("{text} is not a time: say 30s, 500ms or 2m").into()),
    };
    let number: u32 = digits.parse()?;
    Ok(Duration::from_millis(u64::from(number) * milliseconds))
}
