//! The log of nodes that refuse each other.

use super::play::sim;
use ganger_cluster::{Cluster, Twin};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// The warnings of the cluster.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "ganger::cluster" && *metadata.level() == Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        struct Text(String);
        impl Visit for Text {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                if field.name() == "message" {
                    self.0 = format!("{value:?}");
                }
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Runs two nodes that refuse each other, and ask again and again.
// pins: B7
#[test]
fn a_refusal_is_logged_at_both_sides_and_once_in_a_while() {
    let warnings = Warnings::default();
    let log = warnings.clone();
    tracing::subscriber::with_default(warnings, || {
        sim().run_world(|world| {
            let twin = Twin::new(0);
            world.carrier(twin.clone());
            for (name, other) in [("alpha", "beta"), ("beta", "alpha")] {
                let twin = twin.clone();
                world.start(name, move |machine| {
                    let builder = Cluster::builder().cookie(name).engine(twin.port());
                    builder.peers([other]).join(machine).unwrap();
                });
            }
            world.run_for(Duration::from_secs(60));
        });
    });
    let lines = log.0.lock().unwrap();
    assert!(lines.iter().all(|it| it.contains("proof is wrong")));
    assert!((2..=14).contains(&lines.len()), "{lines:?}");
}
