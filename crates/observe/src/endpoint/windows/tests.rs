//! Windows in the simulation, where they pass in virtual time.

use super::*;
use crate::api::{self, Processes};
use ganger_proc_api::Message;
use ganger_sched::{Address, ProcessHandle, Scheduler};
use ganger_sim::{Rt, Sim};

const LONG: Duration = Duration::from_secs(60);

/// Enough for a short window and the rests of those before it.
const SOON: Duration = Duration::from_secs(10);

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Creates a counting scheduler outside of the simulation.
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

/// Starts a client that asks, and goes without an answer when its patience ends.
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

/// Starts a client of a window by the growth of mailboxes, whose result is the first value of the
/// list.
fn growth(rt: &Rt<'_>, windows: &Address<Ask>, window: Duration) -> ProcessHandle {
    let windows = windows.clone();
    let client = rt.spawn(async move |cx: Cx| {
        let query = ProcessesQuery {
            by: By::Growth,
            window: Some(window),
            ..ProcessesQuery::default()
        };
        let question = windows.call(move |reply| Ask {
            query,
            window,
            reply,
        });
        let answer = cx.ask(question).await?.map_err(|_| "it is refused")?;
        let list: Processes = api::from_json(&answer)?;
        Ok(list.processes[0].value)
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
        // A client of two stays, and its window lasts.
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
        // The first are in their windows, and the others wait.
        let begin = |it| client(rt, &windows, LONG - ms(100 + it), SOON);
        let first: Vec<_> = (0..=TABLES as u64).map(begin).collect();
        rt.run_for(ms(500));
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
        for gone in all.into_iter().chain(first) {
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
            let both = [&one, &other].map(|it| client(rt, it, ms(1), SOON));
            for client in both {
                assert_eq!(status(rt, client), Some(200));
            }
            for scheduler in [&first, &second] {
                let is_held = scheduler.number() == last.number();
                assert_eq!(scheduler.try_marks().is_none(), is_held);
            }
            drop(held);
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

// pins: V11
#[test]
fn windows_overlap_and_each_counts_from_its_own_begin() {
    let scheduler = counted();
    let idle = || ganger_proc_api::process_fn(|_, _, _| Ok(()));
    let process = scheduler.submit(idle(), "idle", ()).unwrap();
    let send = |n: u64| (0..n).for_each(|_| process.send(Message::new("n", ())).unwrap());
    Sim::new(0).check_seeds(10, |rt| {
        // The first window has the marks, and the later windows have tables.
        let windows = begin(rt, &[&scheduler]);
        let whole = growth(rt, &windows, LONG);
        rt.run_for(ms(500));
        send(3);
        let [short, long] = [ms(700), ms(800)].map(|it| growth(rt, &windows, it));
        rt.run_for(ms(500));
        send(2);
        let value = |client| rt.wait(client).take::<Option<u64>>().unwrap();
        assert_eq!((value(short), value(long)), (Some(2), Some(2)));
        assert!(rt.now() < SOON);
        // A process that has begun meanwhile counts from zero.
        let later = scheduler.submit(idle(), "idle", ()).unwrap();
        (0..4).for_each(|_| later.send(Message::new("n", ())).unwrap());
        let next = growth(rt, &windows, ms(100));
        assert_eq!(value(next), Some(0));
        assert_eq!(value(whole), Some(5));
        drop(later);
        rt.run_for(SOON);
    });
}
