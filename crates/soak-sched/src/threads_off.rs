//! The counterpart of `threads` for systems on which a thread can't be asked for its place.

/// Says that the system gives no backtraces.
pub(crate) fn report() -> String {
    "there are no backtraces of threads on this system\n".to_owned()
}
