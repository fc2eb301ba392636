//! Async processes on real timers: the two crates know one another by a command alone.

use ganger::prelude::*;
use std::time::{Duration, Instant};

fn runtime() -> Runtime {
    let runtime = Runtime::builder().build().unwrap();
    runtime.start().unwrap();
    runtime
}

// pins: T1, A3
#[test]
fn a_task_sleeps_and_is_never_woken_early() {
    let runtime = runtime();
    let time = Duration::from_millis(20);
    let sleeper = runtime.spawn_task(async move |cx: Cx| {
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
    let echo = runtime.spawn_task(async move |cx: Cx<u64>| {
        let nothing = cx.timeout(Duration::from_millis(5), cx.recv()).await;
        assert!(nothing.is_err(), "nothing was sent");
        cx.context().register_name("echo")?;
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
