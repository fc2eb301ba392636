//! Questions of tests.

use ganger_again::{Once, Seen};
use ganger_proc_api::{CommandError, Completer, Reply};
use std::sync::mpsc::{Receiver, channel};

pub(crate) type Answer = Result<u64, CommandError>;

/// Creates a reply, and returns also the answer's receiver.
pub(crate) fn reply() -> (Reply<u64>, Receiver<Answer>) {
    let (tell, told) = channel();
    let pid = "{test|1}".parse().unwrap();
    let completer = Completer::from_fn(pid, 0, move |it| {
        let _gone = tell.send(it.take::<u64>());
    });
    (Reply::new(completer), told)
}

/// Asks, and returns the work to do, if any, and the answer to come.
pub(crate) fn ask(
    seen: &mut Seen<u64>,
    once: &Once<&'static str>,
) -> (Option<Reply<u64>>, Receiver<Answer>) {
    let (reply, told) = reply();
    let fresh = seen.fresh(once.clone(), reply);
    (fresh.map(|it| it.1), told)
}
