//! Child processes: their pipes, their ends, and no zombies.

use crate::support::{PATIENCE, ms, ok, result, start, until};
use ganger_net::{Child, SignalKind, commands};
use ganger_proc_api::{BoxError, Event, process_fn};
use ganger_task::Cx;
use rustix::process::{Pid, test_kill_process};
use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

type Spawn = fn(&mut Command) -> io::Result<Child>;

/// With a descriptor for each child, if the system has them, and by SIGCHLD.
const SPAWNS: &[Spawn] = &[
    Child::spawn,
    #[cfg(feature = "portable")]
    Child::spawn_portable,
];

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

/// Returns whether the child runs, or is a zombie.
fn exists(id: u32) -> bool {
    let pid = Pid::from_raw(i32::try_from(id).unwrap()).unwrap();
    test_kill_process(pid).is_ok()
}

fn is_gone(id: u32) {
    until("the child is gone", || !exists(id));
}

// pins: I9
#[test]
fn what_is_written_to_a_child_comes_back() {
    let (scheduler, net) = start(2);
    for &spawn in SPAWNS {
        let task = scheduler.spawn(async move |cx: Cx| {
            let mut cat = Command::new("cat");
            let mut child = spawn(cat.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
            let lines = child.stdin.take().ok_or("no pipe")?;
            let text: Vec<u8> = (0..=250).cycle().take(300_000).collect();
            let writes = async {
                lines.write_all(&text).await?;
                // Only the drop ends the writes to a pipe.
                let error = lines.shutdown(std::net::Shutdown::Write).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Unsupported);
                lines.close();
                Ok::<_, io::Error>(())
            };
            let (written, output) = cx.join((writes, child.output())).await;
            written?;
            let output = output?;
            assert!(output.status.success() && output.stdout == text);
            ok(())
        });
        result(task.unwrap());
    }
    until("no socket is left", || net.sockets() == 0);
}

/// Reads all output, even if each of its pipes is full at some time.
// pins: I9
#[test]
fn the_output_is_all_of_both_pipes() {
    let (scheduler, _) = start(1);
    let task = scheduler.spawn(async |_: Cx| {
        let script = "head -c 200000 /dev/zero >&2; head -c 200000 /dev/zero; exit 7";
        let mut command = shell(script);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = Child::spawn(command)?.output().await?;
        assert_eq!(output.status.code(), Some(7));
        assert_eq!(
            (output.stdout.len(), output.stderr.len()),
            (200_000, 200_000)
        );
        ok(())
    });
    result(task.unwrap());
}

// pins: I9
#[test]
fn the_end_of_a_child_is_told_to_all_that_wait_and_later_ones() {
    let (scheduler, net) = start(2);
    for &spawn in SPAWNS {
        let task = scheduler.spawn(async move |cx: Cx| {
            let mut command = shell("read line; exit 3");
            let mut child = spawn(command.stdin(Stdio::piped()))?;
            assert_eq!(child.try_wait()?, None);
            let early = cx.timeout(ms(1), child.wait()).await;
            assert!(early.is_err());
            let stdin = child.stdin.take();
            let (one, other, ()) = cx
                .join((child.wait(), child.wait(), async { drop(stdin) }))
                .await;
            assert_eq!((one?.code(), other?.code()), (Some(3), Some(3)));
            assert_eq!(child.wait().await?.code(), Some(3));
            assert_eq!(child.try_wait()?.and_then(|it| it.code()), Some(3));
            // A later child with the same number is not touched.
            child.signal(SignalKind::TERMINATE)?;
            ok(())
        });
        result(task.unwrap());
    }
    until("no socket is left", || net.sockets() == 0);
}

// pins: I9
#[test]
fn many_children_end_at_a_time() {
    let (scheduler, net) = start(2);
    for &spawn in SPAWNS {
        let tasks: Vec<_> = (0..40)
            .map(|code| {
                let task = scheduler.spawn(async move |_: Cx| {
                    let child = spawn(&mut shell(&format!("exit {code}")))?;
                    assert_eq!(child.wait().await?.code(), Some(code));
                    ok(child.id())
                });
                task.unwrap()
            })
            .collect();
        for task in tasks {
            let id = result(task).as_u64().unwrap();
            assert!(!exists(u32::try_from(id).unwrap()), "it is a zombie");
        }
    }
    until("no socket is left", || net.sockets() == 0);
}

