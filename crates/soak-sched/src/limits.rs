//! A crowd: threads submit until the scheduler has exactly as many processes as it may have.

use crate::plan::CROWDS;
use crate::sink::Sink;
use crate::site::Site;
use crate::watch::Watch;
use fastrand::Rng;
use ganger::{ProcessHandle, SubmitErrorKind};
use std::thread;

/// Fills a scheduler without live processes up to its limit, if it has a limit, and lets all of
/// them finish.
pub(crate) fn run(site: &Site, watch: &Watch, max: Option<usize>, seed: u64) -> Result<(), String> {
    let Some(max) = max else {
        return Ok(());
    };
    let crowds: Vec<Vec<ProcessHandle>> = thread::scope(|scope| {
        let submit = |nth: u64| scope.spawn(move || fill(site, seed ^ nth));
        let threads: Vec<_> = (0..CROWDS).map(submit).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined.filter_map(Result::ok).collect()
    });
    let handles: Vec<ProcessHandle> = crowds.into_iter().flatten().collect();
    let alive = handles.len();
    site.finish(watch, handles);
    if alive == max {
        Ok(())
    } else {
        Err(format!("{alive} processes were alive, and {max} may be\n"))
    }
}

/// Submits processes until the scheduler is full.
fn fill(site: &Site, seed: u64) -> Vec<ProcessHandle> {
    let mut random = Rng::with_seed(seed);
    let gentle = site.kit(Default::default());
    let mut handles = Vec::new();
    loop {
        let actor = gentle.actor(Sink, random.u64(..));
        match site.runtime.submit(actor, "crowd", ()) {
            Ok(handle) => handles.push(handle),
            Err(error) => {
                site.account.refused.bump();
                if matches!(error.kind, SubmitErrorKind::LimitReached { .. }) {
                    return handles;
                }
            }
        }
    }
}
