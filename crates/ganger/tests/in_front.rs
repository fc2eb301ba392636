//! A mailbox in front of a scheduler, as the scheduler's own processes see it.

use ganger::prelude::*;
use ganger::relay::Receiver;
use std::sync::Arc;

/// A scheduler, with a mailbox in front of it on the node of its router.
fn scheduler() -> (Scheduler, Arc<Mailbox<WeakHandle>>) {
    let here = NodeName::new("here").unwrap();
    let router = Arc::new(Router::new(Arc::new(Node::new(here))));
    let local = Arc::clone(router.local());
    let builder = Scheduler::builder().workers(1).node("here").host("main");
    let scheduler = builder.router(router).build().unwrap();
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

/// It would ask itself for ever.
// pins: R2
#[test]
fn a_scheduler_behind_its_own_router_refuses_whom_it_does_not_know() {
    let here = NodeName::new("here").unwrap();
    let router = Arc::new(Router::new(Arc::new(Node::new(here))));
    let local = Arc::clone(router.local());
    let builder = Scheduler::builder().workers(1).node("here").host("main");
    let scheduler = builder.router(router).build().unwrap();
    let send = |text: &str| scheduler.send(Package::new(None, pid(text), "topic", 1_u64));
    // The router does not know it.
    assert_eq!(send("{main|7}").unwrap_err().kind, SendErrorKind::NotFound);
    let handle = scheduler.handle();
    let routes = ganger::relay::from_fn(move |package| handle.send(package));
    let routes: Arc<dyn Receiver> = Arc::new(routes);
    for name in ["main", "other"] {
        let name = HostName::new(name).unwrap();
        local.add_host(name, Arc::clone(&routes)).unwrap();
    }
    for (text, kind) in [
        ("{main|7}", SendErrorKind::NotFound),
        ("{other|7}", SendErrorKind::HostNotFound),
    ] {
        assert_eq!(send(text).unwrap_err().kind, kind);
    }
    // Else it would keep itself.
    assert!(local.remove_host(HostName::new("main").unwrap()).is_some());
    assert!(local.remove_host(HostName::new("other").unwrap()).is_some());
}
