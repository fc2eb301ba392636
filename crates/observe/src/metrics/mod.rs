//! Metrics of a scheduler, for the stores and alarms of operators.
//!
//! **Problem.** A metric whose recording takes a lock, or a look at a table of labels, slows the
//! path that it measures. A metric with a PID as a label floods its store.
//!
//! **Protocol.** The scheduler counts in its own way. A reader takes all values at once (`read`)
//! when they are asked for. A scrape of the endpoint writes them as Prometheus' text (`text`). A
//! publisher tells them to the `metrics` facade once a period (`publish`). The names are in one
//! table (`table`), and the number of types with labels is bounded (`types`).

#[cfg(feature = "metrics")]
mod publish;
mod read;
mod table;
#[cfg(feature = "serve")]
mod text;
mod types;

#[cfg(feature = "metrics")]
pub use publish::{Metrics, Publishing, publish};
#[cfg(feature = "serve")]
pub(crate) use {
    read::Families,
    text::{TEXT, text},
};
