//! Actions of the endpoint on a process, where the program allows actions.
//!
//! **Problem.** A process does harm, and the program can't be changed now. Yet whatever can ask the
//! endpoint must not be able to end processes.
//!
//! **Rules.**
//! 1. The program allows actions by `Serve::allow_actions`. Such an endpoint does not start without
//!    a token, so `routes` has checked host, origin and token before an action, on loopback too.
//! 2. An action is a `POST`: no link, no image and no crawler asks for one.
//! 3. The scheduler takes the action as it takes a call of `Handle`. The answer names the request
//!    to the process, and not its end. The endpoint waits a moment for a process to stand still,
//!    and for the successor of a child that is restarted.
//! 4. A scheduler has processes suspended where its own builder allows interventions, too.
//! 5. Each action is an event of `tracing`, for the log.

use super::access::Access;
use super::answer::{self, Answer, Refused, refused};
use super::limits::{HAPPEN, LOOK, LOOKS};
use super::process::{self, not_allowed};
use super::site::Site;
use crate::api::{Acted, Action, VERSION};
use ganger_proc_api::Pid;
use ganger_sched::{Handle, Suspended};
use ganger_task::Cx;
use hyper::StatusCode;

const ACTIONS: [(&str, Action); 5] = [
    ("/cancel", Action::Cancel),
    ("/terminate", Action::Terminate),
    ("/suspend", Action::Suspend),
    ("/resume", Action::Resume),
    ("/restart", Action::Restart),
];

/// Returns the names of the actions that the program allows, for viewers.
pub(super) fn allowed(access: &Access) -> Vec<String> {
    let all = ACTIONS.iter().filter(|_| access.check_action().is_ok());
    all.map(|(_, action)| action.name().to_owned()).collect()
}

/// Returns the text of the PID and the action, of the rest of a path behind `/api/v1/process/`.
pub(super) fn of(rest: &str) -> Option<(&str, Action)> {
    let mut of_each = ACTIONS.iter();
    of_each.find_map(|(end, action)| Some((rest.strip_suffix(end)?, *action)))
}

pub(super) async fn act(
    cx: &Cx,
    site: &Site,
    action: Action,
    (pid, query): (&str, &str),
) -> Result<Answer, Refused> {
    site.access.check_action()?;
    let (shown, pid, _) = process::find(site, pid, query)?;
    let (mut stands, mut successor) = (None, None);
    match action {
        // An error: the process has ended meanwhile.
        Action::Cancel => (shown.handle.cancel(pid, "asked for at the endpoint"))
            .map_err(|_| process::no_process())?,
        Action::Terminate => {
            (shown.handle.terminate(pid)).map_err(|_| process::no_process())?;
        }
        Action::Suspend => stands = Some(suspend(cx, &shown.handle, pid).await?),
        Action::Resume => _ = shown.handle.resume(pid).map_err(not_allowed)?,
        Action::Restart => successor = restart(cx, &shown.handle, pid).await?,
    }
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
        stands,
        successor,
    }))
}

/// Returns whether the process stands, within a moment.
async fn suspend(cx: &Cx, scheduler: &Handle, pid: Pid) -> Result<bool, Refused> {
    let mut looks = LOOKS;
    while scheduler.suspend(pid).map_err(not_allowed)? != Suspended::Stands {
        // An error: the endpoint is about to end.
        if looks == 0 || cx.sleep(LOOK).await.is_err() {
            return Ok(false);
        }
        looks -= 1;
    }
    Ok(true)
}

/// Returns the PID of this process's successor, if the supervisor starts a successor within a
/// moment.
async fn restart(cx: &Cx, scheduler: &Handle, pid: Pid) -> Result<Option<String>, Refused> {
    let conflict = |sentence: &str| refused(StatusCode::CONFLICT, sentence);
    let Some(restart) = ganger_supervise::restart(scheduler, pid) else {
        let sentence = "no supervisor has that process: /api/v1/tree has those that one has";
        return Err(conflict(sentence));
    };
    match cx.timeout(HAPPEN, cx.ask(restart)).await {
        Ok(Ok(successor)) => Ok(Some(successor.to_string())),
        Ok(Err(error)) => Err(conflict(&error.to_string())),
        Err(_) => Ok(None),
    }
}
