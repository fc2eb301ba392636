//! Actions of the endpoint on processes, and refused actions.

use super::support::{Answer, ask, get, until};
use ganger_observe::api::{Acted, Action, Inspected, Processes, Snapshot, State};
use ganger_observe::{Endpoint, Serve, ServeError, serve};
use ganger_proc_api::{
    Actor, Context, ExitReason, Pid, StepOutput, StepResult, actor_fn, process_fn,
};
use ganger_sched::{ProcessHandle, ProcessState, Scheduler};
use ganger_supervise::Supervisor;
use std::sync::mpsc;

const TOKEN: &str = "0123456789abcdef";
const BEARER: &str = "authorization: Bearer 0123456789abcdef";
const ENDS: [&str; 2] = ["cancel", "terminate"];
const ACTIONS: [&str; 5] = ["cancel", "terminate", "suspend", "resume", "restart"];

/// Spawns a process that takes messages until something ends it.
fn spawn(scheduler: &Scheduler) -> ProcessHandle<u64> {
    let actor = actor_fn(|_, _: u64, _| Ok(()));
    scheduler.spawn(actor).unwrap()
}

fn scheduler() -> Scheduler {
    let builder = Scheduler::builder().workers(1).allow_interventions();
    builder.start().unwrap()
}

fn start(serve: Serve, scheduler: &Scheduler) -> Endpoint {
    serve.scheduler(scheduler).start().unwrap()
}

fn acting(scheduler: &Scheduler) -> Endpoint {
    let serve = serve("127.0.0.1:0").token(TOKEN).allow_actions();
    start(serve, scheduler)
}

fn path(pid: Pid, action: &str) -> String {
    let pid = pid.to_string();
    let pid = pid.trim_matches(['{', '}']).replace('|', "%7C");
    format!("/api/v1/process/{pid}/{action}")
}

fn post(endpoint: &Endpoint, path: &str, headers: &[&str]) -> Answer {
    ask(endpoint, "POST", path, headers)
}

/// Checks that the process has seen neither action: it takes another message.
fn goes_on(process: &ProcessHandle<u64>, scheduler: &Scheduler) {
    let steps = scheduler.stats().total.steps;
    process.send(7).unwrap();
    until("it takes a step", || scheduler.stats().total.steps > steps);
    is_untouched(process.pid(), scheduler);
    assert!(!process.is_finished());
}

fn is_untouched(pid: Pid, scheduler: &Scheduler) {
    let info = scheduler.process(pid).unwrap();
    assert!(!info.is_cancelled && !info.is_terminating, "{info:?}");
    assert_ne!(info.state, ProcessState::Suspended);
}

// pins: V2
#[test]
fn an_endpoint_that_acts_needs_a_token_on_loopback_too() {
    let error = serve("127.0.0.1:0").allow_actions().start().unwrap_err();
    assert!(matches!(error, ServeError::TokenNeededToAct), "{error}");
    assert!(error.to_string().contains("`Serve::token`"));
    let weak = serve("127.0.0.1:0").allow_actions().token("short");
    assert!(matches!(weak.start(), Err(ServeError::Token)));
}

// pins: V2
#[test]
fn a_cancelled_and_a_terminated_process_end() {
    let scheduler = scheduler();
    let endpoint = acting(&scheduler);
    for (name, action) in ENDS.into_iter().zip([Action::Cancel, Action::Terminate]) {
        let process = spawn(&scheduler);
        let other = spawn(&scheduler);
        let pid = process.pid();
        let acted: Acted = post(&endpoint, &path(pid, name), &[BEARER]).json();
        let expected = Acted {
            version: 1,
            scheduler: 1,
            pid: pid.to_string(),
            action,
            stands: None,
            successor: None,
        };
        assert_eq!(acted, expected);
        let end = process.wait();
        match (action, end) {
            (Action::Cancel, ExitReason::Cancelled(reason)) => {
                assert!(reason.to_string().contains("endpoint"), "{reason}");
            }
            (Action::Terminate, ExitReason::Terminated) => {}
            end => panic!("{end:?}"),
        }
        goes_on(&other, &scheduler);
        // The process has ended.
        post(&endpoint, &path(pid, name), &[BEARER]).refuses(404, "no live process");
    }
}

