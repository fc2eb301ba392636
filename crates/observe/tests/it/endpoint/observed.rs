//! Answers of the endpoint about a counting and measuring scheduler.

use super::support::{connect, get, until};
use ganger_link::LinkContext as _;
use ganger_observe::api::{Processes, Snapshot, State};
use ganger_observe::{Endpoint, serve};
use ganger_proc_api::{BoxError, process_fn};
use ganger_sched::{Observe, Scheduler};
use ganger_task::Cx;
use std::io::Write as _;
use std::time::Duration;

fn observed(level: Observe) -> (Scheduler, Endpoint) {
    let builder = Scheduler::builder().workers(1).observe(level);
    let scheduler = builder.start().unwrap();
    let endpoint = serve("127.0.0.1:0").scheduler(&scheduler).start().unwrap();
    (scheduler, endpoint)
}

async fn waits(cx: Cx<u64>) -> Result<(), BoxError> {
    while cx.recv().await.is_some() {}
    Ok(())
}

// pins: V10
#[test]
fn a_snapshot_has_distributions_and_how_workers_spend_their_time() {
    let (scheduler, endpoint) = observed(Observe::Histograms);
    let snapshot =
        |query: &str| -> Snapshot { get(&endpoint, &format!("/api/v1/snapshot{query}")).json() };
    let before = snapshot("");
    let process = scheduler.spawn(waits).unwrap();
    until("some steps are measured", || {
        process.send(7).unwrap();
        let now = &snapshot("").schedulers[0];
        let measured = now.distributions.as_ref().unwrap();
        measured.step.count > 10 && measured.ready.count > 1
    });
    let now = snapshot(&format!("?since={}", before.sequence));
    assert!(now.sequence > before.sequence);
    let one = &now.schedulers[0];
    assert_eq!(one.observes, "histograms");
    assert_eq!(one.worker_times.len(), 1);
    assert!(one.worker_times[0].busy_ns > 0 && one.worker_times[0].asleep_ns > 0);
    let measured = one.distributions.as_ref().unwrap();
    let earlier = before.schedulers[0].distributions.as_ref().unwrap();
    let since = measured.step.since(&earlier.step);
    assert!(since.count > 10 && since.quantile(0.5) > 0);
    let of_type = measured
        .types
        .iter()
        .find(|it| it.type_name.contains("waits"));
    assert!(of_type.is_some_and(|it| it.step.count > 0), "{measured:?}");

    let (_plain, endpoint) = observed(Observe::Off);
    let plain: Snapshot = get(&endpoint, "/api/v1/snapshot").json();
    let plain = &plain.schedulers[0];
    assert_eq!(plain.observes, "off");
    assert!(plain.worker_times.is_empty() && plain.distributions.is_none());
}

// pins: V10
#[test]
fn a_process_has_its_counts_waits_label_and_links() {
    let (scheduler, endpoint) = observed(Observe::Counts);
    let linked = scheduler
        .spawner()
        .labelled("tenant-7")
        .spawn(async |cx: Cx| {
            let peer = cx.linked().spawn(waits)?;
            cx.sleep(Duration::from_hours(1)).await?;
            drop(peer);
            Ok(())
        });
    let linked = linked.unwrap();
    let one = || -> Processes {
        let pid = linked.pid().to_string().replace(['{', '}'], "");
        get(&endpoint, &format!("/api/v1/process/{pid}")).json()
    };
    until("it sleeps", || one().processes[0].state == State::Blocked);
    let all: Processes = get(&endpoint, "/api/v1/processes?filter=type:observed::waits").json();
    let one = &one().processes[0];
    assert_eq!(one.label.as_deref(), Some("tenant-7"));
    let counts = one.counts.as_ref().unwrap();
    assert!(counts.steps >= 1 && counts.turns >= 1 && counts.age_ns > 0);
    let [wait] = &*one.waits else {
        panic!("{one:?}");
    };
    assert_eq!(
        (wait.command, wait.name.is_some()),
        (Some(ganger_proc_api::CommandId::SLEEP.get()), true)
    );
    let [peer] = &*all.processes else {
        panic!("{all:?}");
    };
    assert_eq!(one.links, std::slice::from_ref(&peer.pid));
    assert_eq!((one.watched_by, one.monitors), (Some(0), Some(0)));
    assert!(one.bytes > Some(200) && one.restarts.is_none());
    assert_eq!(peer.label.as_deref(), Some("tenant-7"));
    assert_eq!(peer.parent.as_ref(), Some(&one.pid));
    assert_eq!(peer.value, peer.counts.as_ref().map(|it| it.waiting));
}

