//! Reports of failures otherwise unknown.
//!
//! **Problem.** A failing process that nothing watches is gone without a word. So is an error as an
//! answer that an actor has asked for and does not take. The first program of a user does both.
//!
//! **Rejected.** A line for each: a crowd with the same failure fills the log. A thread that writes
//! them: the program may end first.
//!
//! **Rule.** The first report is a line at once. After it, at most one line a second is written,
//! with the number of reports left out; the end of a stop writes the remaining number. A function
//! of the program's own gets each report.

use crate::base::contain::{contain, log, remedy};
use ganger_proc_api::{ExitCause, Pid, Symbol, Tag};
use ganger_sync::sync::{Mutex, lock};
use std::fmt;
use std::mem;
use std::sync::Arc;
use std::time::Duration;
use tracing::Level;
use tracing::subscriber::NoSubscriber;

/// The least time between two lines.
const INTERVAL: Duration = Duration::from_secs(1);

/// A failure that nothing else in the program learns of: see
/// [`Builder::on_failure`](crate::Builder::on_failure). Its text is a single line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailureReport {
    /// The process concerned.
    pub pid: Pid,
    /// The names of the process. They are lost when a handle is dropped long after the end.
    pub names: Vec<Box<str>>,
    /// The name of the process's type; for an actor, of the actor's type.
    pub type_name: &'static str,
    /// The entry point.
    pub method: Symbol,
    /// The failure.
    pub failure: Failure,
}

/// A kind of failure.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The process has ended: its step has failed or panicked, or an upgrade has failed.
    Ended(ExitCause),
    /// The failure of a linked process has ended the process.
    Exited(ExitCause),
    /// A command or question of the process was answered with an error, and the process is an actor
    /// without [`completed`](ganger_proc_api::Actor::completed).
    Answer {
        /// The command's tag.
        tag: Tag,
        /// The error, with its sources.
        error: Box<str>,
    },
    /// A question to the process was answered with this error, and the asking code has dropped the
    /// answer without a look.
    Dropped(Box<str>),
}

impl Failure {
    /// Returns the text on the process, without the error.
    fn what(&self) -> &'static str {
        match self {
            Self::Ended(ExitCause::Panicked(_)) => "panicked, and no process monitors it",
            Self::Ended(ExitCause::UpgradeFailed(_)) => {
                "ended because its upgrade failed, and no process monitors it"
            }
            Self::Ended(_) => "failed, and no process monitors it",
            Self::Exited(_) => "ended with a linked process, and no process monitors it",
            Self::Answer { .. } => {
                "got an error as an answer, and its actor does not implement \
                                    `completed`"
            }
            Self::Dropped(_) => "answered with an error that was dropped unseen",
        }
    }

    /// Returns the text of the error.
    fn error(&self) -> String {
        match self {
            Self::Ended(ExitCause::Failed(text) | ExitCause::Panicked(text))
            | Self::Ended(ExitCause::UpgradeFailed(text)) => String::from(&**text),
            Self::Ended(cause) | Self::Exited(cause) => cause.to_string(),
            Self::Answer { error, .. } | Self::Dropped(error) => String::from(&**error),
        }
    }
}

impl FailureReport {
    fn name(&self) -> Option<&str> {
        self.names.first().map(|name| &**name)
    }

    /// Writes the process, and its fate.
    fn write_what(&self, f: &mut dyn fmt::Write) -> fmt::Result {
        write!(f, "process {}", self.pid)?;
        if let Some(name) = self.name() {
            write!(f, " {name:?}")?;
        }
        write!(f, " ({}", self.type_name)?;
        if self.method.as_str() != "main" {
            write!(f, ", method {:?}", self.method.as_str())?;
        }
        write!(f, ") {}", self.failure.what())
    }

    /// Returns the line for a reader of the standard error stream, where the panic hook has written
    /// the message of a panic.
    fn on_stderr(&self) -> String {
        let mut line = String::from("ganger: ");
        if let Failure::Ended(ExitCause::Panicked(message)) = &self.failure {
            let _ = self.write_what(&mut line);
            line.push_str("; its panic is above");
            if let Some(remedy) = remedy(message) {
                line.push_str("; ");
                line.push_str(remedy);
            }
        } else {
            line.push_str(&self.to_string());
        }
        line
    }
}

