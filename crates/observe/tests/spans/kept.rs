//! The spans of a test.

use opentelemetry::trace::{SpanId, Status, TracerProvider as _};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use std::collections::{BTreeSet, HashMap};
use std::sync::OnceLock;
use tracing_subscriber::layer::SubscriberExt as _;

/// Keeps all spans of the program from the first call on.
pub(crate) fn exporter() -> &'static InMemorySpanExporter {
    static EXPORTER: OnceLock<(InMemorySpanExporter, SdkTracerProvider)> = OnceLock::new();
    let (exporter, _provider) = EXPORTER.get_or_init(|| {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder()
            .with_simple_exporter(exporter.clone())
            .build();
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("ganger"));
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::set_global_default(subscriber).unwrap();
        (exporter, provider)
    });
    exporter
}

/// Returns the finished spans of steps of this host, in the order of their ends.
pub(crate) fn of_host(host: &str) -> Vec<SpanData> {
    let begin = format!("{{{host}|");
    let all = exporter().get_finished_spans().unwrap();
    let is_of = |it: &SpanData| field(it, "pid").is_some_and(|pid| pid.starts_with(&begin));
    all.into_iter().filter(is_of).collect()
}

/// Returns the finished span with this name.
pub(crate) fn named(name: &str) -> SpanData {
    let all = exporter().get_finished_spans().unwrap();
    let mut all = all.into_iter().filter(|it| it.name == name);
    all.next().unwrap()
}

pub(crate) fn field(span: &SpanData, name: &str) -> Option<String> {
    let mut fields = span.attributes.iter();
    let field = fields.find(|it| it.key.as_str() == name)?;
    Some(field.value.to_string())
}

pub(crate) fn links(span: &SpanData) -> Vec<SpanId> {
    let links = span.links.iter();
    links.map(|it| it.span_context.span_id()).collect()
}

pub(crate) fn id(span: &SpanData) -> SpanId {
    span.span_context.span_id()
}

pub(crate) fn has_failed(span: &SpanData) -> bool {
    matches!(span.status, Status::Error { .. })
}

/// Returns all spans in reach of `span` by links alone, back in time.
pub(crate) fn behind(span: &SpanData, all: &[SpanData]) -> BTreeSet<[u8; 8]> {
    let by_id: HashMap<_, _> = all.iter().map(|it| (id(it), it)).collect();
    let (mut seen, mut open) = (BTreeSet::new(), vec![id(span)]);
    while let Some(at) = open.pop() {
        if seen.insert(at.to_bytes())
            && let Some(span) = by_id.get(&at)
        {
            open.extend(links(span));
        }
    }
    seen
}
