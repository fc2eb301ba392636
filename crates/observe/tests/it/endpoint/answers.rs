//! The answers of each path.

use super::support::{ask, connect, get, read, until};
use ganger_observe::api::{Letters, Process, Processes, Snapshot, State};
use ganger_observe::{KeepLetters, Show, keep_letters, serve};
use ganger_proc_api::{Envelope, Message, Pid, process_fn};
use ganger_sched::{ContextExt as _, Observe, Scheduler};
use ganger_supervise::Supervisor;
use ganger_task::Cx;
use std::fmt;
use std::io::Write;
use std::time::Duration;

/// Waits for messages for ever.
async fn waits(cx: Cx<u64>) -> Result<(), ganger_proc_api::BoxError> {
    while cx.recv().await.is_some() {}
    Ok(())
}

fn shelf(cx: Cx<u64>) -> impl Future<Output = Result<(), ganger_proc_api::BoxError>> + Send {
    waits(cx)
}

// pins: V1
#[test]
fn a_snapshot_has_all_schedulers_with_their_counts() {
    let first = Scheduler::builder().workers(1).host("one").start().unwrap();
    let second = Scheduler::builder().workers(2).node("n").build().unwrap();
    let endpoint = serve("127.0.0.1:0").scheduler(&first).scheduler(&first);
    let endpoint = endpoint.start().unwrap();
    endpoint.add(&second);
    endpoint.add(&first);
    let process = first.spawn(waits).unwrap();
    process.send(7).unwrap();
    until("its step is counted", || first.stats().total.steps >= 1);
    let snapshot: Snapshot = get(&endpoint, "/api/v1/snapshot").json();
    let [one, two] = &*snapshot.schedulers else {
        panic!("{snapshot:?}");
    };
    assert_eq!((one.number, two.number), (1, 2));
    assert_eq!((&*one.host, one.node.is_none()), ("one", true));
    assert_eq!(two.node.as_deref(), Some("n"));
    assert_eq!((one.is_started, two.is_started), (true, false));
    assert_eq!((one.live, two.live), (1, 0));
    assert!(one.total.steps >= 1 && one.total.started == 1 && one.uptime_ns > 0);
    assert_eq!((one.threads.workers, two.threads.workers), (1, 2));
    assert_eq!(one.workers.len(), 1);
    assert_eq!((one.timers.pending, one.timers.armed), (0, 0));
    let later: Snapshot = get(&endpoint, "/api/v1/snapshot").json();
    assert!(later.sequence > snapshot.sequence);
    drop((second, process));
    until("a scheduler that is gone leaves", || {
        let snapshot: Snapshot = get(&endpoint, "/api/v1/snapshot").json();
        snapshot.schedulers.len() == 1
    });
}