// pins: V2
#[test]
fn nothing_happens_where_actions_are_not_allowed() {
    let scheduler = scheduler();
    let process = spawn(&scheduler);
    let open = start(serve("127.0.0.1:0"), &scheduler);
    let closed = start(serve("127.0.0.1:0").token(TOKEN), &scheduler);
    for action in ACTIONS {
        let path = path(process.pid(), action);
        post(&open, &path, &[]).refuses(403, "`Serve::allow_actions`");
        post(&closed, &path, &[BEARER]).refuses(403, "`Serve::allow_actions`");
        post(&closed, &path, &[]).refuses(401, "needs its token");
    }
    goes_on(&process, &scheduler);
}

// pins: V2
#[test]
fn a_snapshot_names_the_actions_that_are_allowed() {
    let scheduler = scheduler();
    let named = |endpoint: &Endpoint| {
        let snapshot = ask(endpoint, "GET", "/api/v1/snapshot", &[BEARER]);
        snapshot.json::<Snapshot>().actions
    };
    let named_by_acting = named(&acting(&scheduler));
    for action in ACTIONS {
        let count = named_by_acting.iter().filter(|it| *it == action).count();
        assert_eq!(count, 1, "{named_by_acting:?}");
    }
    for serve in [serve("127.0.0.1:0"), serve("127.0.0.1:0").token(TOKEN)] {
        assert_eq!(named(&start(serve, &scheduler)), Vec::<String>::new());
    }
}

// pins: V2
#[test]
fn an_action_needs_the_token_its_own_origin_and_a_post() {
    let scheduler = scheduler();
    let process = spawn(&scheduler);
    let endpoint = acting(&scheduler);
    let cases: [(&[&str], u16, &str); 6] = [
        (&[], 401, "needs its token"),
        (
            &["authorization: Bearer 0123456789abcdeg"],
            401,
            "the token is wrong",
        ),
        (
            &[BEARER, "origin: http://evil.example"],
            403,
            "another origin",
        ),
        (&[BEARER, "origin: null"], 403, "another origin"),
        (
            &[
                BEARER,
                "sec-fetch-site: cross-site",
                "sec-fetch-mode: no-cors",
            ],
            403,
            "another origin",
        ),
        (
            &[BEARER, "host: evil.example"],
            421,
            "does not have that name",
        ),
    ];
    for action in ACTIONS {
        let path = path(process.pid(), action);
        for (headers, status, part) in cases {
            post(&endpoint, &path, headers).refuses(status, part);
        }
        for method in ["GET", "PUT", "DELETE", "post"] {
            let answer = ask(&endpoint, method, &path, &[BEARER]);
            answer.refuses(405, "ask by POST");
            assert_eq!(answer.header("allow"), Some("POST"));
        }
        let head = ask(&endpoint, "HEAD", &path, &[BEARER]);
        assert_eq!((head.status, head.body.as_str()), (405, ""));
    }
    // A path for answers alone takes no POST.
    for path in ["/api/v1/snapshot", "/api/v1/processes", "/"] {
        post(&endpoint, path, &[BEARER]).refuses(405, "only answers");
    }
    goes_on(&process, &scheduler);
}

// pins: V2
#[test]
fn only_a_live_process_of_one_scheduler_is_acted_on() {
    let [first, second] = [1, 2].map(|_| Scheduler::builder().workers(1).build().unwrap());
    let endpoint = acting(&first);
    endpoint.add(&second);
    let pid = Pid::new(first.host_name(), 77);
    let [_one, two] = [&first, &second].map(|scheduler| {
        let idle = process_fn(|_, _, _| Ok(()));
        scheduler.submit_as(pid, idle, "idle", ()).unwrap()
    });
    for action in ACTIONS {
        let of = |pid: &str| format!("/api/v1/process/{pid}/{action}");
        let post = |path: &str| post(&endpoint, path, &[BEARER]);
        post(&of("main%7C123456789")).refuses(404, "no live process");
        post(&of("elsewhere%7C1")).refuses(404, "/api/v1/processes");
        post(&of("x")).refuses(400, "host|id");
        post(&of("")).refuses(400, "host|id");
        post(&of("x/y")).refuses(400, "host|id");
        let path = path(pid, action);
        post(&path).refuses(400, "add ?scheduler=NUMBER");
        post(&format!("{path}?scheduler=9")).refuses(404, "no scheduler");
        post(&format!("{path}?top=1")).refuses(400, "a single parameter");
    }
    is_untouched(pid, &first);
    is_untouched(pid, &second);
    let acted: Acted = {
        let path = path(pid, "terminate?scheduler=2");
        post(&endpoint, &path, &[BEARER]).json()
    };
    assert_eq!((acted.scheduler, acted.action), (2, Action::Terminate));
    second.start().unwrap();
    assert!(matches!(two.wait(), ExitReason::Terminated));
    is_untouched(pid, &first);
}

