//! The commands of a shard: its process carries them out, or a connection where the keys are free.

use super::clients::{started, until};
use super::example::protocol::Answer;
use super::example::shard::{Batch, Hold, Job, Keys, Shard, Work};
use super::example::store::{self, Operation, whole};
use ganger::Instant;
use ganger::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn jobs(operation: Operation) -> Vec<Job> {
    vec![Job {
        operation,
        args: vec!["key".into()],
        writes: false,
    }]
}

/// Asks the shard's process for its answers, unless the process fails.
async fn asked(cx: &Cx, shard: &Address<Work>, jobs: Vec<Job>) -> Option<Vec<Answer>> {
    let call = shard.call(move |reply| {
        Work::Batch(Batch {
            jobs,
            holder: None,
            reply,
        })
    });
    cx.ask(call).await.ok()
}

#[test]
fn a_connection_carries_out_commands_unless_a_process_holds_the_shard() {
    let scheduler = Scheduler::start_default().unwrap();
    let keys = Keys::new();
    let shard = scheduler.spawn(Shard::new(&keys)).unwrap();
    let shard = shard.address().clone();
    let looks = scheduler.spawn(async move |cx: Cx| {
        let is_free = || {
            let done = keys.try_carry_out(&jobs(whole::dbsize), Instant::from_nanos(0));
            done.is_some()
        };
        let before = is_free();
        let (holder, watched) = (cx.pid(), Vec::new());
        let hold = shard.call(move |reply| {
            Work::Hold(Hold {
                holder,
                watched,
                reply,
            })
        });
        let held = (cx.ask(hold).await?, is_free());
        shard.send(Work::Release(holder))?;
        // Later questions are answered later.
        assert!(asked(&cx, &shard, jobs(whole::dbsize)).await.is_some());
        assert_eq!((before, held, is_free()), (true, (true, false), true));
        Ok(())
    });
    looks.unwrap().wait().into_result().unwrap();
}

/// Fails a command, which may have left the keys in any state: the shard begins anew.
#[test]
fn a_shard_begins_anew_after_a_command_has_panicked_in_a_connection() {
    let scheduler = Scheduler::start_default().unwrap();
    let keys = Keys::new();
    let its = keys.clone();
    let tree = Supervisor::one_for_one()
        .with(ChildSpec::new("shard", move || Shard::new(&its)).in_place())
        .start(&scheduler)
        .unwrap();
    let shard = tree.address::<Work>("shard").unwrap();
    let sets: Operation = |store, args| {
        let set = store::set(store, &[args[0].clone(), "value".into()]);
        assert!(set.is_err(), "a command fails");
        set
    };
    let now = Instant::from_nanos(0);
    let panics = catch_unwind(AssertUnwindSafe(|| keys.try_carry_out(&jobs(sets), now)));
    assert!(panics.is_err() && keys.try_carry_out(&jobs(whole::dbsize), now).is_none());
    let asks = scheduler.spawn(async move |cx: Cx| {
        let fails = asked(&cx, &shard, jobs(whole::dbsize)).await;
        let again = asked(&cx, &shard, jobs(whole::dbsize)).await;
        assert_eq!((fails, again), (None, Some(vec![Answer::Number(0)])));
        Ok(())
    });
    asks.unwrap().wait().into_result().unwrap();
    assert!(keys.try_carry_out(&jobs(whole::dbsize), now).is_some());
}

/// Tells the shard's process once of a burst of ends, so its mailbox has room for questions.
#[test]
fn the_process_of_a_shard_is_told_once_of_a_burst_of_ends() {
    let keys = Keys::new();
    let sets: Operation = |store, args| {
        let args = [args[0].clone(), "9".into(), "value".into()];
        store::setex(store, &args)
    };
    let tells = |_| {
        let done = keys.try_carry_out(&jobs(sets), Instant::from_nanos(0));
        done.is_some_and(|it| it.1)
    };
    assert_eq!([1, 2, 3].map(tells), [true, false, false]);
}

/// Stores keys with ends. The timers belong to the shard's process, whichever process has carried
/// out the command.
#[test]
fn keys_end_that_a_connection_has_stored() {
    let server = started();
    let mut client = server.client();
    let set = (0..20).map(|it| format!("set key{it} value px 20\r\n"));
    client.send(set.collect::<String>().as_bytes());
    (0..20).for_each(|_| assert_eq!(client.answer(), "OK"));
    until("no key is left", || {
        client.ask("info").contains("db0:keys=0,expires=0")
    });
    server.stop();
}
