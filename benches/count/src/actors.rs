//! Two actors: a message of one type to and fro, and questions of one to the other.

use crate::one_worker::{OneWorker, ended};
use ganger_proc_api::{
    Actor, BoxError, Completion, Context, Event, Events, Process, Reply, StepOutput, StepResult,
};
use ganger_sched::Address;

/// The message of a pair.
enum Ball {
    /// The other actor, before the first number.
    Partner(Address<Self>),
    Number(u64),
}

pub(crate) fn send(worker: &OneWorker, sends: u64) -> Result<(), BoxError> {
    let half = || worker.scheduler.spawn(Half { partner: None });
    let (white, black) = (half()?, half()?);
    white.send(Ball::Partner(black.address().clone()))?;
    black.send(Ball::Partner(white.address().clone()))?;
    white.send(Ball::Number(sends))?;
    ended(white)?;
    ended(black)
}

/// Sends each received number, less 1, to its partner, and ends at 1 or 0.
struct Half {
    partner: Option<Address<Ball>>,
}

impl Actor for Half {
    type Message = Ball;

    fn receive(&mut self, _: &Context, ball: Ball, out: &mut StepOutput) -> StepResult {
        match ball {
            Ball::Partner(partner) => self.partner = Some(partner),
            Ball::Number(left) => {
                if let Some(less) = left.checked_sub(1) {
                    let partner = self.partner.as_ref().ok_or("without a partner")?;
                    partner.send(Ball::Number(less))?;
                }
                if left <= 1 {
                    out.done(());
                }
            }
        }
        Ok(())
    }
}

/// A number, which is answered with itself.
pub(crate) struct Question(pub(crate) u64, pub(crate) Reply<u64>);

pub(crate) fn call(worker: &OneWorker, calls: u64) -> Result<(), BoxError> {
    let server = worker.scheduler.spawn(Server { left: calls })?;
    let asker = Asker {
        server: server.address().clone(),
        left: calls,
    };
    ended(worker.submit(asker)?)?;
    ended(server)
}

/// Answers this many questions.
struct Server {
    left: u64,
}

impl Actor for Server {
    type Message = Question;

    fn receive(&mut self, _: &Context, question: Question, out: &mut StepOutput) -> StepResult {
        let Question(number, reply) = question;
        reply.complete(number);
        self.left -= 1;
        if self.left == 0 {
            out.done(());
        }
        Ok(())
    }
}

/// Asks for each of the numbers from `left` down to 1, after the answer to the number before.
struct Asker {
    server: Address<Question>,
    left: u64,
}

impl Asker {
    fn take(&mut self, answer: Completion) -> StepResult {
        if answer.take::<u64>()? != self.left {
            return Err("another answer".into());
        }
        self.left -= 1;
        Ok(())
    }
}

impl Process for Asker {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            if let Event::Completion(answer) = event {
                self.take(answer)?;
            }
        }
        match self.left {
            0 => out.done(()),
            number => {
                let question = self.server.call(move |reply| Question(number, reply));
                out.ask(question, number);
            }
        }
        Ok(())
    }
}
