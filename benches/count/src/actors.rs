//! Two actors: a typed message to and fro, and questions of an actor to its partner.

use crate::one_worker::{OneWorker, ended};
use ganger_proc_api::{BoxError, Event, Reply, actor_fn, process_fn};
use ganger_sched::{Address, ProcessHandle};

/// The message of a pair.
pub(crate) enum Ball {
    /// The other actor, before the first number.
    Partner(Address<Self>),
    Number(u64),
}

pub(crate) fn send(worker: &OneWorker, sends: u64) -> Result<(), BoxError> {
    // Sends each received number, less 1, to its partner, and ends at 1 or 0.
    let half = || {
        let mut partner: Option<Address<Ball>> = None;
        worker.scheduler.spawn(actor_fn(move |_, ball, out| {
            match ball {
                Ball::Partner(it) => partner = Some(it),
                Ball::Number(left) => {
                    if let Some(less) = left.checked_sub(1) {
                        let partner = partner.as_ref().ok_or("without a partner")?;
                        partner.send(Ball::Number(less))?;
                    }
                    if left <= 1 {
                        out.done(());
                    }
                }
            }
            Ok(())
        }))
    };
    play([half()?, half()?], sends)
}

/// Has two halves send a ball to each other, until they end.
pub(crate) fn play(halves: [ProcessHandle<Ball>; 2], sends: u64) -> Result<(), BoxError> {
    let [white, black] = &halves;
    white.send(Ball::Partner(black.address().clone()))?;
    black.send(Ball::Partner(white.address().clone()))?;
    white.send(Ball::Number(sends))?;
    halves.into_iter().try_for_each(ended)
}

/// A number; the answer is the number.
pub(crate) struct Question(pub(crate) u64, pub(crate) Reply<u64>);

/// Runs a process with a question for each of the numbers down to 1, after the answer to the number
/// before.
pub(crate) fn call(worker: &OneWorker, calls: u64) -> Result<(), BoxError> {
    let mut left = calls;
    let server = actor_fn(move |_, Question(number, reply): Question, out| {
        reply.complete(number);
        left -= 1;
        if left == 0 {
            out.done(());
        }
        Ok(())
    });
    let server = worker.scheduler.spawn(server)?;
    let address = server.address().clone();
    let asker = process_fn(move |_, events, out| {
        for event in events {
            if let Event::Completion(answer) = event {
                if answer.take::<u64>()? != left {
                    return Err("another answer".into());
                }
                left -= 1;
            }
        }
        match left {
            0 => out.done(()),
            number => {
                let question = address.call(move |reply| Question(number, reply));
                out.ask(question, number);
            }
        }
        Ok(())
    });
    ended(worker.submit(asker)?)?;
    ended(server)
}