impl fmt::Display for FailureReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_what(f)?;
        write!(f, ": {}", self.failure.error())
    }
}

/// The use of reports.
#[derive(Clone, Default)]
pub(crate) enum OnFailure {
    /// A line now and then.
    #[default]
    Line,
    Quiet,
    Call(Arc<dyn Fn(&FailureReport) + Send + Sync>),
}

/// When the next line may be written.
#[derive(Default)]
pub(crate) struct Lines(Mutex<State>);

#[derive(Default)]
struct State {
    due: Duration,
    left_out: u64,
}

impl Lines {
    /// Returns the number of reports left out before, if a report at this time is a line.
    fn admit(&self, now: Duration) -> Option<u64> {
        let mut state = lock(&self.0);
        if now < state.due {
            state.left_out += 1;
            return None;
        }
        state.due = now.saturating_add(INTERVAL);
        Some(mem::take(&mut state.left_out))
    }

    /// Writes a report, or counts it.
    pub(crate) fn write(&self, report: &FailureReport, now: Duration) {
        if let Some(left_out) = self.admit(now) {
            emit(report, left_out);
        }
    }

    /// Writes the number of reports left out since the last line.
    pub(crate) fn write_rest(&self) {
        let left_out = mem::take(&mut lock(&self.0).left_out);
        if left_out > 0 {
            log(Level::ERROR, || {
                tracing::error!(
                    target: "ganger::failure", left_out,
                    "more failures were not reported"
                );
            });
            on_stderr(format!(
                "ganger: failures that were not reported: {left_out}"
            ));
        }
    }
}

#[cold]
fn emit(report: &FailureReport, left_out: u64) {
    log(Level::ERROR, || {
        let tag = match report.failure {
            Failure::Answer { tag, .. } => Some(tag),
            _ => None,
        };
        tracing::error!(
            target: "ganger::failure",
            pid = %report.pid, name = report.name(), process = report.type_name,
            method = %report.method, tag, reason = %report.failure.error(), left_out,
            "a process {}", report.failure.what()
        );
    });
    let line = report.on_stderr();
    on_stderr(match left_out {
        0 => line,
        _ => format!("{line} ({left_out} more since the last such line)"),
    });
}

/// Writes a line to the standard error stream, if this thread has no subscriber. A closed stream is
/// no reason to end anything.
fn on_stderr(mut line: String) {
    if tracing::dispatcher::get_default(|it| it.is::<NoSubscriber>()) {
        // In one piece: other threads write there, too.
        line.push('\n');
        let _ = contain(|| eprint!("{line}"));
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use ganger_proc_api::HostName;

    fn report(failure: Failure, name: &str, method: &'static str) -> FailureReport {
        FailureReport {
            pid: Pid::new(HostName::new("test").unwrap(), 7),
            names: Vec::from([name.into()]),
            type_name: "app::Worker",
            method: Symbol::new(method),
            failure,
        }
    }

    // pins: F2
    #[test]
    fn a_line_is_written_at_once_and_then_one_a_second_with_a_count() {
        let lines = Lines::default();
        let at = |millis| lines.admit(Duration::from_millis(millis));
        assert_eq!([at(0), at(0), at(999)], [Some(0), None, None]);
        assert_eq!([at(1_000), at(1_001), at(3_000)], [Some(2), None, Some(1)]);
        assert_eq!([at(9_000), at(9_000)], [Some(0), None]);
        lines.write_rest();
        assert_eq!(at(20_000), Some(0));
    }

    // pins: F2
    #[test]
    fn a_report_is_a_line_and_the_message_of_a_panic_is_not_written_twice() {
        let failed = report(
            Failure::Ended(ExitCause::Failed("no disk".into())),
            "it",
            "main",
        );
        let text =
            "process {test|7} \"it\" (app::Worker) failed, and no process monitors it: no disk";
        assert_eq!(failed.to_string(), text);
        assert_eq!(failed.on_stderr(), format!("ganger: {text}"));
        let cause = ExitCause::Panicked("no luck".into());
        let panicked = report(Failure::Ended(cause), "it", "run");
        let text = "process {test|7} \"it\" (app::Worker, method \"run\") panicked, and no \
                    process monitors it";
        assert_eq!(panicked.to_string(), format!("{text}: no luck"));
        assert_eq!(
            panicked.on_stderr(),
            format!("ganger: {text}; its panic is above")
        );
    }
}
