//! The last events of a process, over HTTP.

use super::support::{ask, get, until};
use ganger_observe::api::{ProcessEvent, ProcessEvents};
use ganger_observe::serve;
use ganger_proc_api::actor_fn;
use ganger_sched::{Recorder, Scheduler};

// pins: V15
#[test]
fn the_last_events_of_a_process_are_shown_also_when_it_has_ended() {
    let recorder = Recorder::new().bytes(1 << 20);
    let scheduler = Scheduler::builder().workers(1).record(recorder);
    let scheduler = scheduler.start().unwrap();
    let endpoint = serve("127.0.0.1:0").scheduler(&scheduler).start().unwrap();
    let once = actor_fn(|_, _secret: String, out| {
        out.done(());
        Ok(())
    });
    let once = scheduler.spawn(once).unwrap();
    let pid = once.pid();
    once.send("a payload".to_owned()).unwrap();
    assert!(once.wait().is_done());

    let path = format!("/api/v1/process/main%7C{}/events", pid.id());
    let mut answer = get(&endpoint, &path);
    until("its turn is over", || {
        answer = get(&endpoint, &path);
        answer.body.contains("\"turn ends\"") && answer.body.contains("\"ends\"")
    });
    assert!(!answer.body.contains("payload"), "{}", answer.body);
    let all: ProcessEvents = answer.json();
    assert_eq!((all.scheduler, all.pid), (1, pid.to_string()));
    let ends = all.events.iter().find(|it| it.what == "ends").unwrap();
    assert_eq!(ends.text, "done");
    assert!(all.events.iter().any(|it| it.text.contains("String")));
    let two: ProcessEvents = get(&endpoint, &format!("{path}?n=2&scheduler=1")).json();
    let whats = |it: &[ProcessEvent]| it.iter().map(|it| it.what.clone()).collect::<Vec<_>>();
    let last = &all.events[all.events.len() - 2..];
    assert_eq!(whats(&two.events), whats(last));

    get(&endpoint, &format!("{path}?n=1001")).refuses(400, "from 1 to 1000");
    get(&endpoint, &format!("{path}?scheduler=9")).refuses(404, "no scheduler has");
    get(&endpoint, "/api/v1/process/main%7C123/events").refuses(404, "no live process");
    ask(&endpoint, "POST", &path, &[]).refuses(405, "only answers");
}

// pins: V15
#[test]
fn a_scheduler_that_does_not_record_says_so() {
    let scheduler = Scheduler::builder().workers(1).start().unwrap();
    let endpoint = serve("127.0.0.1:0").scheduler(&scheduler).start().unwrap();
    let silent = scheduler.spawn(actor_fn(|_, (): (), _| Ok(()))).unwrap();
    let path = format!("/api/v1/process/main%7C{}/events", silent.pid().id());
    get(&endpoint, &path).refuses(404, "does not record");
}
