//! The limits, as the documentation says them.

use crate::support::{ms, result, start, until};
use ganger_proc_api::process_fn;
use ganger_task::Cx;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::runtime::Handle;

/// Runs the spawned future on a thread of the scheduler, inside of no process.
// pins: I5
#[test]
fn what_tokio_spawns_is_no_process_and_wakes_the_process_that_waits() {
    let (scheduler, _) = start(2);
    let task = scheduler.spawn(async |_: Cx| {
        let mut sum = 0;
        for number in 0..100_u64 {
            let spawned = tokio::spawn(async move {
                tokio::task::yield_now().await;
                let name = std::thread::current().name().map(str::to_owned);
                assert!(name.unwrap().starts_with("ganger-worker"));
                number
            });
            sum += spawned.await?;
        }
        Ok(sum)
    });
    assert_eq!(result(task.unwrap()).as_u64(), Some(4950));
    assert_eq!(scheduler.stats().total.started, 1);
}

/// Panics in a spawned future: tokio handles the panic.
// pins: I5
#[test]
fn what_tokio_spawns_may_panic() {
    let (scheduler, _) = start(1);
    let task = scheduler.spawn(async |_: Cx| {
        let spawned = tokio::spawn(async { std::panic::resume_unwind(Box::new("on purpose")) });
        let ended: Result<(), _> = spawned.await;
        tokio::time::sleep(ms(1)).await;
        Ok(u64::from(ended.unwrap_err().is_panic()))
    });
    assert_eq!(result(task.unwrap()).as_u64(), Some(1));
    assert_eq!(scheduler.stats().total.panics, 0);
}

/// Blocks for a process in a spawned future, and is refused: the process would begin when the task
/// has come to its end, or waits itself.
// pins: I1, I5
#[test]
fn what_tokio_spawns_does_not_block_for_a_process() {
    let (scheduler, tokio) = start(2);
    let start_one = {
        let handle = scheduler.handle();
        move || handle.spawn(async |_: Cx| Ok(7_u64)).unwrap()
    };
    let blocks = tokio.spawn({
        let start_one = start_one.clone();
        async move { drop(start_one().wait()) }
    });
    let awaits = tokio.spawn(async move { start_one().await.is_done() });
    let message = tokio.block_on(blocks).unwrap_err().into_panic();
    let message = message.downcast_ref::<&str>().copied();
    assert!(message.is_some_and(|it| it.contains("`.await` it")));
    assert!(tokio.block_on(awaits).unwrap());
}

/// Blocks the only worker in its step, while the monitor turns the driver.
// pins: I2
#[test]
fn a_step_that_blocks_on_the_runtime_comes_to_its_end() {
    let (scheduler, _) = start(1);
    let blocks = process_fn(|_, _, out| {
        let sum = Handle::current().block_on(async {
            tokio::time::sleep(ms(2)).await;
            tokio::spawn(async { 7_u64 }).await
        })?;
        out.done(sum);
        Ok(())
    });
    let blocks = scheduler.submit(blocks, "main", ()).unwrap();
    assert_eq!(result(blocks).as_u64(), Some(7));
}

/// Spawns and waits on a thread outside of the scheduler.
// pins: I5
#[test]
fn a_thread_outside_spawns_and_waits() {
    let (scheduler, tokio) = start(2);
    let number = tokio.block_on(async {
        tokio::time::sleep(ms(1)).await;
        tokio::spawn(async { 7_u64 }).await.unwrap()
    });
    assert_eq!((number, scheduler.stats().total.started), (7, 0));
}

struct Drops(Arc<AtomicBool>);

impl Drop for Drops {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

// pins: I4
#[test]
fn a_termination_drops_what_waits_in_tokio() {
    let (scheduler, _) = start(1);
    let is_dropped = Arc::new(AtomicBool::new(false));
    let drops = Drops(Arc::clone(&is_dropped));
    let (inside, is_inside) = std::sync::mpsc::channel();
    let task = scheduler.spawn(async move |_: Cx| {
        let _drops = drops;
        inside.send(())?;
        tokio::time::sleep(ms(3_600_000)).await;
        Ok(())
    });
    let task = task.unwrap();
    is_inside.recv_timeout(crate::support::PATIENCE).unwrap();
    scheduler.terminate(task.pid()).unwrap();
    until("it is dropped", || is_dropped.load(Ordering::SeqCst));
}