// pins: V11
#[test]
fn lists_are_ordered_by_what_is_counted() {
    let (scheduler, endpoint) = observed(Observe::Counts);
    let processes: Vec<_> = (0..5).map(|_| scheduler.spawn(waits).unwrap()).collect();
    for (messages, process) in processes.iter().enumerate() {
        for _ in 0..messages {
            process.send(1).unwrap();
        }
    }
    let list =
        |query: &str| -> Processes { get(&endpoint, &format!("/api/v1/processes?{query}")).json() };
    let events = || -> Vec<_> {
        let list = list("by=events&top=3").processes;
        list.iter().map(|it| it.value).collect()
    };
    until("all messages are taken", || {
        list("by=events")
            .processes
            .iter()
            .filter_map(|it| it.value)
            .sum::<u64>()
            >= 10
    });
    assert!(events().iter().is_sorted_by(|a, b| a >= b));
    for (by, least) in [("steps", 1), ("age", 1), ("growth", 0), ("busy", 0)] {
        let list = list(&format!("by={by}"));
        assert_eq!(list.matched, 5);
        assert!(
            list.processes.iter().all(|it| it.value >= Some(least)),
            "{by}: {list:?}"
        );
    }
    // All have rested in the window.
    let window = list("by=events&window=5ms");
    assert!(
        window.processes.iter().all(|it| it.value == Some(0)),
        "{window:?}"
    );
    // The window begins with the question, and this process talks to itself meanwhile.
    let busy = scheduler.spawn(async |cx: Cx| {
        loop {
            cx.yield_now().await;
            if cx.is_cancelled() {
                return Ok(());
            }
        }
    });
    let busy = busy.unwrap();
    until("it is seen", || {
        let first = list("by=steps&window=20ms").processes.swap_remove(0);
        first.pid == busy.pid().to_string() && first.value > Some(0)
    });
    scheduler.cancel(busy.pid(), "enough").unwrap();
}

// pins: V11
#[test]
fn a_window_waits_for_that_of_a_reader_in_the_program() {
    let (scheduler, endpoint) = observed(Observe::Counts);
    let idle = scheduler.spawn(process_fn(|_, _, _| Ok(()))).unwrap();
    let steps = || scheduler.look_at(idle.pid(), |it| it.counts().map(|it| it.steps));
    // Its first step comes before the window.
    until("it has taken its first step", || steps() == Some(Some(1)));
    let marks = scheduler.try_marks().unwrap();
    std::thread::scope(|scope| {
        let path = "/api/v1/processes?by=steps&window=1ms";
        let asked = scope.spawn(|| get(&endpoint, path).json::<Processes>());
        // Other answers come meanwhile.
        let plain: Processes = get(&endpoint, "/api/v1/processes?by=steps").json();
        assert_eq!(plain.processes[0].pid, idle.pid().to_string());
        drop(marks);
        assert_eq!(asked.join().unwrap().processes[0].value, Some(0));
    });
}

// pins: V3
#[test]
fn a_client_that_goes_ends_its_window() {
    let (scheduler, endpoint) = observed(Observe::Counts);
    let address = endpoint.address();
    for window in ["60s", "59s"] {
        let mut stream = connect(address);
        let request = format!(
            "GET /api/v1/processes?by=steps&window={window} HTTP/1.1\r\nhost: {address}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        until("the window begins", || scheduler.try_marks().is_none());
        drop(stream);
    }
    // The answer would be too late behind the windows of the gone clients.
    let list: Processes = get(&endpoint, "/api/v1/processes?by=steps&window=1ms").json();
    assert_eq!(list.live, 0);
}

// pins: V11
#[test]
fn an_order_that_no_scheduler_counts_is_refused() {
    let (plain, endpoint) = observed(Observe::Off);
    for by in ["steps", "events", "busy", "growth", "age"] {
        let answer = get(&endpoint, &format!("/api/v1/processes?by={by}"));
        answer.refuses(400, "build it with `Builder::observe`");
    }
    let (counted, _) = observed(Observe::Counts);
    endpoint.add(&counted);
    let idle = || process_fn(|_, _, _| Ok(()));
    let (first, second) = (plain.spawn(idle()).unwrap(), counted.spawn(idle()).unwrap());
    // A process without counts comes last.
    let all: Processes = get(&endpoint, "/api/v1/processes?by=age").json();
    let pids: Vec<_> = all.processes.iter().map(|it| it.pid.clone()).collect();
    assert_eq!(pids, [second.pid().to_string(), first.pid().to_string()]);
    assert!(all.processes[1].value.is_none());
    let answer = get(&endpoint, "/api/v1/processes?by=age&scheduler=1");
    answer.refuses(400, "or use mailbox, quiet or pid");
}
