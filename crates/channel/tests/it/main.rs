//! Tests of channels and selects through their public interface.

#![allow(unreachable_pub, reason = "tests")]

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

#[cfg(not(ganger_loom))]
mod all;
#[cfg(not(ganger_loom))]
mod behaviour;
#[cfg(not(ganger_loom))]
mod deadlocks;
#[cfg(not(ganger_loom))]
mod foreign_code;
#[cfg(not(ganger_loom))]
mod histories;
#[cfg(not(ganger_loom))]
mod model;
#[cfg(not(ganger_loom))]
mod selects;
#[cfg(not(ganger_loom))]
mod simulated;
#[cfg(not(ganger_loom))]
mod support;
#[cfg(not(ganger_loom))]
mod yields;

mod loom_channel;
mod loom_select;

/// Polls a future once.
fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    let mut context = Context::from_waker(Waker::noop());
    match Pin::new(future).poll(&mut context) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}