// pins: V1
#[test]
fn processes_are_ordered_filtered_and_counted() {
    let builder = Scheduler::builder().workers(1).mailbox_limit(100);
    let scheduler = builder.start().unwrap();
    let endpoint = serve("127.0.0.1:0").scheduler(&scheduler).start().unwrap();
    let parent = scheduler.spawn(async |cx: Cx| {
        let child = cx.named("the child").spawn(shelf)?;
        let (_, end) = cx.monitored(|spawner| spawner.spawn(waits))?;
        end.await?;
        Ok(child.pid())
    });
    let parent = parent.unwrap();
    let idle: Vec<_> = (0..7).map(|_| scheduler.spawn(waits).unwrap()).collect();
    until("all wait", || {
        let all = get(&endpoint, "/api/v1/processes").json::<Processes>();
        let is_waiting = |state| [State::Idle, State::Blocked].contains(&state);
        all.live == 10 && all.processes.iter().all(|it| is_waiting(it.state))
    });
    let list =
        |query: &str| -> Processes { get(&endpoint, &format!("/api/v1/processes?{query}")).json() };
    let named = list("filter=name:CHILD");
    assert_eq!((named.live, named.matched), (10, 1));
    let [child] = &*named.processes else {
        panic!("{named:?}");
    };
    assert_eq!(child.names, ["the child"]);
    assert_eq!(child.parent, Some(parent.pid().to_string()));
    assert!(child.type_name.contains("shelf"), "{child:?}");
    assert_eq!((child.method.as_str(), child.state), ("task", State::Idle));
    assert_eq!((child.queued, child.left), (Some(0), 0));
    assert_eq!(child.scheduler, 1);
    assert!(child.quiet_ns.is_some() && !child.is_cancelled && !child.is_terminating);
    assert_eq!(list("filter=type:answers::shelf").matched, 1);
    assert_eq!(list("filter=answers::waits").matched, 8);
    assert_eq!(list("filter=answers+-waits").matched, 2);
    assert_eq!(list("filter=state:blocked").matched, 0);
    assert_eq!(list("filter=method:TASK").matched, 10);
    let of_parent = format!("filter=parent:{}", parent.pid().id());
    assert_eq!(list(&of_parent).matched, 2);
    let of_pid = format!("filter=pid:{}", parent.pid().id());
    assert_eq!(list(&of_pid).processes[0].pid, parent.pid().to_string());
    let three = list("top=3&by=pid");
    assert_eq!((three.matched, three.processes.len()), (10, 3));
    let all = list("by=pid").processes;
    let pids = |all: &[Process]| all.iter().map(|it| it.pid.clone()).collect::<Vec<_>>();
    assert_eq!(pids(&three.processes), pids(&all[..3]));
    let ids = all
        .iter()
        .map(|it| it.pid.parse::<ganger_proc_api::Pid>().unwrap().id());
    assert!(ids.is_sorted());
    let quiet = list("by=quiet").processes;
    let quiet: Vec<_> = quiet.iter().map(|it| it.quiet_ns.unwrap()).collect();
    // The endpoint looks at a process after the other, each to about ten milliseconds.
    let near = 100_000_000;
    assert!(quiet.is_sorted_by(|one, next| one + near >= *next));
    assert_eq!(list("scheduler=1").matched, 10);
    drop(idle);
}

// pins: V11
#[test]
fn a_child_has_its_name_and_a_filter_finds_labels_and_the_names_of_children() {
    let builder = Scheduler::builder().workers(1).observe(Observe::Counts);
    let scheduler = builder.start().unwrap();
    let endpoint = serve("127.0.0.1:0").scheduler(&scheduler).start().unwrap();
    let root = Supervisor::one_for_one().label("root");
    let root = root.child("Orders", || waits).child("bills", || waits);
    let root = root.start(&scheduler).unwrap();
    let tenant = scheduler.spawner().labelled("Tenant-7");
    let tenant = tenant.spawn(waits).unwrap().pid().to_string();
    let pids = |query: &str| -> Vec<String> {
        let path = format!("/api/v1/processes?by=pid&{query}");
        let all: Processes = get(&endpoint, &path).json();
        all.processes.into_iter().map(|it| it.pid).collect()
    };
    let orders = root.child("Orders").unwrap();
    for query in [
        "filter=name:orders",
        "filter=ORDERS",
        "filter=waits+-bills+-label:tenant",
        "by=steps&window=1ms&filter=orders",
    ] {
        let path = format!("/api/v1/processes?{query}");
        let all: Processes = get(&endpoint, &path).json();
        let [found] = &*all.processes else {
            panic!("{query}: {all:?}");
        };
        assert_eq!(
            (&*found.pid, &*found.names),
            (&*orders.to_string(), &["Orders".to_owned()][..])
        );
    }
    assert_eq!(pids("filter=label:tenant-7"), [&*tenant]);
    assert_eq!(pids("filter=TENANT"), [&*tenant]);
    assert!(pids("filter=name:root").is_empty());
    // A registered name comes first, and the same name is there once.
    let of_orders =
        || -> Processes { get(&endpoint, &format!("/api/v1/process/{}", orders.id())).json() };
    scheduler.register_name("the orders", orders).unwrap();
    assert_eq!(of_orders().processes[0].names, ["the orders", "Orders"]);
    scheduler.register_name("Orders", orders).unwrap();
    assert_eq!(of_orders().processes[0].names.len(), 2);
}

