//! A trace of the shop: ten turns of a worker.

use ganger_observe::trace::{Thread, Trace};
use ganger_ring::event::{After, Event, Pick, WORDS};
use std::io::{self, BufWriter, Write};
use std::time::Duration;

/// Writes a trace up to now.
pub(super) fn write(now: Duration, time: Duration, to: &mut dyn Write) -> io::Result<()> {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let end = nanos(now);
    let from = nanos(now.saturating_sub(time));
    let (writer, reader) = ganger_ring::ring::<WORDS>(1 << 16);
    let step = (end - from) / 10;
    for turn in 0..10 {
        let at = from + turn * step;
        let begins = Event::TurnBegins {
            process: 10 + turn % 3,
            name: 1,
            pick: Pick::Local,
        };
        let ends = Event::TurnEnds {
            process: 10 + turn % 3,
            after: After::Waits,
            steps: 1,
        };
        writer.push(begins.record(at));
        writer.push(ends.record(at + step / (2 + turn)));
    }
    let names = |name| (name == 1).then(|| "shop::Orders".to_owned());
    let worker = Thread::new("worker 0", reader.snapshot());
    let trace = Trace::new("shop", from..end, [worker], names);
    let mut to = BufWriter::new(to);
    trace.write_perfetto(&mut to)?;
    to.flush()
}
