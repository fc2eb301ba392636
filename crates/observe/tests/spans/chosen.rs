//! The steps with spans.

use crate::kept::{exporter, field, has_failed, links, of_host};
use ganger_observe::{StepSpans, Steps, trace_steps};
use ganger_proc_api::{Message, Process, actor_fn, process_fn};
use ganger_sched::{ContextExt, ProcessHandle, Scheduler};
use std::time::Duration;

fn traced(host: &str, steps: Steps) -> Scheduler {
    exporter();
    let builder = Scheduler::builder().workers(1).host(host);
    trace_steps(builder, steps).build().unwrap()
}

struct Counter(u64);

impl ganger_proc_api::Actor for Counter {
    type Message = u64;

    fn receive(
        &mut self,
        _: &ganger_proc_api::Context,
        more: u64,
        out: &mut ganger_proc_api::StepOutput,
    ) -> ganger_proc_api::StepResult {
        self.0 += more;
        if more == 0 {
            out.done(self.0);
        }
        Ok(())
    }
}

/// Returns a process that goes on for so many steps, without an event.
fn steps(many: u32) -> impl Process {
    let mut left = many;
    process_fn(move |_, _, out| {
        left -= 1;
        if left == 0 {
            out.done(());
        } else {
            out.step_again();
        }
        Ok(())
    })
}

fn stop(scheduler: Scheduler) {
    scheduler.stop(Duration::from_secs(5)).unwrap();
}

// pins: V13
#[test]
fn a_rate_is_exact() {
    for (host, some, of, expected) in [
        ("rate-all", 1, 1, 1_000),
        ("rate-few", 1, 100, 10),
        ("rate-some", 3, 7, 429),
        ("rate-none", 0, 7, 0),
    ] {
        let scheduler = traced(host, Steps::all().rate(some, of).whole(1));
        scheduler.start().unwrap();
        scheduler
            .submit(steps(1_000), "goes on", ())
            .unwrap()
            .wait();
        stop(scheduler);
        let spans = of_host(host);
        assert_eq!(spans.len(), expected);
        assert!(spans.iter().all(|it| it.links.is_empty()));
    }
}

// pins: V13
#[test]
fn a_filter_is_exact_and_changes_at_run_time() {
    let scheduler = traced("filter", Steps::all().of_method("b").of_method("c"));
    scheduler.start().unwrap();
    let run = |method: &'static str, label: Option<&str>| {
        let spawner = scheduler.spawner();
        let spawner = match label {
            Some(label) => spawner.labelled(label),
            None => spawner,
        };
        let process = spawner.submit(steps(2), method, ()).unwrap();
        let pid = process.pid().to_string();
        process.wait();
        pid
    };
    let choose = |steps| StepSpans::of(&scheduler).unwrap().choose(steps);
    let mut expected = Vec::new();

    let pids = ["a", "b", "c"].map(|method| run(method, None));
    expected.extend([&pids[1], &pids[2]].map(Clone::clone));

    choose(Steps::all().of_label("x").of_label("y"));
    let labels = [None, Some("x"), Some("z"), Some("y"), Some("x")];
    let pids = labels.map(|label| run("a", label));
    expected.extend([&pids[1], &pids[3], &pids[4]].map(Clone::clone));

    choose(Steps::all().of_label("x").of_method("b"));
    let pids = [("a", "x"), ("b", "x"), ("b", "y")].map(|(method, it)| run(method, Some(it)));
    expected.push(pids[1].clone());

    choose(Steps::none());
    run("b", Some("x"));

    choose(
        Steps::all()
            .of_type("chosen::Co")
            .of_type("spans::chosen::Counter"),
    );
    run("b", None);
    let counter = scheduler.spawn(Counter(0)).unwrap();
    let pid = counter.pid();
    choose(Steps::all().of_process(pid).of_method("b"));
    run("b", None);
    choose(Steps::all().of_process(pid));
    counter.send(0).unwrap();
    counter.wait();
    run("b", None);
    stop(scheduler);

    // Two steps each. The counter has one or two: its first has the message, or none.
    let spans = of_host("filter");
    let pids: Vec<_> = spans.iter().map(|it| field(it, "pid").unwrap()).collect();
    let expected: Vec<_> = expected
        .iter()
        .flat_map(|pid| [pid.clone(), pid.clone()])
        .collect();
    let (of_runs, of_counter) = pids.split_at(expected.len());
    assert_eq!(of_runs, expected);
    assert!(!of_counter.is_empty() && of_counter.iter().all(|it| *it == pid.to_string()));
}