// pins: V2
#[test]
fn a_supervisor_starts_a_terminated_child_again_and_a_cancelled_one_not() {
    let scheduler = scheduler();
    let endpoint = acting(&scheduler);
    let child = || actor_fn(|_, (): (), _| Ok(()));
    let tree = Supervisor::one_for_one().child("child", child);
    let tree = tree.start(&scheduler).unwrap();
    let first = tree.child("child").unwrap();
    let acted: Acted = post(&endpoint, &path(first, "terminate"), &[BEARER]).json();
    assert_eq!(acted.pid, first.to_string());
    until("the child is there again", || {
        let now = tree.child("child");
        now.is_some_and(|now| now != first && scheduler.process(now).is_some())
    });
    let second = tree.child("child").unwrap();
    let shown = path(second, "");
    let shown = ask(&endpoint, "GET", shown.trim_end_matches('/'), &[BEARER]);
    assert_eq!(
        shown.json::<Processes>().processes[0].pid,
        second.to_string()
    );
    let _: Acted = post(&endpoint, &path(second, "cancel"), &[BEARER]).json();
    until("the child is gone for good", || {
        tree.count().unwrap().1 == 0
    });
    assert_eq!(tree.child("child"), None);
    assert_eq!(get(&endpoint, "/healthz").status, 200);
    tree.stop();
}

// pins: V18
#[test]
fn a_process_is_suspended_and_resumed() {
    let scheduler = scheduler();
    let endpoint = acting(&scheduler);
    let process = spawn(&scheduler);
    let pid = process.pid();
    let post = |action| -> Acted { post(&endpoint, &path(pid, action), &[BEARER]).json() };
    let suspended = post("suspend");
    assert_eq!(suspended.action, Action::Suspend);
    assert_eq!(suspended.stands, Some(true));
    assert_eq!(post("suspend").stands, Some(true));
    let shown = |filter: &str| {
        let path = format!("/api/v1/processes?filter={filter}");
        ask(&endpoint, "GET", &path, &[BEARER]).json::<Processes>()
    };
    let suspended = shown("state:suspended");
    assert_eq!(suspended.matched, 1);
    assert_eq!(suspended.processes[0].state, State::Suspended);
    assert_eq!(suspended.processes[0].pid, pid.to_string());
    let resumed = post("resume");
    assert_eq!((resumed.action, resumed.stands), (Action::Resume, None));
    assert_eq!(post("resume").action, Action::Resume);
    goes_on(&process, &scheduler);
    assert_eq!(shown("state:suspended").matched, 0);
}

// pins: V18
#[test]
fn a_process_that_runs_is_said_to_stand_later() {
    let scheduler = scheduler();
    let endpoint = acting(&scheduler);
    let (runs, goes_on) = (mpsc::channel(), mpsc::channel::<()>());
    let (is_on, may) = (runs.0, std::sync::Mutex::new(goes_on.1));
    let busy = actor_fn(move |_, _: u64, _| {
        is_on.send(())?;
        Ok(may.lock().unwrap().recv()?)
    });
    let busy = scheduler.spawn(busy).unwrap();
    busy.send(7).unwrap();
    runs.1.recv().unwrap();
    let suspend = || -> Acted { post(&endpoint, &path(busy.pid(), "suspend"), &[BEARER]).json() };
    assert_eq!(suspend().stands, Some(false));
    goes_on.0.send(()).unwrap();
    assert_eq!(suspend().stands, Some(true));
}

