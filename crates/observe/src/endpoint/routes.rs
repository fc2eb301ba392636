//! The answer to each request.

use super::access::Access;
use super::answer::{self, Answer, Refused, bad, closing, refused, text, with_header};
use super::limits::{BODY, HEAD, MAKE, REQUEST};
use super::look;
use super::observed::Shown;
use super::page;
use super::passes::View;
use super::profile;
use super::site::{Site, no_scheduler};
use super::{actions, events, maker, passes, process, recent, traces, windows};
use crate::alarms::Board;
use crate::api::{Action, ProcessesQuery, SocketsQuery, read_period};
use ganger_proc_api::TypedCommand;
use ganger_sched::{Handle, Observe};
use ganger_task::Cx;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body, Bytes};
use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode};
use std::error::Error;
use std::time::Duration;

/// A path of the endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route<'a> {
    Page,
    Paths,
    Health,
    Ready,
    LogIn,
    Metrics,
    Snapshot,
    Processes,
    /// The text of a PID, as it is in the path.
    Process(&'a str),
    /// The state of the process of this PID.
    State(&'a str),
    /// The last events of the process of that PID.
    Recent(&'a str),
    /// An action on the process of this PID.
    Act(Action, &'a str),
    View(View),
    Events,
    Letters,
    Nodes,
    Sockets,
    Profile,
    Trace,
}

impl<'a> Route<'a> {
    fn of(path: &'a str) -> Option<Self> {
        Some(match path {
            "/" => Self::Page,
            "/paths" => Self::Paths,
            "/healthz" => Self::Health,
            "/readyz" => Self::Ready,
            "/login" => Self::LogIn,
            "/metrics" => Self::Metrics,
            "/api/v1/snapshot" => Self::Snapshot,
            "/api/v1/processes" => Self::Processes,
            "/api/v1/groups" => Self::View(View::Groups),
            "/api/v1/tree" => Self::View(View::Tree),
            "/api/v1/waits" => Self::View(View::Waits),
            "/api/v1/events" => Self::Events,
            "/api/v1/letters" => Self::Letters,
            "/api/v1/nodes" => Self::Nodes,
            "/api/v1/sockets" => Self::Sockets,
            "/profile" => Self::Profile,
            "/trace" => Self::Trace,
            _ => {
                let pid = path.strip_prefix("/api/v1/process/")?;
                if let Some(pid) = pid.strip_suffix("/state") {
                    return Some(Self::State(pid));
                }
                if let Some(pid) = pid.strip_suffix("/events") {
                    return Some(Self::Recent(pid));
                }
                let action = actions::of(pid).map(|(pid, action)| Self::Act(action, pid));
                action.unwrap_or(Self::Process(pid))
            }
        })
    }

    /// Returns whether an orchestrator or a browser without the token may ask.
    fn is_open(self) -> bool {
        matches!(self, Self::Health | Self::Ready | Self::LogIn)
    }

    fn takes(self, method: &Method) -> bool {
        self.methods().split(", ").any(|it| it == method.as_str())
    }

    /// Returns whether the answer costs the program something: signals to its threads, or memory.
    fn is_costly(self) -> bool {
        matches!(self, Self::Profile | Self::Trace | Self::Recent(_))
    }

    /// Returns the methods, as in the header `Allow`. Nothing costly is made without being sent.
    fn methods(self) -> &'static str {
        match self {
            costly if costly.is_costly() => "GET",
            Self::LogIn => "GET, HEAD, POST",
            Self::Act(..) => "POST",
            _ => "GET, HEAD",
        }
    }
}

/// Returns whether the endpoint has the path.
#[cfg(test)]
pub(super) fn is_path(path: &str) -> bool {
    Route::of(path).is_some()
}

/// Answers a request, in the process of its connection.
pub(super) async fn answer<B>(cx: &Cx, site: &Site, request: Request<B>) -> Answer
where
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>>,
{
    let (head, body) = request.into_parts();
    if let Err(answer) = check_size(&head, &body) {
        return *closing(answer);
    }
    // An answer before the end of a body closes the connection: hyper does so.
    let answer = match check(site, &head) {
        Ok(Route::LogIn) if head.method == Method::POST => log_in(cx, site, body).await,
        Ok(route) => without_body(cx, site, route, &head).await,
        Err(answer) => Err(answer),
    };
    answer.unwrap_or_else(|refused| *refused)
}

/// Checks the limits of heads and bodies.
fn check_size(head: &Parts, body: &impl Body) -> Result<(), Refused> {
    let fields = head.headers.iter();
    let fields = fields.map(|(name, value)| name.as_str().len() + value.len() + 4);
    let line = head.method.as_str().len() + length(&head.uri) + 12;
    if line + fields.sum::<usize>() > HEAD {
        let sentence = "the head of a request may have 8 KiB: send fewer or shorter headers, and \
                        a shorter path";
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return Err(refused(status, sentence));
    }
    if body.size_hint().lower() > BODY as u64 {
        return Err(large_body());
    }
    Ok(())
}

fn length(uri: &hyper::Uri) -> usize {
    let authority = uri.authority().map_or(0, |it| it.as_str().len() + 8);
    let path = uri.path_and_query().map_or(0, |it| it.as_str().len());
    authority + path
}

fn large_body() -> Refused {
    let sentence = "the body of a request may have 64 KiB: no request here needs more";
    refused(StatusCode::PAYLOAD_TOO_LARGE, sentence)
}

/// Checks host, origin, token, path and method, in this order: a stranger learns nothing of the
/// paths.
fn check<'a>(site: &Site, head: &'a Parts) -> Result<Route<'a>, Refused> {
    let host = site.access.check_host(&head.uri, &head.headers)?;
    site.access.check_origin(&host, &head.headers)?;
    let route = Route::of(head.uri.path());
    if !route.is_some_and(Route::is_open) {
        let checked = site.access.check_token(&head.headers);
        checked.map_err(|refused| match route {
            Some(Route::Page | Route::Paths) if wants_html(head) => Box::new(answer::see("/login")),
            _ => refused,
        })?;
    }
    let route = route.filter(|it| *it != Route::LogIn || site.access.has_token());
    let route = route.ok_or_else(|| {
        let sentence = "nothing is here: /paths has a list of all paths";
        refused(StatusCode::NOT_FOUND, sentence)
    })?;
    if route.is_costly() {
        Access::check_link(&head.headers)?;
    }
    if !route.takes(&head.method) {
        let methods = route.methods();
        let sentence = match route {
            Route::Act(..) => "this path does something: ask by POST".to_owned(),
            _ => format!("this path only answers: ask by one of {methods}"),
        };
        return Err(Box::new(with_header(
            text(StatusCode::METHOD_NOT_ALLOWED, &sentence),
            header::ALLOW,
            HeaderValue::from_static(methods),
        )));
    }
    Ok(route)
}

