//! The run token, as queues hold it.

use std::ptr::NonNull;

/// The right, and the duty, to run a live process: see `state.rs`.
///
/// The process's reference count leaves the token out, as it would cost two read-modify-writes a
/// turn. A live process is in the registry, and leaves it in `finish`, which takes a token. When
/// its end is put off further, its `Ending` has the registry's reference.
///
/// Queues know nothing of the process: `cell/token.rs` makes tokens and looks behind them.
pub(crate) struct Token(pub(super) NonNull<()>);

// SAFETY: the token stands for a shared reference to a cell, which is `Sync`, as `cell/token.rs`
// checks.
unsafe impl Send for Token {}
