//! A program whose workers are all stuck.

use super::support::{get, until};
use ganger_observe::api::{Processes, Snapshot, State};
use ganger_observe::serve;
use ganger_proc_api::process_fn;
use ganger_sched::{Handle, Scheduler};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// Says when a stuck step ends.
type Release = Arc<Mutex<Receiver<()>>>;

/// Blocks a worker until the sender is dropped.
fn block(scheduler: &Handle, release: Release) {
    let blocks = process_fn(move |_, _, out| {
        let _ = release.lock().unwrap().recv();
        out.done(());
        Ok(())
    });
    scheduler.spawn(blocks).unwrap();
}

/// Computes on a worker until the sender is dropped.
fn compute(scheduler: &Handle, release: Release) {
    let spins = process_fn(move |_, _, out| {
        use std::sync::mpsc::TryRecvError;
        while release.lock().unwrap().try_recv() == Err(TryRecvError::Empty) {
            std::thread::yield_now();
        }
        out.done(());
        Ok(())
    });
    scheduler.spawn(spins).unwrap();
}

// pins: V1
#[test]
fn the_endpoint_answers_while_all_workers_of_all_schedulers_are_stuck() {
    let starts: [fn(&Handle, Release); 2] = [block, compute];
    let (releases, schedulers): (Vec<Sender<()>>, Vec<_>) = starts
        .into_iter()
        .map(|start| {
            let builder = Scheduler::builder().workers(2).max_spares(0);
            let scheduler = builder.start().unwrap();
            let (send, receive) = channel();
            let receive = Arc::new(Mutex::new(receive));
            for _ in 0..6 {
                start(&scheduler, Arc::clone(&receive));
            }
            (send, scheduler)
        })
        .unzip();
    let endpoint = serve("127.0.0.1:0");
    let endpoint = schedulers
        .iter()
        .fold(endpoint, |it, one| it.scheduler(one));
    let endpoint = endpoint.start().unwrap();
    until("all workers are stuck", || {
        let path = "/api/v1/processes?filter=state:running";
        get(&endpoint, path).json::<Processes>().matched == 4
    });
    for path in ["/", "/healthz", "/readyz", "/api/v1/letters"] {
        assert_eq!(get(&endpoint, path).status, 200, "{path}");
    }
    let all: Processes = get(&endpoint, "/api/v1/processes").json();
    assert_eq!(all.live, 12);
    let ready = all.processes.iter().filter(|it| it.state == State::Ready);
    assert_eq!(ready.count(), 8);
    let pid = all.processes[0].pid.trim_matches(['{', '}']);
    let path = format!(
        "/api/v1/process/{pid}?scheduler={}",
        all.processes[0].scheduler
    );
    assert_eq!(get(&endpoint, &path).json::<Processes>().matched, 1);
    let snapshot: Snapshot = get(&endpoint, "/api/v1/snapshot").json();
    for scheduler in &snapshot.schedulers {
        assert_eq!((scheduler.live, scheduler.threads.sleeping), (6, 0));
    }
    drop(releases);
    until("all end", || {
        schedulers.iter().all(|it| it.stats().live == 0)
    });
    let snapshot: Snapshot = get(&endpoint, "/api/v1/snapshot").json();
    assert!(snapshot.schedulers.iter().all(|it| it.total.done == 6));
}
