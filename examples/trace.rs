//! Ganger's log, and the program's own, by `tracing-subscriber`. `cargo run -p ganger-examples
//! --features trace --bin trace` writes it to stderr. A filter may follow: `-- warn`, or `--
//! info,ganger::sched=debug`.

use ganger::prelude::*;
use std::io::stderr;
use std::time::Duration;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;

fn main() -> Result<(), BoxError> {
    let wanted = std::env::args().nth(1);
    let wanted: Targets = wanted.as_deref().unwrap_or("info,ganger=debug").parse()?;
    let lines = tracing_subscriber::fmt::layer().with_writer(stderr);
    // Before the scheduler starts, so that no line is missed.
    tracing_subscriber::registry()
        .with(lines)
        .with(wanted)
        .init();

    let scheduler = Scheduler::builder().start()?;
    let fine = scheduler.spawn(async |cx: Cx| {
        tracing::info!(pid = %cx.pid(), "of the program's own");
        Ok(())
    })?;
    fine.wait().into_result()?;
    // Nothing watches this task, so the scheduler reports its failure.
    let (send, ends) = std::sync::mpsc::channel();
    drop(scheduler.spawn(async move |_: Cx| -> Result<(), BoxError> {
        send.send(())?;
        Err("on purpose".into())
    })?);
    ends.recv()?;
    scheduler.stop(Duration::from_secs(5))?;
    Ok(())
}
