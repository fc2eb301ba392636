//! The processes of the second program: a boss, which starts receivers and ends them.

use crate::tally::Tally;
use ganger::cluster::Cluster;
use ganger::prelude::*;

/// The boss's name.
pub(crate) const BOSS: &str = "boss";

/// How many PIDs a message has.
pub(crate) const PIDS: u64 = 1_000;

/// The group of the members.
pub(crate) const GROUP: &str = "members";

/// The bit of a number that has the boss start members; the bits below are their count.
pub(crate) const MEMBERS: u64 = 1 << 40;

/// The word of a member to its boss.
const GOT: u64 = u64::MAX;

/// The members of a boss.
struct Members {
    asker: Pid,
    count: u64,
    got: u64,
}

/// Gets numbers, starts as many receivers, and answers with their PIDs. At 0 the boss ends all
/// receivers. At a number with the bit of members it starts members, and tells the asker each time
/// when all have got a message.
pub(crate) fn boss(scheduler: Handle, cluster: Cluster) -> impl Process {
    let mut all = Vec::new();
    let mut members: Option<Members> = None;
    process_fn(move |ctx, events, _| {
        for event in events {
            let Event::Message(message) = event else {
                continue;
            };
            let from = message.source.ok_or("nothing to answer to")?;
            let mut left = message.take::<u64>()?;
            if left == GOT {
                let members = members.as_mut().ok_or("there are no members")?;
                members.got += 1;
                if members.got.is_multiple_of(members.count) {
                    let times = vec![members.got / members.count];
                    ctx.send(members.asker, "got", Payload::any(times))?;
                }
                continue;
            }
            if left & MEMBERS != 0 {
                let (asker, count) = (from, left ^ MEMBERS);
                let group = cluster.groups(GROUP).group(GROUP);
                for _ in 0..count {
                    group.join(&scheduler.spawn(member(ctx.pid()))?)?;
                }
                let got = 0;
                members = Some(Members { asker, count, got });
                continue;
            }
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

/// Gets blocks in their order, and tells the boss.
fn member(boss: Pid) -> impl Actor<Message = Vec<u8>> {
    let mut tally = Tally::default();
    actor_fn(move |ctx, block: Vec<u8>, _| {
        tally.note(&block);
        if !tally.is_right() {
            return Err("another block was due".into());
        }
        Ok(ctx.send(boss, "got", GOT)?)
    })
}

/// Gets blocks, and sends each block with a sender back, but for the last of a series: the answer
/// is the account.
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
