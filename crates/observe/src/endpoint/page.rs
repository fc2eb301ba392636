//! The documents for browsers: the page, the list of paths, and the login.

mod document;

use super::answer::{self, Answer};
use super::observed::Shown;
use document::DOCUMENT;
use hyper::StatusCode;
use hyper::header::CONTENT_SECURITY_POLICY;
use std::fmt::Write as _;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:2rem auto;\
                     padding:0 1rem;color-scheme:light dark}code{font-size:.95em}\
                     td{padding:.2rem 1rem .2rem 0;vertical-align:top}\
                     input,button{font:inherit;padding:.3rem .6rem}";

/// The paths, each with an example to follow and what is there.
const PATHS: [(&str, &str, &str); 22] = [
    ("/healthz", "/healthz", "whether the program is alive"),
    (
        "/readyz",
        "/readyz",
        "whether all schedulers are started, none stops, and no severe alarm is raised",
    ),
    (
        "/metrics",
        "/metrics",
        "all metrics, as Prometheus reads them",
    ),
    (
        "/api/v1/snapshot",
        "/api/v1/snapshot",
        "schedulers, workers, timers, long steps; cumulative counts",
    ),
    (
        "/api/v1/processes",
        "/api/v1/processes?top=50&by=mailbox&filter=",
        "live processes: top=1 to 1000; by=mailbox, quiet, pid, steps, events, busy, growth or \
         age; window=1s for a count over that time; filter=words, or state:, type:, method:, \
         name:, pid:, parent:, label: before a word, - before a term; scheduler=NUMBER",
    ),
    (
        "/api/v1/processes?by=quiet&filter=state:blocked",
        "/api/v1/processes?by=quiet&filter=state:blocked",
        "for example: processes that wait for a command, the longest first",
    ),
    (
        "/trace?seconds=5",
        "",
        "a file for ui.perfetto.dev: the last seconds, event by event, of a scheduler that \
         records; format=json for chrome://tracing; scheduler=NUMBER",
    ),
    (
        "/api/v1/process/{pid}",
        "",
        "one live process; the PID as host|id, or as id where there is one scheduler",
    ),
    (
        "/api/v1/process/{pid}/terminate",
        "",
        "POST: ends the process, and /cancel asks it to finish, where the program allows it",
    ),
    (
        "/api/v1/process/{pid}/suspend",
        "",
        "POST: the process takes no steps until /resume, where its scheduler allows it, too",
    ),
    (
        "/api/v1/process/{pid}/state",
        "",
        "the state of the process, where its type shows it and its scheduler allows it",
    ),
    (
        "/api/v1/process/{pid}/events?n=100",
        "",
        "the last events of the process, alive or not, of a scheduler that records: n=1 to 1000; \
         scheduler=NUMBER",
    ),
    (
        "/api/v1/process/{pid}/restart",
        "",
        "POST: its supervisor stops it and starts another one in its place, where the program \
         allows it",
    ),
    (
        "/api/v1/groups",
        "/api/v1/groups",
        "processes that are alike, with their number: by type, method, label, state and wait",
    ),
    (
        "/api/v1/tree",
        "/api/v1/tree",
        "supervisors with their children, and processes below their parents",
    ),
    (
        "/api/v1/waits",
        "/api/v1/waits",
        "the process that each process waits for, cycles first",
    ),
    (
        "/api/v1/events",
        "",
        "the snapshot as server-sent events, at most four a second",
    ),
    (
        "/api/v1/letters",
        "/api/v1/letters",
        "messages that no process has taken",
    ),
    (
        "/api/v1/nodes",
        "/api/v1/nodes",
        "nodes of a cluster, with their peers, sessions, names, leases and stores",
    ),
    (
        "/api/v1/sockets",
        "/api/v1/sockets",
        "open sockets, with their addresses and the processes that wait on them: top=1 to 1000; \
         scheduler=NUMBER; after=ID, with a scheduler, for the next page",
    ),
    (
        "/profile?seconds=5&hz=99&format=folded",
        "",
        "where steps spend their time: seconds=1 to 60; hz=1 to 1000; format=pprof, a file, or \
         folded; scheduler=NUMBER",
    ),
    ("/login", "", "takes the token, where the endpoint has one"),
];

fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\
         <style>{STYLE}</style></head><body><h1>{title}</h1>{body}</body></html>\n"
    )
}

/// Returns the page, with its policy.
pub(super) fn page() -> Answer {
    let page = answer::html(StatusCode::OK, DOCUMENT.text.clone());
    answer::with_header(page, CONTENT_SECURITY_POLICY, DOCUMENT.policy.clone())
}

/// Returns the list of the paths.
pub(super) fn list(schedulers: &[Shown]) -> String {
    let mut body = String::from("<p>Schedulers of this program:</p><ul>");
    for scheduler in schedulers {
        let (handle, number) = (&scheduler.handle, scheduler.number);
        let (host, live) = (escaped(handle.host_name().as_str()), handle.stats().live);
        // A string takes all, here and below.
        let _ = write!(
            body,
            "<li><b>{host}</b>, number {number}, {live} processes</li>"
        );
    }
    body.push_str("</ul><p>The <a href=\"/\">page</a> shows them live. Paths:</p><table>");
    for (path, example, what) in PATHS {
        let (path, example) = (escaped(path), escaped(example));
        let path = match &*example {
            "" => format!("<code>{path}</code>"),
            example => format!("<a href=\"{example}\"><code>{path}</code></a>"),
        };
        let _ = write!(body, "<tr><td>{path}</td><td>{what}</td></tr>");
    }
    body.push_str("</table>");
    document("Ganger", &body)
}

/// Returns the page of the login.
pub(super) fn log_in(was_wrong: bool) -> String {
    let wrong = match was_wrong {
        true => "<p>That is not the token of this endpoint: try again.</p>",
        false => "",
    };
    let form = "<form method=\"post\" action=\"/login\"><label>Token <input type=\"password\" \
                name=\"token\" autocomplete=\"current-password\" required autofocus></label> \
                <button>Log in</button></form>";
    document("Ganger: log in", &format!("{wrong}{form}"))
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use ganger_sched::Scheduler;

    #[test]
    fn names_are_text_and_no_html() {
        let builder = Scheduler::builder().host("<b>&\"'");
        let scheduler = builder.build().unwrap();
        let handle = scheduler.handle();
        let page = list(&[Shown { number: 1, handle }]);
        assert!(page.contains("<b>&lt;b&gt;&amp;&quot;&#39;</b>"), "{page}");
        for (path, ..) in PATHS {
            assert!(page.contains(&escaped(path)), "{path}");
        }
    }
}
