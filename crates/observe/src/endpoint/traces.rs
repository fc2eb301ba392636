//! The file of a trace.
//!
//! **Problem.** The trace of a full recorder takes a hundred megabytes during its making, and up to
//! a second. Other requests are answered meanwhile, and a flood of questions takes no more memory.
//!
//! **Protocol.** The file is made on a thread beside the endpoint's worker, one file at a time for
//! all clients. A second client is refused, and asks again.

use super::answer::{Answer, Refused, file, refused};
use super::observed::{Observed, Shown};
use crate::observer::Observer;
use crate::recording::NotRecording;
use crate::trace::Trace;
use ganger_sync::TryLock;
use ganger_task::Cx;
use hyper::StatusCode;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// The longest trace.
const LONGEST: u64 = 3_600;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Perfetto,
    Json,
}

/// The query: `seconds`, `format` and `scheduler`, each of them at most once.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TraceQuery {
    /// Without a number: as long as the recorder was built for.
    seconds: Option<u64>,
    format: Option<Format>,
    pub(super) scheduler: Option<u64>,
}

impl FromStr for TraceQuery {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut query = Self::default();
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            let shown: String = value.chars().take(40).collect();
            let is_twice = match &*name {
                "seconds" => {
                    let seconds = value.parse().ok();
                    let seconds = seconds.filter(|it| (1..=LONGEST).contains(it));
                    let wrong = || format!("seconds={shown:?} is not a number from 1 to {LONGEST}");
                    query.seconds.replace(seconds.ok_or_else(wrong)?).is_some()
                }
                "format" => {
                    let format = match &*value {
                        "perfetto" => Format::Perfetto,
                        "json" => Format::Json,
                        _ => {
                            return Err(format!(
                                "format={shown:?} is not a format: use perfetto or json"
                            ));
                        }
                    };
                    query.format.replace(format).is_some()
                }
                "scheduler" => {
                    let wrong = || format!("scheduler={shown:?} is not a number");
                    let number = value.parse().ok().ok_or_else(wrong)?;
                    query.scheduler.replace(number).is_some()
                }
                _ => {
                    let name: String = name.chars().take(40).collect();
                    let known = "use seconds, format and scheduler";
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

/// Answers with the file of the only scheduler with a recorder, or of the scheduler in the query.
pub(super) async fn answer(
    cx: &Cx,
    observed: &Arc<Observed>,
    tracing: &Arc<TryLock<()>>,
    query: TraceQuery,
) -> Result<Answer, Refused> {
    let mut schedulers = observed.schedulers();
    schedulers.retain(|it| {
        let is_asked = query.scheduler.is_none_or(|number| number == it.number);
        is_asked && it.handle.is_recording()
    });
    let shown = match schedulers.len() {
        0 => return Err(refused(StatusCode::NOT_FOUND, &NotRecording.to_string())),
        1 => schedulers.remove(0),
        _ => {
            let sentence = "several schedulers record: add scheduler=NUMBER to the query";
            return Err(refused(StatusCode::BAD_REQUEST, sentence));
        }
    };
    alone(cx, tracing, move || make(&shown, &query)).await
}

/// Calls the function on the thread beside the worker, where no other trace is made there.
pub(super) async fn alone(
    cx: &Cx,
    tracing: &Arc<TryLock<()>>,
    make: impl FnOnce() -> Result<Answer, Refused> + Send + 'static,
) -> Result<Answer, Refused> {
    let tracing = Arc::clone(tracing);
    let made = cx.blocking(move || {
        let alone = tracing.try_with(|()| make());
        alone.unwrap_or_else(|_| {
            let sentence = "another client has a trace made at this moment: ask again";
            Err(refused(StatusCode::SERVICE_UNAVAILABLE, sentence))
        })
    });
    made.await.unwrap_or_else(|error| {
        let sentence = format!("the endpoint has no thread for the trace: {error}");
        Err(refused(StatusCode::SERVICE_UNAVAILABLE, &sentence))
    })
}

fn make(shown: &Shown, query: &TraceQuery) -> Result<Answer, Refused> {
    let seconds = query.seconds.map(Duration::from_secs);
    let not_there = |error: NotRecording| refused(StatusCode::NOT_FOUND, &error.to_string());
    let trace: Trace = Observer::of(&shown.handle)
        .trace(seconds)
        .map_err(not_there)?;
    let mut bytes = Vec::new();
    let (written, kind, end) = match query.format {
        Some(Format::Json) => (trace.write_json(&mut bytes), "application/json", "json"),
        _ => {
            let kind = "application/octet-stream";
            (trace.write_perfetto(&mut bytes), kind, "pftrace")
        }
    };
    written.map_err(|error| {
        let sentence = format!("the trace can't be written: {error}; report it");
        refused(StatusCode::INTERNAL_SERVER_ERROR, &sentence)
    })?;
    let name = format!("ganger-{}.{end}", shown.number);
    Ok(file(kind, Some(&name), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<TraceQuery, String> {
        text.parse()
    }

    // pins: V15
    #[test]
    fn a_query_is_read_and_a_mistake_is_named() {
        assert_eq!(read(""), Ok(TraceQuery::default()));
        let query = TraceQuery {
            seconds: Some(5),
            format: Some(Format::Json),
            scheduler: Some(2),
        };
        assert_eq!(read("seconds=5&format=json&scheduler=2"), Ok(query));
        for (text, mistake) in [
            ("seconds=0", "seconds=\"0\" is not a number from 1 to 3600"),
            ("seconds=3601", "seconds=\"3601\" is not a number"),
            ("seconds=x", "seconds=\"x\" is not a number"),
            (
                "seconds=1&seconds=2",
                "the parameter \"seconds\" is there twice",
            ),
            (
                "format=pdf",
                "format=\"pdf\" is not a format: use perfetto or json",
            ),
            ("scheduler=-1", "scheduler=\"-1\" is not a number"),
            ("second=1", "no parameter is called \"second\": use seconds"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(mistake), "{error}");
        }
    }
}
