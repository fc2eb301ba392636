//! Mistakes in queries.

/// A mistake in a query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// A parameter has an unknown name.
    #[error("no parameter is called {0:?}: use top, by, window, filter and scheduler")]
    Unknown(String),
    /// A parameter is there twice.
    #[error("the parameter {0:?} is there twice: leave one out")]
    Twice(String),
    /// The number of processes is wrong.
    #[error("top={0:?} is not a number from 1 to 1000: ask for the next ones by a narrower filter")]
    Top(String),
    /// A parameter of a query for sockets has an unknown name.
    #[error("no parameter of sockets is called {0:?}: use top, after and scheduler")]
    UnknownOfSockets(String),
    /// The number of sockets is wrong.
    #[error("top={0:?} is not a number from 1 to 1000: ask for the next ones by after=ID")]
    SocketsTop(String),
    /// The id of a socket is wrong.
    #[error("after={0:?} is not a number: give the id of the last socket that you have")]
    After(String),
    /// The id of a socket is there without its scheduler.
    #[error("after is an id in one scheduler: add scheduler=NUMBER, the scheduler of that socket")]
    AfterOfNone,
    /// The order is unknown.
    #[error(
        "by={0:?} is not an order: use mailbox, quiet, pid, steps, events, busy, growth or age"
    )]
    By(String),
    /// The window is wrong.
    #[error("window={0:?} is not a time from 1ms to 60s: write 500ms or 5s, for example")]
    Window(String),
    /// The number of a scheduler is wrong.
    #[error("scheduler={0:?} is not a number: /api/v1/snapshot has the numbers of the schedulers")]
    Scheduler(String),
    /// The filter is too long.
    #[error("the filter has {0} bytes, and may have 256: leave terms out")]
    LongFilter(usize),
    /// A term has an unknown field.
    #[error("no field is called {0:?}: use state, type, method, name, pid, parent and label")]
    Field(String),
    /// A term has no text.
    #[error("the term {0:?} of the filter has no text: write field:text, or leave it out")]
    NoText(String),
    /// A state is unknown.
    #[error("no state is called {0:?}: use ready, running, blocked, idle and suspended")]
    State(String),
}

/// Returns a text of a stranger, short enough for an answer.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(40).collect()
}
