//! Requests for a single process, which has its PID in the path.

use super::answer::{self, Answer, Refused, bad, refused};
use super::look;
use super::observed::Shown;
use super::site::Site;
use crate::api::{Process, Processes, ProcessesQuery, VERSION};
use ganger_proc_api::Pid;
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

/// The live process with that PID, and its scheduler; the query names the scheduler where the PID
/// is ambiguous.
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
    let pid = parse(pid)?;
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

fn parse(pid: &str) -> Result<Pid, Refused> {
    let decoded = percent_decode_str(pid).decode_utf8_lossy();
    let in_braces = match decoded.starts_with('{') {
        true => decoded.into_owned(),
        false => format!("{{{decoded}}}"),
    };
    Pid::parse_known(&in_braces).map_err(|error| match in_braces.contains('|') {
        // The name of a host that no scheduler here has.
        true => not_here(&error.to_string()),
        false => bad(format!("{error}: write the PID as host|id")),
    })
}

pub(super) fn no_process() -> Refused {
    not_here("no live process has that PID")
}

fn not_here(found: &str) -> Refused {
    let sentence = format!("{found}: /api/v1/processes has the PIDs of live processes");
    refused(StatusCode::NOT_FOUND, &sentence)
}