// pins: V13
#[test]
fn a_span_says_what_its_step_is() {
    let scheduler = traced("says", Steps::all());
    let spawner = scheduler.spawner().labelled("tenant-7");
    let counter = spawner.submit(takes_all(), "sum", ()).unwrap();
    for _ in 0..3 {
        counter.send(Message::new("n", ())).unwrap();
    }
    scheduler.start().unwrap();
    let pid = counter.pid().to_string();
    counter.wait();
    stop(scheduler);
    let spans = of_host("says");
    assert_eq!(spans.len(), 1);
    let says = |name| field(&spans[0], name).unwrap_or_default();
    assert_eq!((says("pid"), says("label")), (pid, "tenant-7".to_owned()));
    assert_eq!(
        (says("method"), says("events")),
        ("sum".to_owned(), "3".to_owned())
    );
    assert_eq!(spans[0].name, says("type"));
    assert!(!has_failed(&spans[0]) && says("error").is_empty());
}

/// Ends with its first step.
fn takes_all() -> impl Process {
    process_fn(|_, events, out| {
        out.done(events.count() as u64);
        Ok(())
    })
}

// pins: V13
#[test]
fn a_step_that_fails_or_panics_ends_its_span_and_is_a_cause() {
    let scheduler = traced("fails", Steps::all());
    scheduler.start().unwrap();
    let hears = actor_fn(|_, number: u64, out| {
        out.done(number);
        Ok(())
    });
    let hears = scheduler.spawn(hears).unwrap();
    let address = hears.address().clone();
    let panics = process_fn(move |_, _, _| {
        address.send(7)?;
        panic!("on purpose");
    });
    assert!(
        scheduler
            .spawn(panics)
            .unwrap()
            .wait()
            .to_string()
            .contains("on purpose")
    );
    hears.wait();
    let fails = process_fn(|_, _, _| Err("no luck".into()));
    scheduler.spawn(fails).unwrap().wait();
    // The worker is in no span any more.
    let after = process_fn(|_, _, out| {
        out.done(tracing::Span::current().metadata().map(|it| it.name()));
        Ok(())
    });
    let current = scheduler.spawn(after).unwrap().wait();
    assert_eq!(current.take::<Option<&str>>().unwrap(), Some("step"));
    stop(scheduler);
    let spans = of_host("fails");
    let mut texts: Vec<_> = spans.iter().filter_map(|it| field(it, "error")).collect();
    texts.sort();
    assert_eq!(texts, ["failed: no luck", "panicked: on purpose"]);
    assert_eq!(spans.iter().filter(|it| has_failed(it)).count(), 2);
    let is_panic = |it: &&_| field(it, "error").is_some_and(|it| it.starts_with("panicked"));
    let panicked = spans.iter().find(is_panic).unwrap();
    let caused = spans
        .iter()
        .filter(|it| links(it) == [panicked.span_context.span_id()]);
    assert_eq!(caused.count(), 1);
}

/// Runs a process that sends 1,000 messages to itself in turn, and returns its spans.
fn circle(host: &str, steps: Steps) -> Vec<opentelemetry_sdk::trace::SpanData> {
    let scheduler = traced(host, steps);
    scheduler.start().unwrap();
    let circle: ProcessHandle<u64> = scheduler
        .spawn(actor_fn(|ctx, left: u64, out| {
            match left {
                0 => out.done(()),
                _ => ctx.address::<u64>()?.send(left - 1)?,
            }
            Ok(())
        }))
        .unwrap();
    tracing::info_span!("circle").in_scope(|| circle.send(999).unwrap());
    circle.wait();
    stop(scheduler);
    of_host(host)
}

// pins: V13
#[test]
fn a_process_that_sends_to_itself_is_not_traced_for_ever() {
    let spans = circle("circle", Steps::all().rate(0, 1).whole(50));
    assert_eq!(spans.len(), 50);
    assert!(spans.iter().all(|it| it.links.len() == 1));
    // A step without the right to a span costs as much, and hands its cause through.
    let spans = circle(
        "circle-none",
        Steps::all().of_type("nothing").rate(0, 1).whole(50),
    );
    assert!(spans.is_empty());
}
