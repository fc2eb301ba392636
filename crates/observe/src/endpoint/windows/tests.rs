//! Windows in the simulation, where they pass in virtual time.

use super::*;
use ganger_sched::{Address, ProcessHandle, Scheduler};
use ganger_sim::{Rt, Sim};

const LONG: Duration = Duration::from_secs(60);

/// Enough for a short window and the rests of those before it.
const SOON: Duration = Duration::from_secs(10);

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// It is outside of the simulation.
fn counted() -> Scheduler {
    let builder = Scheduler::builder().observe(Observe::Counts);
    builder.build().unwrap()
}

/// Begins the process of an endpoint.
fn begin(rt: &Rt<'_>, schedulers: &[&Scheduler]) -> Address<Ask> {
    let observed = Arc::new(Observed::default());
    for scheduler in schedulers {
        observed.add(scheduler);
    }
    let windows = rt.spawn(move |cx: Cx<Ask>| run(cx, observed));
    windows.unwrap().address().clone()
}

/// A client that asks, and goes without an answer when its patience ends.
fn client(
    rt: &Rt<'_>,
    windows: &Address<Ask>,
    window: Duration,
    patience: Duration,
) -> ProcessHandle {
    let windows = windows.clone();
    let client = rt.spawn(async move |cx: Cx| {
        let query = ProcessesQuery {
            by: By::Steps,
            window: Some(window),
            ..ProcessesQuery::default()
        };
        let question = windows.call(move |reply| Ask {
            query,
            window,
            reply,
        });
        let Ok(answer) = cx.timeout(patience, cx.ask(question)).await else {
            return Ok(None);
        };
        let status = answer?.map_or_else(|refused| refused.status(), |_| StatusCode::OK);
        Ok(Some(status.as_u16()))
    });
    client.unwrap()
}

fn status(rt: &Rt<'_>, client: ProcessHandle) -> Option<u16> {
    rt.wait(client).take::<Option<u16>>().unwrap()
}

// pins: V3
#[test]
fn windows_without_clients_keep_no_client_waiting() {
    let scheduler = counted();
    Sim::new(0).check_seeds(10, |rt| {
        let windows = begin(rt, &[&scheduler]);
        let gone: Vec<_> = (0..5)
            .map(|it| client(rt, &windows, LONG - ms(it), ms(50)))
            .collect();
        for gone in gone {
            assert_eq!(status(rt, gone), None);
        }
        let next = client(rt, &windows, ms(10), SOON);
        assert_eq!(status(rt, next), Some(200));
        // One client is left of two, and its window lasts.
        let (begun, gone) = (rt.now(), client(rt, &windows, LONG, ms(50)));
        let stays = client(rt, &windows, LONG, LONG + SOON);
        assert_eq!(status(rt, gone), None);
        assert_eq!(status(rt, stays), Some(200));
        assert!(rt.now() - begun >= LONG);
    });
}

// pins: V3
#[test]
fn a_window_over_the_limit_is_refused_until_clients_go() {
    let scheduler = counted();
    Sim::new(0).check_seeds(10, |rt| {
        let windows = begin(rt, &[&scheduler]);
        // One is in its window, and the others wait.
        let first = client(rt, &windows, LONG, SOON);
        rt.run_for(ms(1));
        let wait = |it| client(rt, &windows, LONG - ms(1 + it), SOON);
        let all: Vec<_> = (0..WINDOWS as u64).map(wait).collect();
        rt.run_for(ms(500));
        let begun = rt.now();
        let refused = client(rt, &windows, ms(10), SOON);
        assert_eq!(status(rt, refused), Some(503));
        assert!(rt.now() - begun < ms(500));
        // The window of another client is no more of them.
        let same = client(rt, &windows, LONG - ms(1), ms(500));
        assert_eq!(status(rt, same), None);
        for gone in all.into_iter().chain([first]) {
            assert_eq!(status(rt, gone), None);
        }
        let next = client(rt, &windows, ms(10), SOON);
        assert_eq!(status(rt, next), Some(200));
    });
}

// pins: V11
#[test]
fn endpoints_with_the_same_schedulers_do_not_block_each_other() {
    let (first, second) = (counted(), counted());
    Sim::new(0).check_seeds(20, |rt| {
        let one = begin(rt, &[&first, &second]);
        let other = begin(rt, &[&second, &first]);
        for last in [&first, &second] {
            let held = last.try_marks().unwrap();
            // A client that goes takes its window with it.
            let gone = client(rt, &one, ms(2), ms(50));
            let both = [&one, &other].map(|it| client(rt, it, ms(1), SOON));
            assert_eq!(status(rt, gone), None);
            rt.run_for(ms(100));
            for scheduler in [&first, &second] {
                let is_held = scheduler.number() == last.number();
                assert_eq!(scheduler.try_marks().is_none(), is_held);
            }
            drop(held);
            for client in both {
                assert_eq!(status(rt, client), Some(200));
            }
            // Behind their rests.
            rt.run_for(SOON);
        }
    });
}

// pins: V11
#[test]
fn a_window_keeps_no_memory_of_a_dropped_scheduler() {
    let stays = counted();
    Sim::new(0).check_seeds(5, |rt| {
        let goes = counted();
        let windows = begin(rt, &[&goes, &stays]);
        let client = client(rt, &windows, LONG, LONG + SOON);
        rt.run_for(ms(500));
        assert!(goes.try_marks().is_none() && stays.try_marks().is_none());
        let weak = goes.handle().downgrade();
        // Its stop waits, outside of the simulation.
        let stops = std::thread::spawn(move || drop(goes));
        stops.join().unwrap();
        assert!(weak.upgrade().is_none());
        assert_eq!(status(rt, client), Some(200));
        rt.run_for(SOON);
        assert!(stays.try_marks().is_some());
    });
}
