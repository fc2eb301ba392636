//! What the endpoint does to a process, where the program allows it.
//!
//! **Problem.** A process does harm, and the program can't be changed now. Yet whatever can ask the
//! endpoint must not be able to end processes.
//!
//! **Rules.**
//! 1. The program allows actions by `Serve::allow_actions`. Such an endpoint does not start without
//!    a token, so `routes` has checked host, origin and token before an action, on loopback too.
//! 2. An action is a `POST`: no link, no image and no crawler asks for one.
//! 3. The scheduler takes the action as it takes a call of `Handle`, and the endpoint waits for
//!    nothing: the answer says what was asked of the process, not that it has ended.
//! 4. Each action is an event of `tracing`, for the log.

use super::answer::{self, Answer, Refused};
use super::process;
use super::site::Site;
use crate::api::{Acted, Action, VERSION};

const ACTIONS: [(&str, Action); 2] = [
    ("/cancel", Action::Cancel),
    ("/terminate", Action::Terminate),
];

/// The text of the PID and the action, of the rest of a path behind `/api/v1/process/`.
pub(super) fn of(rest: &str) -> Option<(&str, Action)> {
    let mut of_each = ACTIONS.iter();
    of_each.find_map(|(end, action)| Some((rest.strip_suffix(end)?, *action)))
}

pub(super) fn act(site: &Site, action: Action, pid: &str, query: &str) -> Result<Answer, Refused> {
    site.access.check_action()?;
    let (shown, pid, _) = process::find(site, pid, query)?;
    let done = match action {
        Action::Cancel => shown.handle.cancel(pid, "asked for at the endpoint"),
        Action::Terminate => shown.handle.terminate(pid),
    };
    // The process has ended meanwhile.
    done.map_err(|_| process::no_process())?;
    tracing::info!(
        target: "ganger::observe",
        %pid,
        action = action.name(),
        "a client acts on a process"
    );
    Ok(answer::json(&Acted {
        version: VERSION,
        scheduler: shown.number,
        pid: pid.to_string(),
        action,
    }))
}
