//! Spans of steps, as OpenTelemetry's exporter has them.

mod chosen;
mod kept;
mod request;
mod simulated;
