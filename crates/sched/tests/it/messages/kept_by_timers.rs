//! Messages kept by a timer until a step is about to see them.

use crate::support::{exit_number, process};
use ganger_proc_api::{Envelope, Event};
use ganger_sched::{Scheduler, Timer};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A process's act in each step, for a system event in the next.
#[derive(Clone, Copy)]
enum Flood {
    Control,
    Cancel,
}

/// Sends `kept` messages to a process, and takes all but the last back. Returns the step of the
/// process with the last message; in the step `cancels` the process takes this message back, and
/// ends with 0 if it could.
fn shown_in_step(flood: Flood, batch: usize, kept: u64, cancels: u64) -> u64 {
    let builder = Scheduler::builder().workers(1).event_batch(batch);
    let scheduler = builder.build().unwrap();
    let handle = scheduler.handle();
    let last = Arc::new(Mutex::new(None::<Timer>));
    let its_last = Arc::clone(&last);
    let mut steps = 0_u64;
    let process = process(move |ctx, events, out| {
        steps += 1;
        out.defer_cancel();
        if events.into_iter().any(|it| matches!(it, Event::Message(_))) {
            out.done(steps);
            return Ok(());
        }
        let last = its_last.lock().unwrap();
        if steps == cancels && last.as_ref().is_some_and(|it| it.cancel().is_some()) {
            out.done(0_u64);
            return Ok(());
        }
        match flood {
            Flood::Control => ctx.send_control(ctx.pid(), "again", ())?,
            Flood::Cancel => handle.cancel(ctx.pid(), "again")?,
        }
        Ok(())
    });
    let process = scheduler.submit(process, "main", ()).unwrap();
    match flood {
        Flood::Control => {
            let control = Envelope::new(None, process.pid(), "again", ());
            scheduler.send_control(control).unwrap();
        }
        Flood::Cancel => scheduler.cancel(process.pid(), "again").unwrap(),
    }
    for nth in 1..=kept {
        let envelope = Envelope::new(None, process.pid(), "kept", nth);
        let timer = scheduler.send_after(Duration::ZERO, envelope);
        if nth == kept {
            *last.lock().unwrap() = Some(timer);
        } else {
            timer.cancel().unwrap();
        }
    }
    scheduler.start().unwrap();
    exit_number(process)
}

/// Checks that a batch has only other events after eight batches filled by system events. Until
/// then the message can be taken back.
// pins: P4, T2
#[test]
fn system_events_keep_a_kept_message_waiting_for_eight_batches() {
    for kept in [1, 6] {
        assert_eq!(shown_in_step(Flood::Control, 1, kept, 0), 9);
        assert_eq!(shown_in_step(Flood::Control, 1, kept, 8), 0);
    }
}

/// Checks that the batch has room for the message next to the cancellation.
// pins: P4, T2
#[test]
fn cancellations_do_not_keep_a_kept_message_waiting() {
    for kept in [1, 6] {
        assert_eq!(shown_in_step(Flood::Cancel, 2, kept, 0), 1);
    }
}
