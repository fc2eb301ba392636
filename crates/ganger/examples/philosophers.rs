//! Philosophers that share forks at a round table. Each eats three times.
//! `cargo run -p ganger --example philosophers`

use ganger::prelude::*;
use std::collections::VecDeque;

const SEATS: usize = 5;
const MEALS: u32 = 3;

enum ForkMessage {
    Take(Reply<()>),
    PutBack,
}

/// Is given to one philosopher at a time; the others wait for its answer.
#[derive(Default)]
struct Fork {
    is_taken: bool,
    waiting: VecDeque<Reply<()>>,
}

impl Actor for Fork {
    type Message = ForkMessage;

    fn receive(&mut self, _: &Context, message: ForkMessage, _: &mut StepOutput) -> StepResult {
        match message {
            ForkMessage::Take(reply) => self.waiting.push_back(reply),
            ForkMessage::PutBack => self.is_taken = false,
        }
        if !self.is_taken
            && let Some(next) = self.waiting.pop_front()
        {
            self.is_taken = true;
            next.complete(());
        }
        Ok(())
    }
}

/// Takes one fork after the other, eats, and puts them back.
struct Philosopher {
    forks: [Address<ForkMessage>; 2],
    meals: u32,
}

impl Actor for Philosopher {
    type Message = ();

    fn receive(&mut self, _: &Context, (): (), out: &mut StepOutput) -> StepResult {
        out.ask(self.forks[0].call(ForkMessage::Take), 0);
        Ok(())
    }

    fn completed(&mut self, ctx: &Context, taken: Completion, out: &mut StepOutput) -> StepResult {
        taken.result?;
        if taken.tag == 0 {
            out.ask(self.forks[1].call(ForkMessage::Take), 1);
            return Ok(());
        }
        self.meals += 1;
        self.forks
            .iter()
            .try_for_each(|it| it.send(ForkMessage::PutBack))?;
        if self.meals < MEALS {
            return self.receive(ctx, (), out);
        }
        out.done(self.meals);
        Ok(())
    }
}

pub(crate) fn main() -> Result<(), BoxError> {
    let scheduler = Scheduler::start_default()?;
    let forks = (0..SEATS).map(|_| scheduler.spawn_actor(Fork::default()));
    let forks = forks.collect::<Result<Vec<_>, _>>()?;
    let mut philosophers = Vec::new();
    for seat in 0..SEATS {
        // All take the fork with the lower number first, so none waits in a circle.
        let (left, right) = (seat, (seat + 1) % SEATS);
        let forks = [left.min(right), left.max(right)].map(|it| forks[it].address().clone());
        let philosopher = scheduler.spawn_actor(Philosopher { forks, meals: 0 })?;
        philosopher.send(())?;
        philosophers.push(philosopher);
    }
    for (seat, philosopher) in philosophers.into_iter().enumerate() {
        let meals: u32 = philosopher.wait().take()?;
        println!("philosopher {seat} has eaten {meals} times");
    }
    Ok(())
}
