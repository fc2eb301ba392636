//! Chrome's JSON, the format of many tools:
//! <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>.

use super::model::{Argument, Entry, Flow, Form, Shows, Trace, Value};
use std::io::{self, Write};

pub(super) fn write(trace: &Trace, to: impl Write) -> io::Result<()> {
    let mut writer = Writer {
        trace,
        to,
        open: vec![Vec::new(); trace.tracks.len()],
        is_first: true,
    };
    writer.head()?;
    for entry in &trace.entries {
        writer.entry(entry)?;
    }
    writer.to.write_all(b"\n]}\n")?;
    writer.to.flush()
}

struct Writer<'a, W> {
    trace: &'a Trace,
    to: W,
    /// The names of the open slices of each track, because an end repeats the name.
    open: Vec<Vec<&'a str>>,
    is_first: bool,
}

impl<W: Write> Writer<'_, W> {
    fn head(&mut self) -> io::Result<()> {
        let trace = self.trace;
        write!(
            self.to,
            "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"lost\":\"{}\",\"left out\":\"{}\"}},\
             \"traceEvents\":[",
            trace.lost, trace.left_out
        )?;
        self.metadata("process_name", 1, &trace.scheduler)?;
        for (thread, track) in (0..).zip(&trace.tracks) {
            if track.shows == Shows::Thread {
                self.metadata("thread_name", tid(thread), trace.names.text(track.name))?;
            }
        }
        Ok(())
    }

    fn metadata(&mut self, what: &str, thread: u32, name: &str) -> io::Result<()> {
        self.separate()?;
        write!(
            self.to,
            "{{\"ph\":\"M\",\"pid\":1,\"tid\":{thread},\"name\":\"{what}\",\"args\":{{\"name\":"
        )?;
        self.text(name)?;
        self.to.write_all(b"}}")
    }

    fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        let trace = self.trace;
        let track = &trace.tracks[entry.track as usize];
        let is_thread = track.shows == Shows::Thread;
        let open = &mut self.open[entry.track as usize];
        let (phase, name) = match entry.form {
            Form::Begin => {
                let name = trace.names.text(entry.name);
                open.push(name);
                (if is_thread { "B" } else { "b" }, name)
            }
            Form::End => {
                let name = open.pop().unwrap_or_default();
                (if is_thread { "E" } else { "e" }, name)
            }
            Form::Instant => ("i", trace.names.text(entry.name)),
            Form::Value(_) => ("C", trace.names.text(track.name)),
        };
        let category = if is_thread {
            entry.category.text()
        } else {
            "process"
        };
        self.common(phase, entry, category, name)?;
        match entry.form {
            Form::Value(value) => {
                return write!(self.to, ",\"args\":{{\"length\":{value}}}}}");
            }
            Form::Instant => self.to.write_all(b",\"s\":\"t\"")?,
            Form::Begin | Form::End if !is_thread => {
                write!(self.to, ",\"id\":\"{}\"", entry.track)?;
            }
            Form::Begin | Form::End => {}
        }
        self.arguments(trace.arguments(entry))?;
        self.to.write_all(b"}")?;
        let (phase, flow, binding) = match entry.flow {
            Flow::None => return Ok(()),
            Flow::Starts(flow) => ("s", flow, ""),
            Flow::Ends(flow) => ("f", flow, ",\"bp\":\"e\""),
        };
        self.common(phase, entry, "flow", "flow")?;
        write!(self.to, ",\"id\":{flow}{binding}}}")
    }

    /// Writes the part common to all events, without the last brace.
    fn common(&mut self, phase: &str, entry: &Entry, category: &str, name: &str) -> io::Result<()> {
        self.separate()?;
        write!(
            self.to,
            "{{\"ph\":\"{phase}\",\"pid\":1,\"tid\":{},\"ts\":{}.{:03},\"cat\":\"{category}\",\
             \"name\":",
            tid(entry.track),
            entry.at / 1_000,
            entry.at % 1_000
        )?;
        self.text(name)
    }

    fn arguments(&mut self, arguments: &[Argument]) -> io::Result<()> {
        for (place, (key, value)) in arguments.iter().enumerate() {
            let begin = if place == 0 { ",\"args\":{" } else { "," };
            write!(self.to, "{begin}\"{}\":", key.text())?;
            match *value {
                Value::Number(number) => write!(self.to, "{number}")?,
                Value::Text(name) => self.text(self.trace.names.text(name))?,
            }
        }
        if arguments.is_empty() {
            return Ok(());
        }
        self.to.write_all(b"}")
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        Ok(serde_json::to_writer(&mut self.to, text)?)
    }

    fn separate(&mut self) -> io::Result<()> {
        let separator: &[u8] = if self.is_first { b"\n" } else { b",\n" };
        self.is_first = false;
        self.to.write_all(separator)
    }
}

/// Returns the number of a track's thread: 1 is the process itself.
fn tid(track: u32) -> u32 {
    track.saturating_add(2)
}
