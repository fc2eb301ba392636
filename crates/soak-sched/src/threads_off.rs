//! The counterpart of `threads` for systems on which a thread can't be asked where it is.

/// That there is nothing to report.
pub(crate) fn report() -> String {
    "there are no backtraces of threads on this system\n".to_owned()
}
