//! A counter: it takes numbers, and answers their sum. `cargo run -p ganger --example counter`

use ganger::prelude::*;

enum Count {
    Add(u64),
    Get(Reply<u64>),
}

pub(crate) fn main() -> Result<(), BoxError> {
    let scheduler = Scheduler::start_default()?;
    let mut sum = 0;
    let counter = scheduler.spawn(actor_fn(move |_, message, _| {
        match message {
            Count::Add(number) => sum += number,
            Count::Get(reply) => reply.complete(sum),
        }
        Ok(())
    }))?;
    counter.send(Count::Add(40))?;
    counter.send(Count::Add(2))?;
    println!("{}", counter.call(Count::Get).wait()?);
    Ok(())
}
