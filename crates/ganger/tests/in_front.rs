//! A mailbox in front of a scheduler, as the scheduler's own processes see it.

use ganger::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// A scheduler, with a mailbox in front of it on the node of its router.
fn scheduler() -> (Scheduler, Arc<Mailbox<WeakHandle>>) {
    let here = NodeName::new("here").unwrap();
    let router = Arc::new(Router::new(Arc::new(Node::new(here))));
    let local = Arc::clone(router.local());
    let builder = Scheduler::builder().workers(1).node("here").host("main");
    let scheduler = builder.router(router).route_unknown(true).build().unwrap();
    let mailbox = Mailbox::in_front_of(scheduler.downgrade(), here, scheduler.host_name());
    let mailbox = Arc::new(mailbox);
    local
        .add_host(scheduler.host_name(), mailbox.clone())
        .unwrap();
    scheduler.start().unwrap();
    (scheduler, mailbox)
}

fn pid(text: &str) -> Pid {
    text.parse().unwrap()
}

/// Answers each message to whom it is from, and as a control message as well.
#[derive(Default)]
struct Echo(Option<ProcessContext>);

impl Process for Echo {
    fn init(&mut self, context: &ProcessContext, _: &str, _: Payloads) -> Result<(), BoxError> {
        self.0 = Some(context.clone());
        Ok(())
    }

    fn step(&mut self, events: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
        out.idle();
        for event in events {
            if let (Event::Message(message), Some(context)) = (event, &self.0) {
                let source = message.source.ok_or("from nobody")?;
                context.send_control(source, "control", ())?;
                context.send(source, "answer", message.payloads)?;
                out.done(());
            }
        }
        Ok(())
    }
}

// pins: R5
#[test]
fn processes_answer_whom_is_attached_in_front_of_their_scheduler() {
    let (scheduler, mailbox) = scheduler();
    for text in ["{main|7}", "{here@main|7}"] {
        let inbox = mailbox.attach(pid(text)).unwrap();
        let echo = scheduler.submit(Echo::default(), "main", ()).unwrap();
        let question = Package::new(inbox.pid(), echo.pid(), "question", 7_u64);
        scheduler.send(question).unwrap();
        let exit = echo.wait();
        assert!(exit.is_done(), "{exit:?}");
        let topics = [(); 2].map(|()| inbox.recv().unwrap().message.topic);
        assert_eq!(topics, ["control", "answer"]);
    }
}

// pins: R2, R5
#[test]
fn what_nobody_takes_is_not_found() {
    let (scheduler, mailbox) = scheduler();
    let send = |text: &str| scheduler.send(Package::new(None, pid(text), "topic", 1_u64));
    let refused = send("{main|7}").unwrap_err();
    assert_eq!(refused.kind, SendErrorKind::NotFound);
    assert_eq!(refused.into_package().message.topic, "topic");
    let inbox = mailbox.attach(pid("{main|7}")).unwrap();
    send("{main|7}").unwrap();
    drop(inbox);
    assert_eq!(send("{main|7}").unwrap_err().kind, SendErrorKind::NotFound);
}

