//! The report of a stop names the forced processes, and the stuck ones.

use crate::support::*;
use ganger_proc_api::{
    Context, Events, ExitReason, Lifecycle, Pid, Process, StepOutput, StepResult,
};
use ganger_sched::{ProcessState, Scheduler};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Has a name, and does not end by itself.
struct Stubborn;

impl Process for Stubborn {
    fn step(&mut self, ctx: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        // Its second step has the name already.
        let _ = ctx.register_name("stubborn");
        out.defer_cancel();
        Ok(())
    }
}

/// Its step returns when it is told so.
struct Holds(Receiver<()>);

impl Process for Holds {
    fn step(&mut self, ctx: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        ctx.register_name("holds")?;
        let _gone = self.0.recv();
        out.done(());
        Ok(())
    }
}

// pins: D3
#[test]
fn a_report_says_which_processes_were_forced_and_which_are_stuck_since_when() {
    let scheduler = Scheduler::builder().workers(2).start().unwrap();
    let stubborn = scheduler.submit(Stubborn, "stays", ()).unwrap();
    until_state(&scheduler, stubborn.pid(), ProcessState::Idle);
    let (tell, told) = channel();
    let holds = scheduler.submit(Holds(told), "holds on", ()).unwrap();
    until_state(&scheduler, holds.pid(), ProcessState::Running);
    until("it has its name", || scheduler.whereis("holds").is_some());
    let deadline = Duration::from_millis(60);
    let report = scheduler.stop(deadline).unwrap();
    assert_eq!(
        (report.forced, report.first_forced.len()),
        (1, 1),
        "{report}"
    );
    let forced = &report.first_forced[0];
    assert_eq!(
        (forced.pid, &*forced.names),
        (stubborn.pid(), &["stubborn".into()][..])
    );
    let method = forced.method.unwrap();
    assert!(method == "stays" && forced.type_name.unwrap().ends_with("Stubborn"));
    assert!(
        report.is_stuck(holds.pid()) && !report.is_stuck(stubborn.pid()),
        "{report}"
    );
    let stuck = &report.stuck[0];
    assert_eq!(&*stuck.names, ["holds".into()]);
    assert!(stuck.type_name.unwrap().ends_with("Holds"), "{report}");
    // Its turn began before the stop did.
    assert!(stuck.since.unwrap() >= deadline / 2, "{report}");
    let text = report.to_string();
    let forced = format!("1 forced ({} \"stubborn\" stays (", stubborn.pid());
    let stuck = format!("1 stuck ({} \"holds\" holds on (", holds.pid());
    assert!(text.contains(&forced) && text.contains(&stuck), "{text}");
    assert!(text.contains("Holds) since "), "{text}");
    drop(tell);
    assert!(matches!(holds.wait(), ExitReason::Terminated));
}

/// Does not return from the end of a process until it is told so.
struct Hook(Mutex<Receiver<()>>, Sender<()>);

impl Lifecycle for Hook {
    fn on_complete(&self, _: Pid, _: &ExitReason) {
        self.1.send(()).unwrap();
        let _gone = self.0.lock().unwrap().recv();
    }
}

// pins: D3
#[test]
fn a_process_that_is_stuck_in_a_hook_has_its_pid_in_the_report() {
    let ((tell, told), (entered, has_entered)) = (channel(), channel());
    let hook = Hook(Mutex::new(told), entered);
    let scheduler = Scheduler::builder()
        .workers(1)
        .lifecycle(hook)
        .start()
        .unwrap();
    let quick = process(|_, _, out| {
        out.done(7);
        Ok(())
    });
    let quick = scheduler.submit(quick, "main", ()).unwrap();
    has_entered.recv().unwrap();
    let report = scheduler.stop(Duration::from_millis(10)).unwrap();
    assert!(report.is_stuck(quick.pid()), "{report}");
    assert!(report.stuck[0].type_name.is_none(), "{report}");
    assert!(
        report.to_string().contains("in a hook at its end"),
        "{report}"
    );
    drop(tell);
    assert_eq!(exit_number(quick), 7);
}
