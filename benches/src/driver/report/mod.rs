//! The result as Markdown, and charts as files for the project's documents.
//!
//! ```text
//! view                      which peer leads: the figures as the report needs them
//! summary                   how it stands, in sentences and lines
//! modes                     in which states of the machine
//! markdown                  the report
//! charts                    the main charts as SVG
//! ```

mod charts;
mod markdown;
mod modes;
mod summary;
mod view;

pub use charts::{charts, write_charts};
pub use markdown::{absent, leads, markdown, platform, table};
pub use summary::standing;
pub use view::{Row, View};

use super::lines::Results;
use super::outputs::{Outputs, write};

/// Writes the report.
///
/// # Errors
/// The file that can't be written, and why.
pub fn write_report(results: &Results, outputs: &Outputs) -> Result<(), String> {
    let view = View::of(results);
    write(&outputs.markdown(), |out| {
        out.write_all(markdown(&view).as_bytes())
    })
}
