//! tokio's code in the task of a scheduler without a tokio driver.

use ganger_proc_api::{BoxError, ExitReason};
use ganger_sched::{FailureReport, Scheduler};
use ganger_task::Cx;
use std::sync::mpsc::channel;
use std::time::Duration;

async fn sleeps(_: Cx) -> Result<(), BoxError> {
    tokio::time::sleep(Duration::ZERO).await;
    Ok(())
}

// pins: F3
#[test]
fn the_panic_of_tokio_says_which_driver_is_missing() {
    let (tell, told) = channel();
    let builder = Scheduler::builder().workers(1);
    let noting = move |report: &FailureReport| tell.send(report.to_string()).unwrap();
    let scheduler = builder.on_failure(noting).start().unwrap();
    let needs = [
        scheduler.spawn(sleeps),
        scheduler.spawn(async |_: Cx| {
            drop(tokio::net::TcpListener::bind("127.0.0.1:0").await?);
            Ok(())
        }),
        scheduler.spawn(async |_: Cx| {
            drop(tokio::spawn(async {}));
            Ok(())
        }),
    ];
    for task in needs {
        let task = task.unwrap();
        let ExitReason::Panicked(message) = task.wait() else {
            panic!("there is no runtime");
        };
        assert!(message.contains("no reactor running"), "{message}");
        assert!(message.contains("`.driver(Tokio::new()?)`"), "{message}");
    }
    drop(scheduler.spawn(sleeps));
    let report = told.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(report.contains("`.driver(Tokio::new()?)`"), "{report}");
}