// pins: V1
#[test]
fn the_longest_mailbox_comes_first() {
    let builder = Scheduler::builder().workers(1).mailbox_limit(100);
    let scheduler = builder.build().unwrap();
    let endpoint = serve("127.0.0.1:0").scheduler(&scheduler).start().unwrap();
    let processes: Vec<_> = (0..10).map(|_| scheduler.spawn(waits).unwrap()).collect();
    for (messages, process) in processes.iter().enumerate() {
        for _ in 0..messages {
            process.send(1).unwrap();
        }
    }
    let all: Processes = get(&endpoint, "/api/v1/processes?top=4").json();
    let queued = all.processes.iter().map(|it| it.queued);
    assert!(queued.eq([9, 8, 7, 6].map(Some)), "{all:?}");
    assert_eq!((all.live, all.matched), (10, 10));
}

// pins: V1
#[test]
fn a_process_is_found_by_its_pid_and_scheduler() {
    let [one, two] = [1, 2].map(|_| Scheduler::builder().host("twin").build().unwrap());
    let endpoint = serve("127.0.0.1:0").scheduler(&one).start().unwrap();
    let pid = ganger_proc_api::Pid::new(one.host_name(), 77);
    let idle = || process_fn(|_, _, _| Ok(()));
    one.submit_as(pid, idle(), "first", ()).unwrap();
    two.submit_as(pid, idle(), "second", ()).unwrap();
    for path in ["%7Btwin%7C77%7D", "twin%7C77", "twin|77", "77", "%7B77%7D"] {
        let found: Processes = get(&endpoint, &format!("/api/v1/process/{path}")).json();
        assert_eq!(found.processes[0].method, "first");
        assert_eq!(found.processes[0].pid, "{twin|77}");
    }
    endpoint.add(&two);
    get(&endpoint, "/api/v1/process/twin|77").refuses(400, "?scheduler=NUMBER");
    get(&endpoint, "/api/v1/process/77").refuses(400, "an id alone is of one scheduler");
    for path in ["twin|77", "77"] {
        let path = format!("/api/v1/process/{path}?scheduler=2");
        let found: Processes = get(&endpoint, &path).json();
        assert_eq!(found.processes[0].method, "second");
    }
    for gone in ["twin|78", "no_such_host_at_all|77", "twin|1"] {
        let answer = get(&endpoint, &format!("/api/v1/process/{gone}"));
        answer.refuses(404, "/api/v1/processes has the PIDs");
    }
    for wrong in ["", "%FF", "{}", "twin", "7x?scheduler=1", "07?scheduler=1"] {
        let answer = get(&endpoint, &format!("/api/v1/process/{wrong}"));
        answer.refuses(400, "write the PID as host|id");
    }
    let answer = get(&endpoint, "/api/v1/process/twin|77?top=2");
    answer.refuses(400, "leave the others out");
    for path in ["processes", "process/twin|77"] {
        let answer = get(&endpoint, &format!("/api/v1/{path}?scheduler=999999"));
        answer.refuses(404, "/api/v1/snapshot");
    }
}

// pins: V1
#[test]
fn dead_letters_are_shown_without_their_payloads() {
    let scheduler = keep_letters(Scheduler::builder()).build().unwrap();
    let plain = Scheduler::start_default().unwrap();
    let endpoint = serve("127.0.0.1:0").scheduler(&scheduler).scheduler(&plain);
    let endpoint = endpoint.start().unwrap();
    let process = scheduler.spawn(process_fn(|_, _, _| Ok(()))).unwrap();
    let message = Message::new("hello", "a secret of the sender");
    process.send(message).unwrap();
    let pid = process.pid();
    scheduler.terminate(pid).unwrap();
    scheduler.start().unwrap();
    process.wait();
    let answer = get(&endpoint, "/api/v1/letters");
    assert!(!answer.body.contains("secret"));
    let letters: Letters = answer.json();
    let [kept, counted] = &*letters.schedulers else {
        panic!("{letters:?}");
    };
    assert_eq!((kept.undelivered, counted.undelivered), (1, 0));
    assert!(counted.last.is_none());
    let last = kept.last.as_deref().unwrap();
    let [letter] = last else {
        panic!("{last:?}");
    };
    assert_eq!((&*letter.reason, &*letter.topic), ("ended", "hello"));
    assert_eq!(letter.target, pid.to_string());
}

struct Order {
    number: u64,
    #[expect(dead_code, reason = "its Show leaves it out")]
    card: &'static str,
}

impl Show for Order {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        assert_ne!(self.number, 13, "no such order, {}", self.number);
        write!(f, "order {}", self.number)
    }
}

