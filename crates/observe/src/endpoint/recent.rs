//! The last events of a process.
//!
//! **Problem.** The recorder's rings are copied for an answer: megabytes, as for a trace. Viewers
//! ask about ended processes as often as about live processes.
//!
//! **Protocol.** The answer is made on the thread of traces, one at a time. The PID says which
//! scheduler is asked, and the query does where several have it.

use super::answer::{self, Answer, Refused, bad, refused};
use super::observed::Shown;
use super::process::{no_process, parse};
use super::site::Site;
use super::{look, traces};
use crate::api::{ProcessEvent, ProcessEvents, VERSION};
use crate::observer::Observer;
use crate::recent::{MOST, Recent};
use ganger_proc_api::Pid;
use ganger_task::Cx;
use hyper::StatusCode;
use std::str::FromStr;

/// How many events, where the query has no number.
const USUAL: usize = 100;

/// The query: `n` and `scheduler`, each of them at most once.
#[derive(Debug, Default, PartialEq, Eq)]
struct Query {
    n: Option<usize>,
    scheduler: Option<u64>,
}

impl FromStr for Query {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut query = Self::default();
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            let shown: String = value.chars().take(40).collect();
            let is_twice = match &*name {
                "n" => {
                    let n = value.parse().ok().filter(|it| (1..=MOST).contains(it));
                    let wrong = || format!("n={shown:?} is not a number from 1 to {MOST}");
                    query.n.replace(n.ok_or_else(wrong)?).is_some()
                }
                "scheduler" => {
                    let wrong = || format!("scheduler={shown:?} is not a number");
                    let number = value.parse().ok().ok_or_else(wrong)?;
                    query.scheduler.replace(number).is_some()
                }
                _ => {
                    let name: String = name.chars().take(40).collect();
                    let known = "use n and scheduler";
                    return Err(format!("no parameter is called {name:?}: {known}"));
                }
            };
            if is_twice {
                return Err(format!("the parameter {name:?} is there twice"));
            }
        }
        Ok(query)
    }
}

/// Answers with the last events of the process, which may have ended.
pub(super) async fn answer(
    cx: &Cx,
    site: &Site,
    (pid, query): (&str, &str),
) -> Result<Answer, Refused> {
    let query: Query = query.parse().map_err(bad)?;
    site.check_number(query.scheduler)?;
    let pid = parse(site, pid, query.scheduler)?;
    let mut schedulers = site.observed.schedulers();
    schedulers.retain(|it| {
        let is_asked = query.scheduler.is_none_or(|number| number == it.number);
        is_asked && it.handle.is_local(pid)
    });
    if schedulers.len() > 1 {
        let sentence = "several schedulers have processes with such PIDs: add ?scheduler=NUMBER";
        return Err(bad(sentence));
    }
    let shown = schedulers.pop().ok_or_else(no_process)?;
    let n = query.n.unwrap_or(USUAL);
    traces::alone(cx, &site.tracing, move || make(&shown, pid, n)).await
}

fn make(shown: &Shown, pid: Pid, n: usize) -> Result<Answer, Refused> {
    let recent = Observer::of(&shown.handle).events(pid, n);
    let recent = recent.map_err(|error| refused(StatusCode::NOT_FOUND, &error.to_string()))?;
    if recent.is_empty() && look::single(shown, pid).is_none() {
        return Err(no_process());
    }
    Ok(answer::json(&ProcessEvents {
        version: VERSION,
        scheduler: shown.number,
        pid: pid.to_string(),
        events: recent.into_iter().map(event).collect(),
    }))
}

fn event(recent: Recent) -> ProcessEvent {
    let Recent {
        at,
        thread,
        what,
        text,
    } = recent;
    ProcessEvent {
        at_ns: u64::try_from(at.as_nanos()).unwrap_or(u64::MAX),
        thread: thread.to_string(),
        what: what.to_owned(),
        text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // pins: V15
    #[test]
    fn a_query_has_a_number_of_events_within_the_limit() {
        let read = |text: &str| text.parse::<Query>();
        assert_eq!(read(""), Ok(Query::default()));
        let query = Query {
            n: Some(1_000),
            scheduler: Some(2),
        };
        assert_eq!(read("n=1000&scheduler=2"), Ok(query));
        for (text, mistake) in [
            ("n=0", "n=\"0\" is not a number from 1 to 1000"),
            ("n=1001", "n=\"1001\" is not a number"),
            ("n=1&n=2", "the parameter \"n\" is there twice"),
            ("scheduler=x", "scheduler=\"x\" is not a number"),
            ("last=5", "no parameter is called \"last\": use n and"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(mistake), "{error}");
        }
    }
}
