//! Chrome's JSON, read by a JSON library.

use super::{COUNTER, JOBS, thread, trace};
use ganger_observe::trace::Trace;
use ganger_ring::event::{After, Cause, Event, Pick};
use serde_json::Value;
use std::collections::HashMap;

fn events(trace: &Trace) -> Vec<Value> {
    let mut file = Vec::new();
    trace.write_json(&mut file).expect("a list takes all");
    let mut file: Value = serde_json::from_slice(&file).expect("JSON");
    assert_eq!(file["otherData"]["lost"], trace.lost().to_string());
    file["traceEvents"]
        .take()
        .as_array()
        .expect("a list")
        .clone()
}

/// Checks that slices nest, flows have two ends, and time does not go back.
pub(crate) fn check(trace: &Trace) {
    let mut open: HashMap<String, Vec<String>> = HashMap::new();
    let mut flows = HashMap::new();
    let mut last = 0.0;
    for event in events(trace) {
        let text = |key: &str| event[key].as_str().expect("a text").to_owned();
        let phase = text("ph");
        if phase == "M" {
            continue;
        }
        let at = event["ts"].as_f64().expect("a time");
        assert!(at >= last, "time goes back from {last} to {at}");
        last = at;
        let on = || match phase.as_str() {
            "B" | "E" => format!("thread {}", event["tid"]),
            _ => format!("{} {}", text("cat"), text("id")),
        };
        match phase.as_str() {
            "B" | "b" => open.entry(on()).or_default().push(text("name")),
            "E" | "e" => {
                let begin = open.get_mut(&on()).and_then(Vec::pop);
                assert_eq!(begin, Some(text("name")));
            }
            "i" => assert_eq!(event["s"], "t"),
            "C" => assert!(event["args"]["length"].is_u64()),
            "s" => assert_eq!(flows.insert(event["id"].to_string(), true), None),
            "f" => {
                assert_eq!(event["bp"], "e");
                assert_eq!(flows.insert(event["id"].to_string(), false), Some(true));
            }
            other => panic!("the phase {other}"),
        }
    }
    assert!(
        open.values().all(Vec::is_empty),
        "slices without an end: {open:?}"
    );
    assert!(
        flows.values().all(|is_open| !is_open),
        "flows without an end: {flows:?}"
    );
}

#[test]
fn events_have_the_form_of_the_format() {
    let woken = Event::Woken {
        process: 7,
        by: 0,
        cause: Cause::Timer,
    };
    let begins = Event::TurnBegins {
        process: 7,
        name: COUNTER,
        pick: Pick::Stolen,
    };
    let ends = Event::TurnEnds {
        process: 7,
        after: After::Ready,
        steps: 2,
    };
    let queue = Event::Queue {
        name: JOBS,
        length: 3,
    };
    let all = [
        (1_000, woken),
        (1_500, begins),
        (2_000_042, ends),
        (2_000_042, queue),
    ];
    let trace = trace(3_000_000, [thread("worker \"0\"", &all)]);
    check(&trace);
    let events = events(&trace);
    assert_eq!(events[0]["args"]["name"], "main");
    assert_eq!(events[1]["args"]["name"], "worker \"0\"");
    let find = |phase: &str| {
        events
            .iter()
            .find(|it| it["ph"] == phase)
            .expect("an event")
    };
    assert_eq!(find("B")["name"], "counter");
    assert_eq!(find("B")["ts"], 1.5);
    assert_eq!(find("B")["args"]["pick"], "stolen");
    assert_eq!(find("E")["ts"], 2_000.042);
    assert_eq!(find("E")["args"]["steps"], 2);
    assert_eq!(find("b")["name"], "counter {main|7}");
    assert_eq!(find("i")["args"]["cause"], "timer");
    assert_eq!(find("C")["name"], "late \"jobs\"");
    assert_eq!(
        (&find("s")["id"], &find("f")["id"]),
        (&Value::from(0), &Value::from(0))
    );
}
