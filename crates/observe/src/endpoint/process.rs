//! Requests for a single process, which has its PID in the path.

use super::answer::{self, Answer, Refused, bad, refused};
use super::limits::HAPPEN;
use super::look;
use super::observed::Shown;
use super::site::Site;
use crate::api::{Inspected, Process, Processes, ProcessesQuery, State, VERSION};
use ganger_proc_api::{CommandError, Pid};
use ganger_sched::{InspectPanicked, InterventionError};
use ganger_task::{Cx, WaitError};
use hyper::StatusCode;
use percent_encoding::percent_decode_str;

/// Shows the process.
pub(super) fn answer(site: &Site, pid: &str, query: &str) -> Result<Answer, Refused> {
    let (.., process) = find(site, pid, query)?;
    Ok(answer::json(&Processes {
        version: VERSION,
        live: 1,
        matched: 1,
        processes: vec![process],
    }))
}

/// Shows the state of the process, by the hook of its type.
pub(super) async fn state(
    cx: &Cx,
    site: &Site,
    (pid, query): (&str, &str),
) -> Result<Answer, Refused> {
    let (shown, pid, process) = find(site, pid, query)?;
    let asked = cx.timeout(HAPPEN, cx.ask(shown.handle.inspect(pid))).await;
    let (state, panic) = match asked {
        Ok(Ok(state)) => (state, None),
        Ok(Err(WaitError::Command(CommandError::Failed(error)))) => {
            match error.downcast::<InspectPanicked>() {
                Ok(panicked) => (None, Some(panicked.message.into())),
                Err(error) => match error.downcast::<InterventionError>() {
                    Ok(error) => return Err(not_allowed(*error)),
                    Err(error) => return Err(refused(StatusCode::CONFLICT, &error.to_string())),
                },
            }
        }
        // The process has ended, and has dropped the question.
        Ok(Err(_)) => return Err(no_process()),
        Err(_) => {
            let sentence = match process.state {
                State::Running => "the process is stuck in a step: ask again, or see its long step",
                _ => "no worker has come to the process within a second: ask again",
            };
            return Err(refused(StatusCode::SERVICE_UNAVAILABLE, sentence));
        }
    };
    Ok(answer::json(&Inspected {
        version: VERSION,
        scheduler: shown.number,
        pid: pid.to_string(),
        state,
        panic,
    }))
}

/// Finds the live process with that PID, and its scheduler; the query names the scheduler where the
/// PID is ambiguous.
pub(super) fn find(site: &Site, pid: &str, query: &str) -> Result<(Shown, Pid, Process), Refused> {
    let query: ProcessesQuery = query.parse().map_err(bad)?;
    let asked = query.scheduler;
    let plain = ProcessesQuery {
        scheduler: asked,
        ..ProcessesQuery::default()
    };
    if query != plain {
        let sentence = "a process has a single parameter, scheduler: leave the others out";
        return Err(bad(sentence));
    }
    site.check_number(asked)?;
    let pid = parse(site, pid, asked)?;
    let find = |it: Shown| {
        let is_asked = asked.is_none_or(|asked| asked == it.number) && it.handle.is_local(pid);
        let process = is_asked.then(|| look::single(&it, pid)).flatten()?;
        Some((it, pid, process))
    };
    let all = site.observed.schedulers();
    let mut found: Vec<_> = all.into_iter().filter_map(find).collect();
    if found.len() > 1 {
        return Err(bad(
            "several schedulers have a process with that PID: add ?scheduler=NUMBER",
        ));
    }
    found.pop().ok_or_else(no_process)
}

/// Reads a PID: `host|id` or `id`, in braces or without. An id alone belongs to the scheduler in
/// the query, or to the only scheduler.
pub(super) fn parse(site: &Site, pid: &str, asked: Option<u64>) -> Result<Pid, Refused> {
    let decoded = percent_decode_str(pid).decode_utf8_lossy();
    let mut in_braces = match decoded.starts_with('{') {
        true => decoded.into_owned(),
        false => format!("{{{decoded}}}"),
    };
    let has_host = in_braces.contains('|');
    if !has_host && in_braces[1..].starts_with(|it: char| it.is_ascii_digit()) {
        let mut all = site.observed.schedulers();
        all.retain(|it| asked.is_none_or(|asked| asked == it.number));
        let [only] = &*all else {
            return Err(bad(
                "an id alone is of one scheduler, and there are several, or none: write the PID \
                 as host|id",
            ));
        };
        in_braces.insert_str(1, &format!("{}|", only.handle.host_name()));
    }
    Pid::parse_known(&in_braces).map_err(|error| match has_host {
        // The name of a host that no scheduler here has.
        true => not_here(&error.to_string()),
        false => bad(format!("{error}: write the PID as host|id")),
    })
}

/// Returns the refusal of an intervention.
pub(super) fn not_allowed(error: InterventionError) -> Refused {
    let status = match error {
        InterventionError::NotFound(_) => return no_process(),
        InterventionError::NotAllowed => StatusCode::FORBIDDEN,
        _ => StatusCode::CONFLICT,
    };
    refused(status, &error.to_string())
}

pub(super) fn no_process() -> Refused {
    not_here("no live process has that PID")
}

fn not_here(found: &str) -> Refused {
    let sentence = format!("{found}: /api/v1/processes has the PIDs of live processes");
    refused(StatusCode::NOT_FOUND, &sentence)
}
