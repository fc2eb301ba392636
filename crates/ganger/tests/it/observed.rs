//! The example to look into: each of its faults is seen at the endpoint, and ends.

#[path = "../../examples/observed/main.rs"]
#[allow(dead_code, reason = "`main` is for those that run it")]
mod example;

use example::Observed;
use ganger::observe::api::{self, Processes, Snapshot, Waits};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// How long a test waits for an event before it fails.
const PATIENCE: Duration = Duration::from_secs(60);

fn options(arguments: &str) -> Result<Option<example::Options>, String> {
    let words = arguments.split_whitespace().map(str::to_owned);
    example::Options::parse(words).map_err(|it| it.to_string())
}

fn start(arguments: &str) -> Observed {
    let options = format!("--listen 127.0.0.1:0 --workers 2 --sessions 20 {arguments}");
    example::start(&self::options(&options).unwrap().unwrap()).unwrap()
}

fn get(observed: &Observed, path: &str) -> Vec<u8> {
    let address = observed.endpoint.address();
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, json) = answer.split_once("\r\n\r\n").unwrap();
    json.into()
}

fn list(observed: &Observed, query: &str) -> Processes {
    let path = format!("/api/v1/processes?{query}");
    api::from_json(&get(observed, &path)).unwrap()
}

fn matched(observed: &Observed, filter: &str) -> u64 {
    list(observed, &format!("filter={filter}")).matched
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}: not in time");
        std::thread::yield_now();
    }
}

fn alarms(observed: &Observed) -> Vec<String> {
    let snapshot = get(observed, "/api/v1/snapshot");
    let snapshot: Snapshot = api::from_json(&snapshot).unwrap();
    let alarms = snapshot.schedulers[0].alarms.iter();
    alarms.map(|it| it.kind.clone()).collect()
}

// pins: V1, V15, V16
#[test]
fn each_fault_is_seen_and_ends() {
    let observed = start("--fault deadlock");
    until("the clerks wait for each other", || {
        matched(&observed, "type:faults::clerk+state:idle") == 2
            && matched(&observed, "type:auditor+state:idle") == 1
    });
    until("the cycle is known", || {
        let waits: Waits = api::from_json(&get(&observed, "/api/v1/waits")).unwrap();
        waits.cycles.iter().any(|it| it.len() == 2)
    });
    let is_deadlock = |it: &String| it == "deadlock";
    until("the deadlock is an alarm", || {
        alarms(&observed).iter().any(is_deadlock)
    });
    let trace = get(&observed, "/trace?seconds=60&format=json");
    assert!(String::from_utf8(trace).unwrap().contains("faults::clerk"));

    let waiting = || {
        let list = list(&observed, "top=1&by=mailbox");
        let first = &list.processes[0];
        let is_printer = first.names == ["printer"];
        if is_printer { first.left } else { 0 }
    };
    observed.faults.obey("flood").unwrap();
    until("the mailbox of the printer grows", || waiting() > 1_000);

    observed.faults.obey("stuck").unwrap();
    until("a step computes", || {
        matched(&observed, "type:inventory+state:running") == 1
    });

    observed.faults.obey("crash").unwrap();
    until("the stock gives up", || {
        let children = observed.tree.children();
        let stock = children.iter().find(|it| &*it.name == "stock");
        stock.is_some_and(|it| it.restarts > 0)
    });
    let snapshot: Snapshot = api::from_json(&get(&observed, "/api/v1/snapshot")).unwrap();
    assert!(snapshot.schedulers[0].total.panicked >= 2);

    assert_eq!(matched(&observed, "type:faults::clerk"), 2);
    observed.faults.obey("calm").unwrap();
    until("the faults end", || {
        matched(&observed, "type:faults::") == 0 && waiting() < 1_000
    });
    until("the alarm ends", || {
        !alarms(&observed).iter().any(is_deadlock)
    });
    let error = observed.faults.obey("storm").unwrap_err();
    assert!(error.to_string().starts_with("storm is none of flood"));
    observed.scheduler.stop(PATIENCE).unwrap();
}

#[test]
fn the_shop_closes_when_its_time_is_over() {
    let observed = start("--for 1ms");
    until("it stops", || observed.scheduler.is_stopping());
    let report = observed.scheduler.stop(PATIENCE).unwrap();
    assert_eq!((report.forced, report.stuck.len()), (0, 0), "{report}");
}

#[test]
fn arguments_are_read_and_refused() {
    let options = |text| options(text);
    assert!(options("--workers 3 --help").unwrap().is_none());
    let read = options("--for 2m --fault stuck --workers 3")
        .unwrap()
        .unwrap();
    assert_eq!(read.time, Some(Duration::from_secs(120)));
    assert_eq!(
        (read.fault, read.workers),
        (Some(example::Fault::Stuck), Some(3))
    );
    assert_eq!((&*read.listen, read.sessions), ("127.0.0.1:7007", 200));
    for (wrong, part) in [
        ("--for 30", "30 is not a time"),
        ("--for", "--for needs a value"),
        ("--fault fire", "fire is none of"),
        ("--colour", "--colour is no argument"),
    ] {
        let error = options(wrong).err().unwrap();
        assert!(error.contains(part), "{error}");
    }
}
