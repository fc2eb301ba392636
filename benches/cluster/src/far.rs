//! The processes of the second program: a boss, which starts receivers and ends them.

use crate::tally::Tally;
use ganger::prelude::*;

/// The boss's name.
pub(crate) const BOSS: &str = "boss";

/// How many PIDs a message has.
pub(crate) const PIDS: u64 = 1_000;

/// Gets numbers, starts as many receivers, and answers with their PIDs. At 0 ends all.
pub(crate) fn boss(scheduler: Handle) -> impl Process {
    let mut all = Vec::new();
    process_fn(move |ctx, events, _| {
        for event in events {
            let Event::Message(message) = event else {
                continue;
            };
            let from = message.source.ok_or("nothing to answer to")?;
            let mut left = message.take::<u64>()?;
            if left == 0 {
                for pid in all.drain(..) {
                    scheduler.terminate(pid)?;
                }
            }
            while left > 0 {
                let pids = (0..left.min(PIDS)).map(|_| Ok(scheduler.spawn(receiver())?.pid()));
                let pids = pids.collect::<Result<Vec<_>, BoxError>>()?;
                left -= pids.len() as u64;
                all.extend_from_slice(&pids);
                let pids: Vec<_> = pids.into_iter().map(|it| scheduler.absolute(it)).collect();
                ctx.send(from, "pids", Payload::any(pids))?;
            }
        }
        Ok(())
    })
}

/// Gets blocks. Sends those back that have a sender, and are not the last of a series, after which
/// the sender gets the account.
fn receiver() -> impl Process {
    let mut tally = Tally::default();
    process_fn(move |ctx, events, _| {
        for event in events {
            let Event::Message(message) = event else {
                continue;
            };
            let source = message.source;
            let block = message.take::<Vec<u8>>()?;
            let account = tally.note(&block);
            match (source, account) {
                (Some(source), Some(account)) => {
                    ctx.send(source, "account", Payload::any(account.to_vec()))?;
                }
                (Some(source), None) => ctx.send(source, "block", block)?,
                (None, _) => {}
            }
        }
        Ok(())
    })
}
