//! Why a question is refused.

/// Why a question was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotDone {
    /// The question is older than the remembered ones. Perhaps it was done before.
    #[error("the question is older than those remembered, and may have been done: ask anew")]
    TooOld,
    /// As many questions as the receiver remembers are being worked on. Nothing was done.
    #[error("too many questions are being worked on: ask again later")]
    Busy,
    /// The question was begun before its receiver was restored, and has no answer.
    #[error("the question was begun, and its answer is unknown since the receiver was restored")]
    Unknown,
}