// pins: V20
#[test]
fn dead_letters_show_the_messages_whose_types_say_how() {
    let keep = KeepLetters::new().show::<Order>();
    let scheduler = keep.on(Scheduler::builder()).build().unwrap();
    let endpoint = serve("127.0.0.1:0").scheduler(&scheduler).start().unwrap();
    let process = scheduler.spawn(process_fn(|_, _, _| Ok(()))).unwrap();
    let card = "a secret of the sender";
    for number in [7, 13] {
        process.send(Message::of(Order { number, card })).unwrap();
    }
    process.send(Message::of(card)).unwrap();
    // A late message.
    let gone = Pid::new(scheduler.host_name(), 1 << 40);
    let late = Message::of(Order { number: 8, card });
    let late = Envelope {
        target: gone,
        message: late,
    };
    let timer = scheduler.send_after(Duration::from_millis(1), late);
    scheduler.terminate(process.pid()).unwrap();
    scheduler.start().unwrap();
    process.wait();
    until("the late one is dropped", || {
        scheduler.timers().stats().refused == 1
    });
    drop(timer);
    let answer = || get(&endpoint, "/api/v1/letters");
    let letters = || {
        answer()
            .json::<Letters>()
            .schedulers
            .remove(0)
            .last
            .unwrap()
    };
    until("all are kept", || letters().len() == 4);
    assert!(!answer().body.contains("secret"));
    let mut texts: Vec<_> = letters()
        .into_iter()
        .map(|it| (it.text, it.message))
        .collect();
    texts.sort();
    let order = Some(std::any::type_name::<Order>().to_owned());
    let panicked = texts[1].0.as_deref().unwrap();
    assert!(
        panicked.starts_with("(its Show has panicked: "),
        "{panicked}"
    );
    assert!(panicked.contains("no such order, 13"), "{panicked}");
    assert_eq!(texts[0], (None, Some("&str".to_owned())));
    assert_eq!(texts[1].1, order);
    assert_eq!(texts[2], (Some("order 7".to_owned()), order.clone()));
    assert_eq!(texts[3], (Some("order 8".to_owned()), order));
}

// pins: V1
#[test]
fn an_orchestrator_is_told_whether_to_send_work() {
    let endpoint = serve("127.0.0.1:0").start().unwrap();
    get(&endpoint, "/readyz").refuses(503, "no scheduler is observed");
    let [first, second] = [1, 2].map(|_| Scheduler::builder().build().unwrap());
    endpoint.add(&first);
    get(&endpoint, "/readyz").refuses(503, "is not started");
    first.start().unwrap();
    get(&endpoint, "/readyz").refuses(200, "ready");
    endpoint.add(&second);
    get(&endpoint, "/readyz").refuses(503, "is not started");
    second.start().unwrap();
    get(&endpoint, "/readyz").refuses(200, "ready");
    second.stop(Duration::from_secs(1)).unwrap();
    get(&endpoint, "/readyz").refuses(503, "stops");
    get(&endpoint, "/healthz").refuses(200, "alive");
    drop(second);
    until("a scheduler that is gone leaves", || {
        get(&endpoint, "/readyz").status == 200
    });
}

#[test]
fn a_list_has_all_paths() {
    let scheduler = Scheduler::builder().host("page_host").start().unwrap();
    let endpoint = serve("127.0.0.1:0").scheduler(&scheduler).start().unwrap();
    let page = get(&endpoint, "/paths");
    assert_eq!(page.status, 200);
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert_eq!(page.header("cache-control"), Some("no-store"));
    assert!(page.header("content-security-policy").is_some());
    assert!(page.body.contains("page_host"));
    // All examples work.
    let links = page.body.split("href=\"").skip(1);
    let links: Vec<_> = links.filter_map(|it| it.split('"').next()).collect();
    assert!(links.len() >= 5, "{links:?}");
    for link in links {
        assert_eq!(
            get(&endpoint, &link.replace("&amp;", "&")).status,
            200,
            "{link}"
        );
    }
}