// pins: I9
#[test]
fn a_child_is_sent_signals() {
    let (scheduler, _) = start(1);
    let task = scheduler.spawn(async |_: Cx| {
        let mut sleep = Command::new("sleep");
        let child = Child::spawn(sleep.arg("1000"))?;
        child.signal(SignalKind::TERMINATE)?;
        assert_eq!(child.wait().await?.signal(), Some(15));
        let child = Child::spawn(&mut sleep)?;
        child.kill()?;
        assert_eq!(child.wait().await?.signal(), Some(9));
        child.kill()?;
        let none = child.signal(SignalKind::from_raw(-1)).unwrap_err();
        assert_eq!(none.kind(), ErrorKind::InvalidInput);
        ok(())
    });
    result(task.unwrap());
}

/// Drops children: without `kill_on_drop` a child goes on, and leaves no zombie.
// pins: I9
#[test]
fn a_child_ends_with_its_owner_when_it_is_to() {
    let (scheduler, net) = start(2);
    for &spawn in SPAWNS {
        let (send, children) = std::sync::mpsc::channel();
        let task = scheduler.spawn(async move |cx: Cx| {
            let killed = spawn(Command::new("sleep").arg("1000"))?.kill_on_drop(true);
            let mut left = spawn(shell("read line").stdin(Stdio::piped()))?;
            send.send((killed.id(), left.id(), left.stdin.take()))?;
            cx.sleep(Duration::MAX).await?;
            drop((killed, left));
            ok(())
        });
        let task = task.unwrap();
        let (killed, left, stdin) = children.recv_timeout(PATIENCE).unwrap();
        assert!(exists(killed) && exists(left));
        scheduler.terminate(task.pid()).unwrap();
        is_gone(killed);
        assert!(exists(left));
        drop(stdin);
        is_gone(left);
        until("no socket is left", || net.sockets() == 0);
    }
}

// pins: I9
#[test]
fn a_child_that_outlives_the_scheduler_is_no_zombie() {
    let (scheduler, net) = start(1);
    let children = SPAWNS.iter().map(|spawn| {
        net.enter(|| spawn(shell("read line").stdin(Stdio::piped())))
            .unwrap()
    });
    let mut children: Vec<_> = children.collect();
    drop(scheduler);
    let ids: Vec<_> = children.iter().map(Child::id).collect();
    let pipes: Vec<_> = children.iter_mut().map(|it| it.stdin.take()).collect();
    drop(children);
    assert!(ids.iter().all(|&id| exists(id)));
    drop(pipes);
    ids.into_iter().for_each(is_gone);
}

// pins: I9
#[test]
fn a_child_that_does_not_start_is_an_error() {
    let none = Child::spawn(&mut Command::new("true")).unwrap_err();
    assert_eq!(none.kind(), ErrorKind::Other);
    let (_scheduler, net) = start(1);
    let missing = net.enter(|| Child::spawn(&mut Command::new("/no/such/program")));
    assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(net.sockets(), 0);
}

// pins: I9
#[test]
fn a_state_machine_waits_for_a_child() -> Result<(), BoxError> {
    let (scheduler, net) = start(1);
    let child = net.enter(|| Child::spawn(&mut shell("exit 5")))?;
    let child = Arc::new(child);
    let waits = process_fn(move |_, events, out| {
        match events.next() {
            Some(Event::Completion(answer)) => {
                let status: io::Result<ExitStatus> = answer.take()?;
                out.done(i64::from(status?.code().ok_or("a signal")?));
            }
            _ => {
                let _asked = out.ask(commands::wait(&child), 1);
            }
        }
        Ok(())
    });
    assert_eq!(result(scheduler.spawn(waits)?).as_i64(), Some(5));
    Ok(())
}
