//! A wait is awaited outside of an async function.

use ganger_proc_api::BoxError;
use ganger_task::Cx;

fn first(cx: &Cx<u64>) -> Result<u64, BoxError> {
    Ok(cx.recv().await.ok_or("cancelled")?)
}

fn main() {}
