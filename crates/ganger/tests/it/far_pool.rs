//! A pool that takes jobs of another node, by the name of a function.

use ganger::cluster::{Cluster, NodeId, Twin};
use ganger::link::Services;
use ganger::prelude::*;
use ganger::supervise::{Overload, PoolError};
use ganger::{CommandError, ExitCause, NodeName};
use std::thread;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

fn node(twin: &Twin, name: &str) -> (Scheduler, Cluster) {
    let builder = Scheduler::builder().workers(2).node(name).quiet_failures();
    let scheduler = builder.start().unwrap();
    let node = Cluster::builder().cluster("shop").engine(twin.port());
    let node = node.join(&scheduler).unwrap();
    (scheduler, node)
}

fn text(refused: Result<u32, CommandError>) -> String {
    match refused {
        Err(CommandError::Failed(why)) => why.to_string(),
        other => panic!("{other:?}"),
    }
}

// pins: B30
#[test]
fn a_pool_takes_jobs_of_another_node() {
    let twin = Twin::new(1);
    twin.hints(true);
    let _clock = twin.run();
    let (_alpha, at_alpha) = node(&twin, "alpha");
    let (beta, _at_beta) = node(&twin, "beta");
    let pool = Pool::new(1, || |by: u32| Ok(100 / by))
        .queue(1, Overload::RefuseNewest)
        .start(&beta)
        .unwrap();
    let jobs = pool.remote();
    let divide = move |by: u32| jobs.call(by);
    Services::of(&beta).register_call("divide", divide).unwrap();
    let place = NodeName::new("beta").unwrap();
    let call = |by: u32| at_alpha.call_on::<u32, u32>(place, "divide", by);
    let ask = |by: u32| call(by).wait_timeout(PATIENCE);
    assert_eq!(ask(7).unwrap(), 14);
    assert!(text(ask(0)).contains("divide by zero"));
    assert_eq!(ask(50).unwrap(), 2);

    // Too many jobs.
    pool.suspend();
    let first = call(5).begin();
    let refused = text(ask(5));
    assert_eq!(refused, PoolError::Full { queued: 1 }.to_string());
    // The pool does not carry out the job of a caller that leaves.
    drop(first);
    // The word is there before a later call.
    let unknown = at_alpha.call_on::<u32, u32>(place, "nothing", 1);
    assert!(text(unknown.wait_timeout(PATIENCE)).contains("nothing"));
    pool.resume();
    let mut looks = 0;
    while pool.stats().left == 0 {
        looks += 1;
        assert!(looks < 60_000, "{:?}", pool.stats());
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(ask(4).unwrap(), 25);

    // A lost connection.
    pool.suspend();
    let lost = call(5).begin();
    let [a, b] = ["alpha", "beta"].map(|it| NodeId::new(it).unwrap());
    twin.cut(&a, &b);
    twin.cut(&b, &a);
    let lost = lost.wait_timeout(PATIENCE);
    let is_told = matches!(lost, Err(CommandError::Ended(ExitCause::NoConnection)));
    assert!(is_told, "{lost:?}");
}
