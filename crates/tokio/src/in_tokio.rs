//! Futures with a tokio runtime.

use std::future::poll_fn;
use std::pin::pin;
use tokio::runtime::Handle;

/// A future was not polled, because its tokio runtime is gone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the tokio runtime has been shut down")]
pub struct RuntimeGone;

/// Polls `future` inside of a tokio runtime, so that it finds the runtime's timers and sockets. The
/// task stays a process of its scheduler.
///
/// Other threads drive the runtime: the threads of a multi-thread runtime, or a thread in
/// `block_on`. The future begins when the runtime has shown that it runs tasks. If no thread drives
/// it, the call waits, so put `cx.timeout` around it in doubt.
///
/// ```
/// # use ganger_proc_api::BoxError;
/// # use std::time::Duration;
/// use ganger_task::Cx;
/// use ganger_tokio::in_tokio;
///
/// # async fn body(cx: Cx, handle: tokio::runtime::Handle) -> Result<(), BoxError> {
/// let rest = async { tokio::time::sleep(Duration::from_millis(1)).await };
/// cx.until_cancelled(in_tokio(&handle, rest)).await??;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`RuntimeGone`] when the runtime has been shut down.
pub async fn in_tokio<F: Future>(handle: &Handle, future: F) -> Result<F::Output, RuntimeGone> {
    // A gone runtime cancels its new tasks.
    handle.spawn(async {}).await.map_err(|_| RuntimeGone)?;
    let mut future = pin!(future);
    let result = poll_fn(|context| {
        let _inside = handle.enter();
        future.as_mut().poll(context)
    });
    Ok(result.await)
}