fn wants_html(head: &Parts) -> bool {
    let accept = head.headers.get(header::ACCEPT);
    accept.is_some_and(|it| it.as_bytes().starts_with(b"text/html"))
}

/// Answers a request without a body. The path has no query, or the query of its kind.
async fn without_body(
    cx: &Cx,
    site: &Site,
    route: Route<'_>,
    head: &Parts,
) -> Result<Answer, Refused> {
    let query = head.uri.query().unwrap_or_default();
    match route {
        Route::Page => Ok(page::page()),
        Route::Paths => Ok(answer::html(StatusCode::OK, page::list(&schedulers(site)))),
        Route::Health => Ok(text(StatusCode::OK, "alive")),
        Route::Ready => Ok(ready(site, head)),
        Route::LogIn => Ok(answer::html(StatusCode::OK, page::log_in(false))),
        Route::Metrics => {
            no_query(query)?;
            let text = ask(cx, MAKE, site.maker.call(maker::Ask::Metrics)).await?;
            Ok(answer::metrics(text))
        }
        Route::Snapshot => {
            check_since(query)?;
            let json = ask(cx, MAKE, site.maker.call(maker::Ask::Snapshot)).await?;
            Ok(answer::json_bytes(json))
        }
        Route::Processes => {
            let query: ProcessesQuery = query.parse().map_err(bad)?;
            site.check_number(query.scheduler)?;
            check_counts(site, &query)?;
            let window = query.window.filter(|_| query.by.has_window());
            let json = if let Some(window) = window {
                let ask_for = move |reply| windows::Ask {
                    query,
                    window,
                    reply,
                };
                ask(cx, MAKE + window, site.windows.call(ask_for)).await??
            } else {
                let question = site
                    .passes
                    .call(|reply| passes::Ask::Processes(query, reply));
                ask(cx, MAKE, question).await?
            };
            Ok(answer::json_bytes(json))
        }
        Route::Process(pid) => process::answer(site, pid, query),
        Route::State(pid) => process::state(cx, site, (pid, query)).await,
        Route::Recent(pid) => recent::answer(cx, site, (pid, query)).await,
        Route::Act(action, pid) => actions::act(cx, site, action, (pid, query)).await,
        Route::View(view) => {
            no_query(query)?;
            let question = site
                .passes
                .call(move |reply| passes::Ask::View(view, reply));
            Ok(answer::json_bytes(ask(cx, MAKE, question).await?))
        }
        Route::Sockets => {
            let query: SocketsQuery = query.parse().map_err(bad)?;
            site.check_number(query.scheduler)?;
            let question = (site.passes).call(|reply| passes::Ask::Sockets(query, reply));
            Ok(answer::json_bytes(ask(cx, MAKE, question).await?))
        }
        Route::Events => stream(site, query),
        Route::Letters => {
            no_query(query)?;
            Ok(answer::json(&look::letters(&schedulers(site))))
        }
        Route::Nodes => {
            no_query(query)?;
            Ok(answer::json(&look::nodes(&schedulers(site))))
        }
        Route::Profile => profile(cx, site, query).await,
        Route::Trace => {
            let query: traces::TraceQuery = query.parse().map_err(bad)?;
            site.check_number(query.scheduler)?;
            traces::answer(cx, &site.observed, &site.tracing, query).await
        }
    }
}

