//! No profiles: without the feature.

use super::answer::{Answer, Refused, refused};
use ganger_proc_api::Reply;
use ganger_sched::Handle;
use hyper::StatusCode;
use std::time::Duration;

/// Never made.
pub(super) enum Wanted {}

/// Refuses all requests.
pub(super) fn wanted(
    _: &str,
    _: impl FnOnce(Option<u64>) -> Result<Handle, Refused>,
) -> Result<Wanted, Refused> {
    let sentence = "this program has no profiles: build it with the feature `profile`, and the \
                    scheduler with `Builder::profiles`";
    Err(refused(StatusCode::NOT_FOUND, sentence))
}

impl Wanted {
    pub(super) fn time(&self) -> Duration {
        match *self {}
    }

    pub(super) fn begin(self, _: Reply<Result<Answer, Refused>>) {
        match self {}
    }
}
