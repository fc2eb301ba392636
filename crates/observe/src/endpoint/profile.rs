//! Profiles, as files.
//!
//! A profile takes seconds, and the endpoint has a single thread. So a profile has a thread of its
//! own, and the thread ends at its next sample when the client has gone. A scheduler has a single
//! profile at a time, and hence a single such thread.

use super::answer::{self, Answer, Refused, refused};
use super::limits::PROFILE;
use crate::observer::Observer;
use crate::profile::ProfileError;
use ganger_proc_api::Reply;
use ganger_sched::{Handle, StepLooksRefused};
use hyper::StatusCode;
use std::thread;
use std::time::Duration;

/// The wishes of a client.
#[derive(Debug, PartialEq, Eq)]
struct Query {
    seconds: u64,
    hz: u32,
    is_folded: bool,
    scheduler: Option<u64>,
}

/// A profile for a client.
pub(super) struct Wanted {
    query: Query,
    scheduler: Handle,
}

/// Reads a query; `find` finds a scheduler by its number.
pub(super) fn wanted(
    query: &str,
    find: impl FnOnce(Option<u64>) -> Result<Handle, Refused>,
) -> Result<Wanted, Refused> {
    let bad = |sentence: String| refused(StatusCode::BAD_REQUEST, &sentence);
    let query = Query::parse(query).map_err(bad)?;
    let scheduler = find(query.scheduler)?;
    Ok(Wanted { query, scheduler })
}

impl Wanted {
    /// Returns the length of the profile.
    pub(super) fn time(&self) -> Duration {
        Duration::from_secs(self.query.seconds)
    }

    /// Makes the profile, on a thread of its own.
    pub(super) fn begin(self, reply: Reply<Result<Answer, Refused>>) {
        let builder = thread::Builder::new().name("ganger-profile".to_owned());
        // Without a thread the reply is dropped, and the client told so.
        let _detached = builder.spawn(move || {
            let made = self.make(|| !reply.is_cancelled());
            reply.complete(made);
        });
    }

    fn make(&self, is_wanted: impl Fn() -> bool) -> Result<Answer, Refused> {
        let observer = Observer::of(&self.scheduler);
        let profile = observer.profile_while(self.time(), self.query.hz, is_wanted);
        let profile = profile.map_err(|error| refused(status(error), &error.to_string()))?;
        Ok(match self.query.is_folded {
            true => answer::file("text/plain; charset=utf-8", None, profile.folded().into()),
            false => {
                let name = Some("profile.pb.gz");
                answer::file("application/octet-stream", name, profile.pprof())
            }
        })
    }
}

fn status(error: ProfileError) -> StatusCode {
    match error {
        ProfileError::Refused(StepLooksRefused::Busy) => StatusCode::CONFLICT,
        ProfileError::Refused(_) => StatusCode::FORBIDDEN,
        ProfileError::Rate(_) => StatusCode::BAD_REQUEST,
    }
}

impl Query {
    fn parse(text: &str) -> Result<Self, String> {
        let mut query = Self {
            seconds: 5,
            hz: 99,
            is_folded: false,
            scheduler: None,
        };
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            match &*name {
                "seconds" => query.seconds = number(&name, &value, 1, PROFILE.as_secs())?,
                "hz" => query.hz = number(&name, &value, 1, 1_000)?,
                "scheduler" => query.scheduler = Some(number(&name, &value, 1, u64::MAX)?),
                "format" if value == "pprof" => query.is_folded = false,
                "format" if value == "folded" => query.is_folded = true,
                "format" => return Err("a profile has format=pprof or folded".to_owned()),
                _ => {
                    let all = "a profile has the parameters seconds, hz, format and scheduler";
                    return Err(format!("{all}: leave the others out"));
                }
            }
        }
        Ok(query)
    }
}

fn number<N>(name: &str, value: &str, least: N, most: N) -> Result<N, String>
where
    N: std::str::FromStr + PartialOrd + std::fmt::Display,
{
    let number = value.parse().ok();
    let number = number.filter(|it| (&least..=&most).contains(&it));
    number.ok_or_else(|| format!("{name} is a number from {least} to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_have_defaults_and_limits() {
        let default = Query::parse("").unwrap();
        assert_eq!((default.seconds, default.hz), (5, 99));
        let text = "seconds=60&hz=1000&format=folded&scheduler=2";
        let all = Query::parse(text).unwrap();
        assert_eq!((all.seconds, all.hz, all.is_folded), (60, 1_000, true));
        assert_eq!(all.scheduler, Some(2));
        assert_eq!(Query::parse("format=pprof"), Ok(default));
        for (text, part) in [
            ("seconds=61", "from 1 to 60"),
            ("seconds=0", "from 1 to 60"),
            ("seconds=", "from 1 to 60"),
            ("hz=1001", "from 1 to 1000"),
            ("hz=-1", "from 1 to 1000"),
            ("scheduler=x", "scheduler is a number"),
            ("format=svg", "pprof or folded"),
            ("second=1", "leave the others out"),
        ] {
            let error = Query::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