// pins: V18
#[test]
fn a_scheduler_that_allows_no_interventions_has_none_suspended() {
    let scheduler = Scheduler::builder().workers(1).start().unwrap();
    let endpoint = acting(&scheduler);
    let process = spawn(&scheduler);
    for action in ["suspend", "resume"] {
        let path = path(process.pid(), action);
        post(&endpoint, &path, &[BEARER]).refuses(403, "`Builder::allow_interventions`");
    }
    goes_on(&process, &scheduler);
}

// pins: V18
#[test]
fn a_child_is_restarted_by_its_supervisor() {
    let scheduler = scheduler();
    let endpoint = acting(&scheduler);
    let child = || actor_fn(|_, (): (), _| Ok(()));
    let tree = Supervisor::one_for_one()
        .child("first", child)
        .child("second", child);
    let tree = tree.start(&scheduler).unwrap();
    let child = |name: &str| tree.child(name).unwrap();
    let (first, second) = (child("first"), child("second"));
    let restarted: Acted = post(&endpoint, &path(first, "restart"), &[BEARER]).json();
    assert_eq!(restarted.pid, first.to_string());
    assert_ne!(child("first"), first);
    let successor = Some(child("first").to_string());
    assert_eq!(
        (restarted.action, restarted.successor),
        (Action::Restart, successor)
    );
    assert_eq!(child("second"), second);
    assert_eq!(tree.children()[0].restarts, 1);
    let alone = spawn(&scheduler);
    for pid in [alone.pid(), tree.pid()] {
        let path = path(pid, "restart");
        post(&endpoint, &path, &[BEARER]).refuses(409, "no supervisor has that process");
    }
    goes_on(&alone, &scheduler);
    tree.stop();
}

/// Shows a number, and panics at an unlucky number.
struct Shows(u64);

impl Actor for Shows {
    type Message = u64;

    fn receive(&mut self, _: &Context, number: u64, _: &mut StepOutput) -> StepResult {
        self.0 = number;
        Ok(())
    }

    fn inspect(&self) -> Option<String> {
        assert_ne!(self.0, 13, "an unlucky number");
        Some(format!("number {}", self.0))
    }
}

// pins: V19
#[test]
fn a_state_is_shown_where_type_and_scheduler_say_so() {
    let scheduler = scheduler();
    let endpoint = acting(&scheduler);
    let shows = scheduler.spawn(Shows(7)).unwrap();
    // A busy machine may have no worker for the question within the endpoint's second.
    let state = |pid| -> Inspected {
        let path = path(pid, "state");
        let mut answer = ask(&endpoint, "GET", &path, &[BEARER]);
        until("a worker comes", || {
            if answer.status == 503 {
                answer = ask(&endpoint, "GET", &path, &[BEARER]);
            }
            answer.status != 503
        });
        answer.json()
    };
    let seen = state(shows.pid());
    assert_eq!(seen.state.as_deref(), Some("number 7"));
    assert_eq!((seen.pid, seen.panic), (shows.pid().to_string(), None));
    assert_eq!(state(spawn(&scheduler).pid()).state, None);
    shows.send(13).unwrap();
    let mut panicked = state(shows.pid());
    until("the hook panics", || {
        if panicked.panic.is_none() {
            panicked = state(shows.pid());
        }
        panicked.panic.is_some()
    });
    assert!(panicked.panic.unwrap().contains("an unlucky number"));
    assert_eq!(panicked.state, None);
    shows.send(8).unwrap();
    until("it goes on", || {
        state(shows.pid()).state.as_deref() == Some("number 8")
    });

    let plain = Scheduler::builder().workers(1).start().unwrap();
    let endpoint = start(serve("127.0.0.1:0"), &plain);
    let shows = plain.spawn(Shows(7)).unwrap();
    let answer = ask(&endpoint, "GET", &path(shows.pid(), "state"), &[]);
    answer.refuses(403, "`Builder::allow_interventions`");
    get(&endpoint, "/api/v1/process/main%7C123/state").refuses(404, "no live process");
}