/// Else it comes back to itself for ever.
// pins: R2
#[test]
fn who_is_in_front_may_ask_twice() {
    let place = Arc::new(OnceLock::<WeakHandle>::new());
    let (theirs, asked) = (Arc::clone(&place), Arc::new(AtomicU64::new(0)));
    let count = Arc::clone(&asked);
    let front = ganger::relay::from_fn(move |package| {
        assert!(
            count.fetch_add(1, Ordering::SeqCst) < 10,
            "it asks itself for ever"
        );
        let handle = theirs
            .get()
            .and_then(WeakHandle::upgrade)
            .expect("it sends");
        let first = handle.send(package);
        first.or_else(|error| handle.send(error.into_package()))
    });
    let builder = Scheduler::builder().workers(1).host("main");
    let builder = builder.router(Arc::new(front)).route_unknown(true);
    let scheduler = builder.build().unwrap();
    place.set(scheduler.downgrade()).unwrap();
    let refused = scheduler.send(Package::new(None, pid("{main|7}"), "topic", 1_u64));
    assert_eq!(refused.unwrap_err().kind, SendErrorKind::NotFound);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

// pins: R5
#[test]
fn who_is_in_front_may_send_to_another_there() {
    let here = NodeName::new("here").unwrap();
    let router = Arc::new(Router::new(Arc::new(Node::new(here))));
    let local = Arc::clone(router.local());
    let builder = Scheduler::builder().workers(1).node("here").host("main");
    let builder = builder.router(router).route_unknown(true);
    let scheduler = builder.build().unwrap();
    let host = scheduler.host_name();
    let mailbox = Mailbox::in_front_of(scheduler.downgrade(), here, host);
    let inbox = mailbox.attach(pid("{main|8}")).unwrap();
    let weak = scheduler.downgrade();
    let front = ganger::relay::from_fn(move |package: Package| match package.target.id() {
        7 => {
            let handle = weak.upgrade().expect("it sends");
            handle.send(Package::new(None, pid("{main|8}"), "noted", 1_u64))
        }
        _ => mailbox.send(package),
    });
    local.add_host(host, Arc::new(front)).unwrap();
    for (text, topic) in [("{main|8}", "direct"), ("{main|7}", "noted")] {
        scheduler
            .send(Package::new(None, pid(text), "direct", 1_u64))
            .unwrap();
        assert_eq!(inbox.recv().unwrap().message.topic, topic);
    }
}

/// A scheduler that passes on what it has no process for, to itself under both names.
fn behind_itself(passes_on: bool) -> (Scheduler, Arc<Node>) {
    let here = NodeName::new("here").unwrap();
    let router = Arc::new(Router::new(Arc::new(Node::new(here))));
    let local = Arc::clone(router.local());
    let builder = Scheduler::builder().workers(1).node("here").host("main");
    let builder = builder.router(router).route_unknown(passes_on);
    let scheduler = builder.build().unwrap();
    for name in ["main", "other"] {
        let handle = scheduler.handle();
        let again = ganger::relay::from_fn(move |package| handle.send(package));
        let name = HostName::new(name).unwrap();
        local.add_host(name, Arc::new(again)).unwrap();
    }
    (scheduler, local)
}

/// It would ask itself for ever.
// pins: R2
#[test]
fn a_scheduler_behind_itself_refuses_whom_it_does_not_know() {
    for passes_on in [false, true] {
        let (scheduler, local) = behind_itself(passes_on);
        for _ in 0..100 {
            for (text, kind) in [
                ("{main|7}", SendErrorKind::NotFound),
                ("{other|7}", SendErrorKind::HostNotFound),
            ] {
                let refused = scheduler.send(Package::new(None, pid(text), "topic", 1_u64));
                assert_eq!(refused.unwrap_err().kind, kind);
            }
        }
        // Else it would keep itself.
        for name in local.hosts() {
            assert!(local.remove_host(name).is_some());
        }
    }
}

/// Each is where the other one's packages go.
// pins: R2
#[test]
fn schedulers_that_route_to_each_other_refuse_whom_neither_knows() {
    let other = Arc::new(OnceLock::<WeakSender>::new());
    let build = |host: &str, to: Arc<OnceLock<WeakSender>>| {
        let router = ganger::relay::from_fn(move |package| to.get().expect("it is set")(package));
        let builder = Scheduler::builder().workers(1).host(host);
        let builder = builder.router(Arc::new(router)).route_unknown(true);
        builder.build().unwrap()
    };
    let (to_first, to_second) = (Arc::clone(&other), Arc::new(OnceLock::new()));
    let (first, second) = (build("a", Arc::clone(&to_second)), build("b", to_first));
    let sender = |scheduler: &Scheduler| -> WeakSender {
        let weak = scheduler.downgrade();
        Box::new(move |package| match weak.upgrade() {
            Some(handle) => handle.send(package),
            None => Err(SendError::new(SendErrorKind::HostNotFound, package)),
        })
    };
    assert!(other.set(sender(&first)).is_ok() && to_second.set(sender(&second)).is_ok());
    for text in ["{a|7}", "{b|7}"] {
        let refused = first.send(Package::new(None, pid(text), "topic", 1_u64));
        assert_eq!(refused.unwrap_err().kind, SendErrorKind::NotFound);
    }
}

type WeakSender = Box<dyn Fn(Package) -> Result<(), SendError> + Send + Sync>;
