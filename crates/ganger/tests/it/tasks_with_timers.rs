//! Async processes on real timers: the two crates share only a command.

use ganger::Envelope;
use ganger::prelude::*;
use std::time::{Duration, Instant};

fn runtime() -> Scheduler {
    Scheduler::start_default().unwrap()
}

// pins: T1
#[test]
fn each_way_to_a_scheduler_gives_timers() {
    let built = Scheduler::builder().workers(1).build().unwrap();
    assert_has_timers(&built);
}

// pins: T1
#[cfg(feature = "relay")]
#[test]
fn a_runtime_has_timers() {
    assert_has_timers(&ganger::Runtime::builder().build().unwrap());
}

fn assert_has_timers(handle: &Handle) {
    let process = handle.spawn(process_fn(|_, _, _| Ok(()))).unwrap();
    let envelope = Envelope::new(None, process.pid(), "later", ());
    let timer = handle.send_after(Duration::from_secs(3_600), envelope);
    assert_eq!(handle.timers().stats().pending, 1);
    assert!(timer.cancel().is_some());
    handle.terminate(process.pid()).unwrap();
}

// pins: T1, A3
#[test]
fn a_task_sleeps_and_is_never_woken_early() {
    let runtime = runtime();
    let time = Duration::from_millis(20);
    let sleeper = runtime.spawn(async move |cx: Cx| {
        let begun = Instant::now();
        for _ in 0..3 {
            cx.sleep(time).await?;
        }
        Ok::<_, BoxError>(begun.elapsed() >= 3 * time)
    });
    assert!(sleeper.unwrap().wait().take::<bool>().unwrap());
}

// pins: T2, A3
#[test]
fn a_timeout_ends_a_wait_and_a_message_ends_the_timeout() {
    const LONG: Duration = Duration::from_secs(3_600);
    let runtime = runtime();
    let echo = runtime.spawn(async move |cx: Cx<u64>| {
        let nothing = cx.timeout(Duration::from_millis(5), cx.recv()).await;
        assert!(nothing.is_err(), "nothing was sent");
        cx.register_name("echo")?;
        let number = cx.timeout(LONG, cx.recv()).await?;
        Ok::<_, BoxError>(number.unwrap_or_default())
    });
    let echo = echo.unwrap();
    while runtime.whereis("echo").is_none() {
        std::thread::yield_now();
    }
    echo.send(7).unwrap();
    assert_eq!(echo.wait().take::<u64>().unwrap(), 7);
    let report = runtime.stop(Duration::ZERO).unwrap();
    assert_eq!(report.forced, 0);
}

// pins: T3, A3
#[test]
fn a_task_ticks_without_drift_and_a_dropped_wait_loses_no_tick() {
    let runtime = runtime();
    let ticks = runtime.spawn(async |cx: Cx| {
        let period = Duration::from_millis(4);
        let begun = Instant::now();
        let (mut ticks, mut count) = (cx.every(period), 0);
        while count < 5 {
            // The wait is dropped again and again.
            if let Ok(more) = cx.timeout(period / 3, ticks.next()).await {
                count += more?;
                assert!(begun.elapsed() >= period * u32::try_from(count)?);
            }
        }
        let zero = cx.every(Duration::ZERO).next().await;
        assert!(zero.is_err(), "a period of zero");
        Ok(count)
    });
    assert!(ticks.unwrap().wait().take::<u64>().unwrap() >= 5);
}

// pins: A3
#[test]
fn a_task_asks_and_waits_no_longer_than_it_says() {
    let runtime = runtime();
    let (kept, given) = std::sync::mpsc::channel();
    let keeps = actor_fn(move |_, reply: Reply<u64>, _: &mut StepOutput| Ok(kept.send(reply)?));
    let keeps = runtime.spawn(keeps).unwrap();
    let silent = keeps.address().clone();
    let asks = runtime.spawn(async move |cx: Cx| {
        let late = cx
            .ask_within(silent.call(|reply| reply), Duration::from_millis(5))
            .await;
        assert!(matches!(late, Err(WaitError::TimedOut)), "{late:?}");
        Ok(cx.ask(silent.call(|reply| reply)).await?)
    });
    let first = given.recv().unwrap();
    let second = given.recv().unwrap();
    assert!(first.is_cancelled());
    first.complete(1);
    second.complete(2);
    assert_eq!(asks.unwrap().wait().take::<u64>().unwrap(), 2);
}

// pins: A3
#[test]
fn a_blocking_call_is_made_beside_the_task_and_its_panic_is_an_error() {
    let settings = Scheduler::builder().workers(1);
    let runtime = settings.build().unwrap();
    runtime.start().unwrap();
    let (go, gone) = std::sync::mpsc::channel();
    let task = runtime.spawn(async move |cx: Cx| {
        // The call blocks the only worker until the task's other branch has run, on a spare thread.
        let call = cx.blocking(move || gone.recv());
        let (got, ()) = cx.join((call, async move { go.send(41).unwrap() })).await;
        let panicked = cx.blocking(|| panic!("on purpose")).await;
        let text = panicked
            .map(|()| String::new())
            .unwrap_or_else(|it| it.to_string());
        assert!(text.contains("on purpose"), "{text}");
        Ok(got?? + 1)
    });
    assert_eq!(task.unwrap().wait().take::<u64>().unwrap(), 42);
}