/// Answers with a stream of events.
fn stream(site: &Site, query: &str) -> Result<Answer, Refused> {
    let mut parameters = form_urlencoded::parse(query.as_bytes());
    let period = match (parameters.next(), parameters.next()) {
        (None, _) => events::PERIOD,
        (Some((name, text)), None) if name == "every" => {
            let period = read_period(&text).filter(|it| events::PERIODS.contains(it));
            period.ok_or_else(|| bad("every is not a time from 250ms to 60s: write 500ms or 5s"))?
        }
        _ => {
            let sentence = "events have a single parameter, every: leave the others out";
            return Err(bad(sentence));
        }
    };
    let Some((join, stream)) = site.streams.open(period) else {
        let sentence = "32 streams of events are open, and this endpoint has no more: close one, \
                        or ask for /api/v1/snapshot";
        return Err(refused(StatusCode::SERVICE_UNAVAILABLE, sentence));
    };
    if site.events.send(join).is_err() {
        let sentence = "the endpoint is about to end: start it again";
        return Err(refused(StatusCode::SERVICE_UNAVAILABLE, sentence));
    }
    Ok(answer::events(stream))
}

fn schedulers(site: &Site) -> Vec<Shown> {
    site.observed.schedulers()
}

fn no_query(query: &str) -> Result<(), Refused> {
    if query.is_empty() {
        return Ok(());
    }
    Err(bad(
        "this path has no parameters: leave out the ? and the rest",
    ))
}

/// Checks the number of the viewer's last snapshot, which may be there. Each snapshot is new.
fn check_since(query: &str) -> Result<(), Refused> {
    let mut parameters = form_urlencoded::parse(query.as_bytes());
    let sentence = match (parameters.next(), parameters.next()) {
        (None, _) => return Ok(()),
        (Some((name, number)), None) if name == "since" => match number.parse::<u64>() {
            Ok(_) => return Ok(()),
            Err(_) => "since is not a number: give the sequence of your last snapshot",
        },
        _ => "a snapshot has a single parameter, since: leave the others out",
    };
    Err(bad(sentence))
}

