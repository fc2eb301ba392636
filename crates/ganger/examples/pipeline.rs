//! A pipeline of stages with bounded channels between them: a slow stage holds the fast stages up,
//! and a shutdown stops the source and lets the rest drain.
//!
//! `cargo run -p ganger --example pipeline`

use ganger::SubmitError;
use ganger::channel::{Receiver, Sender, channel, select};
use ganger::prelude::*;
use std::time::Duration;

/// The most values between two stages.
pub(crate) const ROOM: usize = 4;
const SQUARERS: usize = 3;

/// Makes numbers until it is told to stop, or nothing takes them any longer.
pub(crate) async fn source(
    cx: Cx,
    numbers: Sender<u64>,
    stop: Receiver<()>,
) -> Result<u64, BoxError> {
    let mut made = 0;
    loop {
        let is_sent = select()
            .send(&numbers, made, |sent| sent.is_ok())
            .recv(&stop, |_closed| false);
        if !cx.until_cancelled(is_sent).await? {
            return Ok(made);
        }
        made += 1;
    }
}

/// Squares numbers until none is left.
pub(crate) async fn square(
    cx: Cx,
    numbers: Receiver<u64>,
    squares: Sender<(u64, u64)>,
) -> Result<(), BoxError> {
    while let Ok(number) = cx.until_cancelled(numbers.recv()).await? {
        cx.until_cancelled(squares.send((number, number * number)))
            .await??;
    }
    Ok(())
}

/// Checks the squares, as the slowest stage. A stuck stage before it is an error.
pub(crate) async fn sink(cx: Cx, squares: Receiver<(u64, u64)>) -> Result<u64, BoxError> {
    let mut seen = 0;
    loop {
        let next = select()
            .recv(&squares, |it| Ok(it.ok()))
            .future(cx.sleep(Duration::from_secs(60)), |slept| {
                slept.and(Err(WaitError::TimedOut))
            });
        let Some((number, square)) = cx.until_cancelled(next).await?? else {
            return Ok(seen);
        };
        assert_eq!(square, number * number);
        seen += 1;
        if seen % 16 == 0 {
            cx.sleep(Duration::from_micros(50)).await?;
        }
    }
}

/// Starts all stages. The source and the sink tell how many numbers they have seen.
pub(crate) fn start(
    scheduler: &Handle,
    stop: Receiver<()>,
) -> Result<[ProcessHandle; 2], SubmitError> {
    let (numbers, from_source) = channel(ROOM);
    let (squares, to_sink) = channel(ROOM);
    let source = scheduler.spawn(async move |cx: Cx| source(cx, numbers, stop).await)?;
    for _ in 0..SQUARERS {
        let (numbers, squares) = (from_source.clone(), squares.clone());
        drop(scheduler.spawn(async move |cx: Cx| square(cx, numbers, squares).await)?);
    }
    // The channel is closed when the last of them has ended.
    drop(squares);
    let sink = scheduler.spawn(async move |cx: Cx| sink(cx, to_sink).await)?;
    Ok([source, sink])
}

pub(crate) fn main() -> Result<(), BoxError> {
    let scheduler = Scheduler::start_default()?;
    let (running, stop) = channel(0);
    let stages = start(&scheduler, stop)?;
    std::thread::sleep(Duration::from_millis(20));
    drop(running); // The source sees that its channel is closed.
    let [made, seen] = stages.map(|stage| stage.wait().take::<u64>());
    let (made, seen) = (made?, seen?);
    println!("{made} numbers made, {seen} squares seen");
    assert_eq!(made, seen);
    Ok(())
}
