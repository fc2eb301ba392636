//! The errors of a sender and an asker when a process takes nothing more.

use crate::support::*;
use ganger_proc_api::{
    BoxError, CommandError, EndKind, Message, Reply, SendErrorKind, StepResult, actor_fn,
};
use ganger_sched::{CallRefused, Scheduler};

/// Returns the kind of end of a process that takes its first message.
fn ends(step: fn(&mut ganger_proc_api::StepOutput) -> StepResult) -> EndKind {
    quiet_panics();
    let scheduler = Scheduler::builder()
        .workers(1)
        .quiet_failures()
        .start()
        .unwrap();
    let actor = actor_fn(move |_, _: Reply<u64>, out: &mut ganger_proc_api::StepOutput| step(out));
    let actor = scheduler.spawn(actor).unwrap();
    let address = actor.address().clone();
    drop(address.call(|reply| reply).begin());
    drop(actor.wait());
    let error = address.call(|reply| reply).wait().unwrap_err();
    let CommandError::Failed(error) = &error else {
        panic!("{error}");
    };
    let refused = error.downcast_ref::<CallRefused>().unwrap();
    assert_eq!(refused.pid, address.pid());
    let SendErrorKind::Ended(kind) = refused.kind else {
        panic!("{refused}");
    };
    let text = format!("can't ask {}: the process has ended: ", address.pid());
    assert!(error.to_string().starts_with(&text), "{error}");
    kind
}

// pins: F4
#[test]
fn a_process_that_has_ended_says_how() {
    let ways = [
        ends(|out| {
            out.done(7);
            Ok(())
        }),
        ends(|_| Err("no disk".into())),
        ends(|_| panic!("on purpose: step")),
    ];
    assert_eq!(ways, [EndKind::Done, EndKind::Failed, EndKind::Panicked]);
}

// pins: F4
#[test]
fn a_scheduler_that_has_stopped_says_so_and_the_message_comes_back() -> Result<(), BoxError> {
    let scheduler = Scheduler::builder().workers(1).start()?;
    let waits = scheduler.submit(waiter(), "main", ())?;
    let address = waits.address().clone();
    let handle = scheduler.handle();
    drop(scheduler);
    let pid = address.pid();
    let refused = [
        address.send(Message::new("late", 7)).unwrap_err(),
        handle.send(Message::new("late", 7).to(pid)).unwrap_err(),
    ];
    for error in refused {
        assert_eq!(error.kind, SendErrorKind::Stopping);
        assert!(error.kind.is_closed());
        let text = format!("can't send to {pid}: the scheduler is stopping or has stopped");
        assert_eq!(error.to_string(), text);
        assert_eq!(error.into_envelope().message.topic, "late");
    }
    Ok(())
}
