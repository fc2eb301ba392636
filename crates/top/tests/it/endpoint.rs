//! With an endpoint in the same process.

use ganger_observe::api::{ProcessesQuery, SocketsQuery};
use ganger_observe::{Endpoint, keep_letters, serve};
use ganger_sched::Scheduler;
use ganger_task::Cx;
use ganger_top::{Fault, Once, Remote, Source as _, once, once_json};
use std::time::Duration;

const TOKEN: &str = "0123456789abcdef";

fn remote(endpoint: &Endpoint, token: Option<&str>) -> Remote {
    let address = endpoint.address().to_string().parse().unwrap();
    Remote::new(address, token.map(str::to_owned)).unwrap()
}

fn look() -> Once {
    Once {
        every: Duration::ZERO,
        ..Once::default()
    }
}

/// Starts a scheduler with a process that waits for messages, and returns its PID.
fn program() -> (Scheduler, String) {
    let builder = keep_letters(Scheduler::builder()).workers(1).host("shop");
    let scheduler = builder.start().unwrap();
    let waiting = scheduler.spawn(async |cx: Cx<u32>| {
        cx.recv().await;
        Ok(())
    });
    let pid = waiting.unwrap().pid().to_string();
    (scheduler, pid)
}

#[test]
fn an_endpoint_is_shown() {
    let (scheduler, pid) = program();
    let endpoint = serve("127.0.0.1:0").scheduler(&scheduler).start().unwrap();
    let source = remote(&endpoint, None);
    let snapshot = source.snapshot().unwrap();
    assert_eq!(snapshot.schedulers[0].host, "shop");
    let processes = source.processes(&ProcessesQuery::default()).unwrap();
    assert_eq!((processes.live, &processes.processes[0].pid), (1, &pid));
    let one = source.process(1, &pid).unwrap();
    assert_eq!(one.processes[0].pid, pid);
    assert_eq!(source.letters().unwrap().schedulers[0].scheduler, 1);
    let mut sockets = SocketsQuery::default();
    assert_eq!(source.sockets(&sockets).unwrap().open, 0);
    sockets.scheduler = Some(7);
    let missing = source.sockets(&sockets).unwrap_err().to_string();
    assert!(
        missing.contains("no scheduler has that number"),
        "{missing}"
    );
    let missing = source.process(1, "{shop|77}");
    assert!(matches!(missing, Err(Fault::NotHere(_))), "{missing:?}");
    let mut elsewhere = ProcessesQuery::default();
    elsewhere.scheduler = Some(7);
    let missing = source.processes(&elsewhere).unwrap_err().to_string();
    assert!(
        missing.contains("no scheduler has that number"),
        "{missing}"
    );

    let text = once(&source, &look()).unwrap();
    assert!(text.contains("scheduler shop  up "), "{text}");
    assert!(text.contains("Processes 1 of 1"), "{text}");
    let json = once_json(&source, &look()).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["processes"]["processes"][0]["pid"], *pid);
    assert_eq!(json["rates"][0]["host"], "shop");
    assert_eq!(json["snapshot"]["schedulers"][0]["live"], 1);
}

// pins: V2
#[test]
fn an_action_is_done_where_it_is_allowed_with_the_token() {
    let (scheduler, pid) = program();
    let closed = serve("127.0.0.1:0").scheduler(&scheduler).token(TOKEN);
    let closed = closed.start().unwrap();
    let refused = remote(&closed, Some(TOKEN)).act("terminate", 1, &pid);
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("allows actions by"), "{refused}");
    let serve = serve("127.0.0.1:0").scheduler(&scheduler).token(TOKEN);
    let endpoint = serve.allow_actions().start().unwrap();
    let refused = remote(&endpoint, None).act("terminate", 1, &pid);
    assert!(matches!(refused, Err(Fault::Token)), "{refused:?}");
    let source = remote(&endpoint, Some(TOKEN));
    assert!(source.process(1, &pid).is_ok());
    let unknown = source.act("paint", 1, &pid);
    assert!(unknown.is_err(), "{unknown:?}");
    let named = source.snapshot().unwrap().actions;
    assert!(named.iter().any(|it| it == "terminate"), "{named:?}");
    let acted = source.act("terminate", 1, &pid).unwrap();
    assert_eq!((acted.scheduler, &acted.pid), (1, &pid));
    let end = std::time::Instant::now() + Duration::from_secs(60);
    while source.process(1, &pid).is_ok() {
        assert!(std::time::Instant::now() < end, "the process goes on");
        std::thread::yield_now();
    }
    let missing = source.act("terminate", 1, &pid);
    assert!(matches!(missing, Err(Fault::NotHere(_))), "{missing:?}");
}

#[test]
fn a_token_opens_an_endpoint() {
    let (scheduler, _) = program();
    let serve = serve("127.0.0.1:0").scheduler(&scheduler).token(TOKEN);
    let endpoint = serve.start().unwrap();
    assert_eq!(
        remote(&endpoint, Some(TOKEN))
            .snapshot()
            .unwrap()
            .schedulers
            .len(),
        1
    );
    let refused = |token| remote(&endpoint, token).snapshot().unwrap_err();
    assert!(matches!(refused(None), Fault::Token));
    let wrong = refused(Some("0123456789abcdeg"));
    assert!(matches!(wrong, Fault::WrongToken), "{wrong}");
}
