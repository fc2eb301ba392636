//! The files of traces.

use super::support::{connect, get};
use crate::trace::shown::shown;
use ganger_observe::serve;
use ganger_observe::trace::Trace;
use ganger_proc_api::actor_fn;
use ganger_sched::{Recorder, Scheduler};
use std::io::{Read, Write};
use std::sync::mpsc;

// pins: V15
#[test]
fn a_trace_is_a_file_also_while_all_workers_are_stuck() {
    let recorder = Recorder::new().bytes(1 << 20);
    let scheduler = Scheduler::builder().workers(1).max_spares(0);
    let scheduler = scheduler.record(recorder).start().unwrap();
    let endpoint = serve("127.0.0.1:0").scheduler(&scheduler).start().unwrap();
    let (release, released) = mpsc::channel::<()>();
    let (begun, begins) = mpsc::channel();
    let stuck = actor_fn(move |_, (): (), out| {
        begun.send(())?;
        released.recv()?;
        out.done(());
        Ok(())
    });
    let stuck = scheduler.spawn(stuck).unwrap();
    stuck.send(()).unwrap();
    begins.recv().unwrap();

    let mut stream = connect(endpoint.address());
    let host = endpoint.address();
    let request = format!("GET /trace?seconds=5 HTTP/1.1\r\nhost: {host}\r\nconnection: close");
    stream.write_all((request + "\r\n\r\n").as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|it| it == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(head.contains("application/octet-stream"), "{head}");
    assert!(head.contains("filename=\"ganger-1.pftrace\""), "{head}");
    let file = &answer[end + 4..];
    let turns = shown(file);
    let pid = stuck.pid().to_string();
    // The process may have had a turn before the message came: the stuck one goes on.
    let is_stuck = |it: &&crate::trace::shown::Slice| {
        it.category == "turn" && it.arguments.contains_key("goes on")
    };
    let turn = turns.slices.iter().find(is_stuck).unwrap();
    assert!(turn.arguments["process"].ends_with(&pid));
    let turns = Trace::read(file).unwrap().summary().turns;
    assert_eq!(turns.iter().filter(|it| it.goes_on).count(), 1);

    let json = get(&endpoint, "/trace?format=json&scheduler=1");
    assert_eq!(
        (json.status, json.header("content-type")),
        (200, Some("application/json"))
    );
    let json: serde_json::Value = serde_json::from_str(&json.body).unwrap();
    assert!(
        json.as_array()
            .or(json["traceEvents"].as_array())
            .is_some_and(|it| !it.is_empty())
    );
    release.send(()).unwrap();
    assert!(stuck.wait().is_done());
}

// pins: V15
#[test]
fn what_can_not_be_traced_is_refused_with_a_sentence() {
    let plain = Scheduler::builder().workers(1).start().unwrap();
    let endpoint = serve("127.0.0.1:0").scheduler(&plain).start().unwrap();
    get(&endpoint, "/trace").refuses(404, "build it with `Builder::record");
    get(&endpoint, "/trace?scheduler=7").refuses(404, "no scheduler has that number");
    get(&endpoint, "/trace?seconds=0").refuses(400, "is not a number from 1 to 3600");
    let recorded = || {
        let builder = Scheduler::builder().workers(1);
        builder
            .record(Recorder::new().bytes(1 << 16))
            .start()
            .unwrap()
    };
    let (first, second) = (recorded(), recorded());
    endpoint.add(&first);
    assert_eq!(get(&endpoint, "/trace?format=json").status, 200);
    endpoint.add(&second);
    get(&endpoint, "/trace").refuses(400, "several schedulers record");
    get(&endpoint, "/trace?scheduler=1").refuses(404, "does not record");
    assert_eq!(get(&endpoint, "/trace?format=json&scheduler=3").status, 200);
}
