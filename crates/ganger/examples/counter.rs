//! A counter that is told numbers and asked for their sum. `cargo run -p ganger --example counter`

use ganger::prelude::*;

enum Count {
    Add(u64),
    Get(Reply<u64>),
}

struct Counter(u64);

impl Actor for Counter {
    type Message = Count;

    fn receive(&mut self, _: &Context, message: Count, _: &mut StepOutput) -> StepResult {
        match message {
            Count::Add(number) => self.0 += number,
            Count::Get(reply) => reply.complete(self.0),
        }
        Ok(())
    }
}

pub(crate) fn main() -> Result<(), BoxError> {
    let scheduler = Scheduler::start_default()?;
    let counter = scheduler.spawn_actor(Counter(0))?;
    counter.send(Count::Add(40))?;
    counter.send(Count::Add(2))?;
    println!("{}", counter.call(Count::Get).wait()?);
    Ok(())
}
