//! Messages that a source keeps until a step is about to be shown them.

use crate::support::{exit_number, process};
use ganger_proc_api::{Envelope, Event};
use ganger_sched::{Alarm, CommandRegistry, Instant, Scheduler, Seat, Source};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

/// Those that have not been taken back, by their keys.
#[derive(Default)]
struct Keeps {
    alarm: OnceLock<Alarm>,
    kept: Mutex<BTreeMap<u64, Envelope>>,
}

impl Source for Keeps {
    fn attach(&self, alarm: Alarm, _: &CommandRegistry) {
        assert!(self.alarm.set(alarm).is_ok());
    }

    fn deliver(&self, _: Seat, _: Instant, _: usize) {}

    fn take_envelope(
        &self,
        _: Seat,
        key: u64,
        is_wanted: &mut dyn FnMut(&Envelope) -> bool,
    ) -> Option<Envelope> {
        let mut kept = self.kept.lock().unwrap();
        if is_wanted(kept.get(&key)?) {
            kept.remove(&key)
        } else {
            None
        }
    }

    fn detach(&self) {}
}

/// What a process does in each step to have a system event in the next one.
#[derive(Clone, Copy)]
enum Flood {
    Control,
    Cancel,
}

/// So many messages are kept for a process, of which the last has not been taken back. Returns in
/// which of its steps the process is shown that, and in how many steps before it could not be
/// taken back.
fn shown_in_step(flood: Flood, batch: usize, kept: u64) -> (u64, u64) {
    let keeps = Arc::new(Keeps::default());
    let builder = Scheduler::builder().workers(1).event_batch(batch);
    let scheduler = builder.source(keeps.clone()).build().unwrap();
    let (handle, keeps_it) = (scheduler.handle(), keeps.clone());
    let (mut steps, mut too_late) = (0_u64, 0_u64);
    let process = process(move |ctx, events, out| {
        steps += 1;
        out.defer_cancel();
        if events.into_iter().any(|it| matches!(it, Event::Message(_))) {
            out.done(steps << 32 | too_late);
            return Ok(());
        }
        too_late += u64::from(keeps_it.kept.lock().unwrap().is_empty());
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
    let alarm = keeps.alarm.get().unwrap();
    for key in 1..=kept {
        let envelope = Envelope::new(None, process.pid(), "kept", key);
        if key == kept {
            keeps.kept.lock().unwrap().insert(key, envelope);
        }
        let sent = alarm.send_held(&scheduler, process.pid(), Seat::OUTSIDE, key);
        sent.unwrap();
    }
    scheduler.start().unwrap();
    let seen = exit_number(process);
    (seen >> 32, seen & u64::from(u32::MAX))
}

/// After eight batches that system events have filled, one is of the others.
// pins: P4, T2
#[test]
fn system_events_keep_a_kept_message_waiting_for_eight_batches() {
    for kept in [1, 6] {
        assert_eq!(shown_in_step(Flood::Control, 1, kept), (9, 0));
    }
}

/// The batch has room for the message beside the cancellation.
// pins: P4, T2
#[test]
fn cancellations_do_not_keep_a_kept_message_waiting() {
    for kept in [1, 6] {
        assert_eq!(shown_in_step(Flood::Cancel, 2, kept), (1, 0));
    }
}
