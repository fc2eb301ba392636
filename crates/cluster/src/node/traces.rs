//! The contexts of traces between nodes.
//!
//! **Protocol.** The sender's thread asks for the context of its present span. The context follows
//! the values of a message, an answer, a start or a call of a function. The receiver delivers
//! inside of a span that continues the context, so that the span is a cause of all that follows.

use crate::wire::{ReadError, Reader};
use bytes::Bytes;
use ganger_sync::contain;
use tracing::Span;

/// The longest context.
pub(crate) const MAX_CONTEXT: usize = 512;

/// How the present trace goes on at another node: see
/// [`Builder::trace_context`](crate::Builder::trace_context).
///
/// With OpenTelemetry both methods are a call of its propagator, and the context is a
/// `traceparent`. The methods must not block; a panic counts as no context.
pub trait TraceContext: Send + Sync + 'static {
    /// Returns the context of the present span, at most 512 bytes; a longer one stays. Called on
    /// the sender's thread, for each message to another node.
    fn current(&self) -> Option<Vec<u8>>;

    /// Makes a span that continues the context of another node. The node delivers the other's
    /// message inside of the span.
    fn resume(&self, context: &[u8]) -> Span;
}

/// Returns the context of this thread's span; empty without one.
pub(crate) fn current(traces: Option<&dyn TraceContext>) -> Vec<u8> {
    let Some(traces) = traces else {
        return Vec::new();
    };
    let context = contain(|| traces.current()).flatten();
    context
        .filter(|it| it.len() <= MAX_CONTEXT)
        .unwrap_or_default()
}

/// Reads the context behind the values, if any.
pub(crate) fn read(reader: &mut Reader) -> Result<Option<Bytes>, ReadError> {
    if reader.is_empty() {
        return Ok(None);
    }
    let context = reader.bytes()?;
    let is_bounded = context.len() <= MAX_CONTEXT;
    is_bounded.then_some(Some(context)).ok_or(ReadError::Short)
}

/// Calls `f` inside of a span that continues the context.
pub(crate) fn within<R>(
    traces: Option<&dyn TraceContext>,
    context: Option<Bytes>,
    f: impl FnOnce() -> R,
) -> R {
    let span = traces
        .zip(context)
        .and_then(|(traces, context)| contain(|| traces.resume(&context)));
    match span {
        Some(span) => span.in_scope(f),
        None => f(),
    }
}
