//! The signals for the end of a program.

use std::io;

/// Waits until the program is asked to end: by SIGINT, Ctrl-C in a terminal, or by SIGTERM, as
/// systems and containers send it; on other systems than Unix by Ctrl-C.
///
/// From its first poll on, neither signal ends the program. Later signals change nothing: the
/// deadline of the stop limits its time, and SIGKILL is for impatient callers. A signal may come
/// twice by accident, from a terminal and from the program that has started this program.
///
/// ```no_run
/// use ganger_sched::Scheduler;
/// use ganger_task::Cx;
/// use ganger_tokio::{Tokio, shutdown_signal};
/// use std::time::Duration;
///
/// let scheduler = Scheduler::builder().driver(Tokio::new()?).start()?;
/// let asked = scheduler.spawn(async |_: Cx| Ok(shutdown_signal().await?))?;
/// asked.wait().into_result()?;
/// scheduler.stop(Duration::from_secs(10))?; // All processes are asked to finish.
/// # Ok::<(), ganger_proc_api::BoxError>(())
/// ```
///
/// # Errors
/// The errors of the system.
///
/// # Panics
/// Outside of a runtime of tokio.
pub async fn shutdown_signal() -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::future::poll_fn;
        use tokio::signal::unix::{SignalKind, signal};
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        poll_fn(|context| {
            let interrupted = interrupt.poll_recv(context);
            match interrupted.is_ready() {
                true => interrupted,
                false => terminate.poll_recv(context),
            }
        })
        .await;
        Ok(())
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}
