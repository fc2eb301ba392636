//! Links by commands alone.

use crate::support::*;
use ganger_link::commands::{Link, Unlink};
use ganger_link::{LinkContext, TargetError};
use ganger_proc_api::{
    CommandError, Completion, Event, ExitCause, ExitReason, Pid, Process, TypedCommand, process_fn,
};
use std::sync::mpsc::{Sender, channel};

/// Asks for the first command, and at each answer for the next, passes the answers on, and waits.
fn asks(
    commands: impl IntoIterator<Item = Act, IntoIter: Send + 'static>,
    answers: Sender<Completion>,
) -> impl Process {
    let mut commands = commands.into_iter();
    process_fn(move |_, events, out| {
        if let Some(Event::Completion(answer)) = events.next() {
            answers.send(answer)?;
        }
        match commands.next() {
            Some(Act::Link(pid)) => _ = out.ask(Link(pid), 7),
            Some(Act::Unlink(pid)) => _ = out.ask(Unlink(pid), 8),
            None => {}
        }
        Ok(())
    })
}

enum Act {
    Link(Pid),
    Unlink(Pid),
}

// pins: C5, L4
#[test]
fn a_process_links_itself_by_a_command() {
    let scheduler = start(2);
    let peer = puppet(&scheduler);
    let (sender, answers) = channel();
    let one = scheduler
        .spawn(asks([Act::Link(peer.pid())], sender))
        .unwrap();
    let answer = answers.recv_timeout(PATIENCE).unwrap();
    assert_eq!(answer.tag, 7);
    answer.take::<()>().unwrap();
    let pid = one.pid();
    peer.have(move |ctx, _| {
        assert_eq!(ctx.links(), [pid]);
        Ok(())
    });
    peer.tell(|_, _| Err("boom".into()));
    assert!(matches!(exit(one), ExitReason::Exited(it) if it == failed("boom")));
}

// pins: C5, L5
#[test]
fn a_process_unlinks_itself_by_a_command() {
    let scheduler = start(2);
    let peer = puppet(&scheduler);
    let (sender, answers) = channel();
    let pid = peer.pid();
    let one = scheduler
        .spawn(asks([Act::Link(pid), Act::Unlink(pid)], sender))
        .unwrap();
    for tag in [7, 8] {
        let answer = answers.recv_timeout(PATIENCE).unwrap();
        assert_eq!((answer.tag, answer.take::<()>().unwrap()), (tag, ()));
    }
    peer.tell(|_, _| Err("boom".into()));
    assert!(matches!(exit(peer.handle), ExitReason::Failed(_)));
    assert!(!one.is_finished());
    scheduler.terminate(one.pid()).unwrap();
    assert!(matches!(exit(one), ExitReason::Terminated));
}

// pins: C5
#[test]
fn a_pid_of_another_scheduler_is_an_error_and_one_that_is_gone_a_signal() {
    let scheduler = start(1);
    let elsewhere: Pid = "{elsewhere|5}".parse().unwrap();
    let (sender, answers) = channel();
    let commands = [Act::Link(elsewhere), Act::Unlink(elsewhere)];
    let one = scheduler.spawn(asks(commands, sender.clone())).unwrap();
    for tag in [7, 8] {
        let answer = answers.recv_timeout(PATIENCE).unwrap();
        assert_eq!(answer.tag, tag);
        let Err(CommandError::Failed(error)) = answer.result else {
            panic!("it was linked");
        };
        assert_eq!(
            error.downcast_ref(),
            Some(&TargetError::Elsewhere(elsewhere))
        );
    }
    drop(one);
    let gone = puppet(&scheduler);
    let pid = gone.pid();
    gone.tell(|_, out| {
        out.done(());
        Ok(())
    });
    assert!(exit(gone.handle).is_done());
    let one = scheduler.spawn(asks([Act::Link(pid)], sender)).unwrap();
    assert!(matches!(exit(one), ExitReason::Exited(ExitCause::NotFound)));
}

// pins: C5
#[test]
fn the_ids_are_those_that_are_reserved() {
    let pid: Pid = "{elsewhere|5}".parse().unwrap();
    assert_eq!(Link(pid).into_command().id.get(), 7);
    assert_eq!(Unlink(pid).into_command().id.get(), 8);
}