/// Checks whether a wanted scheduler counts the values of the order.
fn check_counts(site: &Site, query: &ProcessesQuery) -> Result<(), Refused> {
    let is_asked = |it: &Shown| query.scheduler.is_none_or(|number| number == it.number);
    let counts = |it: &Shown| is_asked(it) && it.handle.observes() != Observe::Off;
    if !query.by.needs_counts() || schedulers(site).iter().any(counts) {
        return Ok(());
    }
    let by = query.by.name();
    Err(bad(format!(
        "by={by} needs a scheduler that counts: build it with `Builder::observe`, or use mailbox, \
         quiet or pid"
    )))
}

/// Finds the scheduler with this number, or the only scheduler.
fn find_scheduler(site: &Site, number: Option<u64>) -> Result<Handle, Refused> {
    let mut found = schedulers(site);
    found.retain(|it| number.is_none_or(|number| it.number == number));
    if found.len() > 1 {
        let sentence = "several schedulers are observed: add ?scheduler=NUMBER";
        return Err(bad(sentence));
    }
    let found = found.pop().ok_or_else(no_scheduler)?;
    Ok(found.handle)
}

/// Asks the maker, within the deadline of answers.
async fn ask<C: TypedCommand>(
    cx: &Cx,
    within: Duration,
    question: C,
) -> Result<C::Answer, Refused> {
    match cx.timeout(within, cx.ask(question)).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(_)) => {
            let sentence = "the endpoint can't look at the schedulers any longer: its log says \
                            why; start it again";
            Err(refused(StatusCode::INTERNAL_SERVER_ERROR, sentence))
        }
        Err(_) => {
            let sentence = "the answer is not ready in time: ask for less, or later";
            Err(refused(StatusCode::SERVICE_UNAVAILABLE, sentence))
        }
    }
}

/// Answers with a profile of a scheduler.
async fn profile(cx: &Cx, site: &Site, query: &str) -> Result<Answer, Refused> {
    let wanted = profile::wanted(query, |number| find_scheduler(site, number))?;
    let time = wanted.time() + MAKE;
    let question = (site.maker).call(|reply| maker::Ask::Profile(Box::new(wanted), reply));
    ask(cx, time, question).await?
}

/// Tells whether the program takes work. An orchestrator needs no token to ask, and learns the text
/// of an alarm by the token alone: the text has types and PIDs.
fn ready(site: &Site, head: &Parts) -> Answer {
    let not_ready = |sentence: &str| text(StatusCode::SERVICE_UNAVAILABLE, sentence);
    let schedulers = &schedulers(site);
    if schedulers.is_empty() {
        return not_ready("no scheduler is observed: add one, or the program is about to end");
    }
    for scheduler in schedulers.iter().map(|it| &it.handle) {
        let host = scheduler.host_name();
        if scheduler.is_stopping() {
            return not_ready(&format!("the scheduler {host} stops: send work elsewhere"));
        }
        if !scheduler.is_started() {
            return not_ready(&format!("the scheduler {host} is not started: ask later"));
        }
        let raised = Board::of(scheduler).raised();
        if let Some(alarm) = raised.iter().find(|it| it.is_severe) {
            let sentence = match site.access.check_token(&head.headers) {
                Ok(()) => format!("the scheduler {host} has an alarm: {}", alarm.text),
                Err(_) => format!("the scheduler {host} has an alarm: ask with the token for more"),
            };
            return not_ready(&sentence);
        }
    }
    text(StatusCode::OK, "ready")
}

/// Takes the token of the login's form.
async fn log_in<B>(cx: &Cx, site: &Site, body: B) -> Result<Answer, Refused>
where
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>>,
{
    let collected = Box::pin(Limited::new(body, BODY).collect());
    let form = match cx.timeout(REQUEST, collected).await {
        Ok(Ok(form)) => form.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(closing(large_body())),
        Ok(Err(_)) => return Err(closing(bad("the body is broken: send the form again"))),
        Err(_) => {
            let sentence = "the body of a request must come within 5 s: send it again";
            return Err(closing(refused(StatusCode::REQUEST_TIMEOUT, sentence)));
        }
    };
    let mut form = form_urlencoded::parse(&form);
    let given = form.find(|(name, _)| name == "token");
    match given.and_then(|(_, given)| site.access.log_in(&given)) {
        Some(cookie) => Ok(with_header(answer::see("/"), header::SET_COOKIE, cookie)),
        None => Ok(answer::html(StatusCode::FORBIDDEN, page::log_in(true))),
    }
}
