//! A `tracing` subscriber made of a closure.

use std::fmt;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Creates a subscriber that calls `call` with each event of the scheduler of this level, or a more
/// urgent level.
pub(crate) fn on_event(
    level: Level,
    call: impl Fn(&Event<'_>) + Send + Sync + 'static,
) -> impl Subscriber + Send + Sync {
    OnEvent(level, call)
}

/// Returns an event as text: its level, and all fields with their names.
pub(crate) fn text_of(event: &Event<'_>) -> String {
    let mut text = Text(event.metadata().level().to_string());
    event.record(&mut text);
    text.0
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0 += &format!(" {field}={value:?};");
    }
}

struct OnEvent<F>(Level, F);

impl<F: Fn(&Event<'_>) + Send + Sync + 'static> Subscriber for OnEvent<F> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("ganger::") && *metadata.level() <= self.0
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        (self.1)(event);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
