//! The working parts of tokio inside of processes.

use crate::support::{ms, ok, result, start};
use ganger_sched::Scheduler;
use ganger_task::Cx;
use ganger_tokio::{RuntimeRefused, Tokio, shutdown_signal};
use std::time::Instant;
use tokio::time::timeout;

// pins: I1
#[test]
fn timers_of_both_kinds_go_off_in_time_order_and_never_early() {
    let (scheduler, _) = start(1);
    let task = scheduler.spawn(async |cx: Cx| {
        let begin = Instant::now();
        tokio::time::sleep(ms(3)).await;
        assert!(begin.elapsed() >= ms(3));
        cx.sleep(ms(3)).await?;
        assert!(begin.elapsed() >= ms(6));
        let late = timeout(ms(1), std::future::pending::<()>()).await;
        let early = timeout(ms(60_000), async { 7_u64 }).await?;
        let mut every = tokio::time::interval(ms(1));
        for _ in 0..3 {
            every.tick().await;
        }
        Ok(early + u64::from(late.is_err()))
    });
    assert_eq!(result(task.unwrap()).as_u64(), Some(8));
}

/// Wakes many sleepers at a time, some of either kind, on workers that sleep and wake.
// pins: I1
#[test]
fn many_sleepers_of_both_kinds_all_wake() {
    let (scheduler, _) = start(2);
    let sleepers = (0..400_u64).map(|number| {
        let sleeper = async move |cx: Cx| {
            for round in 0..5 {
                if (number + round) % 2 == 0 {
                    tokio::time::sleep(ms(number % 7)).await;
                } else {
                    cx.sleep(ms(number % 5)).await?;
                }
            }
            Ok(1_u64)
        };
        scheduler.spawn(sleeper).unwrap()
    });
    let sleepers: Vec<_> = sleepers.collect();
    assert_eq!(crate::support::sum(sleepers), 400);
}

// pins: I1
#[test]
fn files_threads_and_names_of_hosts_work() {
    let (scheduler, _) = start(2);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let task = scheduler.spawn(async move |_: Cx| {
        tokio::fs::write(&path, b"hello").await?;
        let text = tokio::fs::read_to_string(&path).await?;
        let length = tokio::task::spawn_blocking(move || text.len()).await?;
        let hosts = tokio::net::lookup_host("localhost:80").await?.count();
        assert!(hosts > 0);
        Ok(length as u64)
    });
    assert_eq!(result(task.unwrap()).as_u64(), Some(5));
}

// pins: I1
#[cfg(unix)]
#[test]
fn child_processes_of_the_system_end() {
    let (scheduler, _) = start(2);
    let children = (0..5).map(|_| {
        let child = async |_: Cx| {
            let output = tokio::process::Command::new("echo").arg("hi").output();
            ok(output.await?.stdout.len() as u64)
        };
        scheduler.spawn(child).unwrap()
    });
    let children: Vec<_> = children.collect();
    assert_eq!(crate::support::sum(children), 5 * 3);
}

// pins: I1
#[test]
fn udp_and_channels_work() {
    let (scheduler, _) = start(2);
    let task = scheduler.spawn(async |cx: Cx| {
        let (one, two) = (
            tokio::net::UdpSocket::bind("127.0.0.1:0").await?,
            tokio::net::UdpSocket::bind("127.0.0.1:0").await?,
        );
        one.connect(two.local_addr()?).await?;
        let (send, receive) = tokio::sync::oneshot::channel();
        let receiver = async {
            let mut buffer = [0; 16];
            let length = two.recv(&mut buffer).await.unwrap();
            send.send(buffer[..length].to_vec()).unwrap();
        };
        let sender = async { one.send(b"hello").await.unwrap() };
        cx.join((receiver, sender)).await;
        Ok(receive.await?.len() as u64)
    });
    assert_eq!(result(task.unwrap()).as_u64(), Some(5));
}

// pins: I1
#[test]
fn a_runtime_that_others_drive_is_refused() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let tokio = Tokio::with_runtime(runtime.enable_all().build().unwrap()).unwrap();
    let scheduler = Scheduler::builder().driver(tokio).build().unwrap();
    scheduler.start().unwrap();
    let task = scheduler.spawn(async |_: Cx| {
        tokio::time::sleep(ms(1)).await;
        Ok(7_u64)
    });
    assert_eq!(result(task.unwrap()).as_u64(), Some(7));
    let other = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    let refused = Tokio::with_runtime(other).unwrap_err();
    assert_eq!(refused, RuntimeRefused::HasThreads);
}

/// Refuses a runtime without timers, in which no thread can wait for a while: the thread that waits
/// for timers would not rest.
// pins: I3
#[test]
fn a_runtime_without_timers_is_refused() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let refused = Tokio::with_runtime(runtime.enable_io().build().unwrap()).unwrap_err();
    assert_eq!(refused, RuntimeRefused::NoTime);
    assert!(refused.to_string().contains("`enable_time`"));
    let runtime = runtime.enable_time().build().unwrap();
    assert!(Tokio::with_runtime(runtime).is_ok());
}

/// Sends both signals: the second changes nothing, and the program goes on.
// pins: I4
#[cfg(unix)]
#[test]
fn a_program_is_asked_to_end_by_either_signal_and_by_both() {
    use tokio::signal::unix::{SignalKind, signal};
    let kill = |signal: &str| {
        let me = std::process::id().to_string();
        let killed = std::process::Command::new("kill")
            .args([signal, &me])
            .status();
        assert!(killed.unwrap().success());
    };
    let (scheduler, _) = start(2);
    let task = scheduler.spawn(async move |cx: Cx| {
        for (name, kind) in [
            ("-INT", SignalKind::interrupt()),
            ("-TERM", SignalKind::terminate()),
        ] {
            let mut seen = signal(kind)?;
            let asked = shutdown_signal();
            let comes = async {
                kill(name);
                seen.recv().await
            };
            let (asked, seen) = cx.join((asked, comes)).await;
            asked?;
            seen.ok_or("no signal")?;
            kill(name);
        }
        ok(())
    });
    result(task.unwrap());
}