// pins: V1
#[test]
fn a_wrong_path_method_or_query_gets_a_sentence() {
    let scheduler = Scheduler::start_default().unwrap();
    let endpoint = serve("127.0.0.1:0").scheduler(&scheduler).start().unwrap();
    for path in [
        "/x",
        "/api",
        "/api/v1",
        "/api/v2/snapshot",
        "/login",
        "//",
        "/healthz/",
    ] {
        get(&endpoint, path).refuses(404, "/paths has a list of all paths");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "X"] {
        let answer = ask(&endpoint, method, "/api/v1/snapshot", &[]);
        answer.refuses(405, "ask by one of GET, HEAD");
        assert_eq!(answer.header("allow"), Some("GET, HEAD"));
    }
    let head = ask(&endpoint, "HEAD", "/api/v1/snapshot", &[]);
    assert_eq!((head.status, &*head.body), (200, ""));
    for (query, part) in [
        ("top=0", "from 1 to 1000"),
        ("top=1001", "from 1 to 1000"),
        ("top=x", "from 1 to 1000"),
        (
            "by=x",
            "use mailbox, quiet, pid, steps, events, busy, growth or age",
        ),
        (
            "filter=x:y",
            "use state, type, method, name, pid, parent and label",
        ),
        (
            "filter=state:gone",
            "use ready, running, blocked, idle and suspended",
        ),
        ("filter=type:", "field:text"),
        ("scheduler=x", "/api/v1/snapshot"),
        ("window=5", "write 500ms or 5s"),
        ("window=61s", "write 500ms or 5s"),
        ("window=1s&window=1s", "leave one out"),
        ("since=5", "use top, by, window, filter and scheduler"),
        ("top=1&top=2", "leave one out"),
    ] {
        let answer = get(&endpoint, &format!("/api/v1/processes?{query}"));
        answer.refuses(400, part);
    }
    for path in ["letters", "groups", "tree", "waits"] {
        let answer = get(&endpoint, &format!("/api/v1/{path}?x=y"));
        answer.refuses(400, "leave out the ?");
    }
    for (query, part) in [
        ("x=y", "a single parameter, since"),
        ("since=1&since=1", "a single parameter, since"),
        ("since=", "since is not a number"),
        ("since=-1", "since is not a number"),
    ] {
        get(&endpoint, &format!("/api/v1/snapshot?{query}")).refuses(400, part);
    }
}

#[test]
fn a_connection_is_kept_for_many_requests() {
    let endpoint = serve("127.0.0.1:0").start().unwrap();
    let mut stream = connect(endpoint.address());
    for last in [false, false, true] {
        let close = if last { "connection: close\r\n" } else { "" };
        let request = format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\n{close}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
    }
    let answers = read(&stream);
    let count = answers.body.matches("HTTP/1.1 200 OK").count();
    assert_eq!((answers.status, count), (200, 2));
}

#[test]
fn a_dropped_endpoint_leaves_its_port_and_ends_its_connections() {
    let endpoint = serve("127.0.0.1:0").start().unwrap();
    let address = endpoint.address();
    let stream = connect(address);
    assert_eq!(get(&endpoint, "/healthz").status, 200);
    let again = serve(address).start().unwrap_err();
    assert!(again.to_string().contains("choose a free port"), "{again}");
    drop(endpoint);
    assert_eq!(read(&stream).status, 0);
    assert_eq!(serve(address).start().unwrap().address(), address);
}

// pins: V2
#[test]
fn the_page_is_one_document_that_may_ask_the_endpoint_alone() {
    let scheduler = Scheduler::builder().host("page_host").start().unwrap();
    let endpoint = serve("127.0.0.1:0").scheduler(&scheduler).start().unwrap();
    let page = get(&endpoint, "/");
    assert_eq!(page.status, 200);
    let kind = page.header("content-type");
    assert_eq!(kind, Some("text/html; charset=utf-8"));
    assert_eq!(page.header("cache-control"), Some("no-store"));
    let policies = page.head.matches("content-security-policy").count();
    assert_eq!(policies, 1);
    let policy = page.header("content-security-policy").unwrap();
    for part in [
        "default-src 'none';",
        "script-src 'sha256-",
        "connect-src 'self';",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(page.body.starts_with("<!doctype html>"));
    assert!(page.body.contains("/api/v1/snapshot"));
    // Names of the program come as data alone.
    assert!(!page.body.contains("page_host"));
}
