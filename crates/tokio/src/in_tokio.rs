//! Futures that need a tokio runtime.

use std::future::poll_fn;
use std::pin::pin;
use tokio::runtime::Handle;

/// A future was not polled, because the tokio runtime that it needs is gone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the tokio runtime has been shut down")]
pub struct RuntimeGone;

/// Polls `future` inside of a tokio runtime, so that it finds that runtime's timers and sockets.
/// The task stays a process of its scheduler.
///
/// The runtime is driven by threads of its own: a multi-thread runtime, or one that a thread has in
/// `block_on`. The future begins when the runtime has shown that it runs tasks. Where none drives
/// it, this waits, so put `cx.timeout` around it in doubt.
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
    // A runtime that is gone cancels what it is given.
    handle.spawn(async {}).await.map_err(|_| RuntimeGone)?;
    let mut future = pin!(future);
    let result = poll_fn(|context| {
        let _inside = handle.enter();
        future.as_mut().poll(context)
    });
    Ok(result.await)
}
