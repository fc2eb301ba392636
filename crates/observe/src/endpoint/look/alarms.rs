//! The raised alarms of a scheduler.

use super::nanos;
use crate::alarms::{self, Board};
use crate::api::Alarm;
use ganger_sched::{Handle, Instant};

pub(super) fn raised(handle: &Handle) -> Vec<Alarm> {
    let now = handle.now();
    let raised = Board::of(handle).raised().into_iter();
    raised.map(|it| alarm(it, now)).collect()
}

fn alarm(alarm: alarms::Alarm, now: Instant) -> Alarm {
    Alarm {
        number: alarm.number,
        kind: alarm.kind.name().to_owned(),
        is_severe: alarm.is_severe,
        pid: alarm.pid.map(|pid| pid.to_string()),
        text: alarm.text,
        value: alarm.value,
        limit: alarm.limit,
        since_ns: nanos(now - alarm.since),
    }
}
