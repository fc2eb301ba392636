//! The result, to be looked at: a page without anything from outside, the same as Markdown, and
//! charts as files.
//!
//! ```text
//! view                      which peer leads: the figures as the report needs them
//! summary                   how it stands, in sentences and lines
//! html, style.css, markup   the page
//! modes                     in which states of the machine
//! bars, curves, histogram   what is drawn in it
//! markdown                  the same as text
//! charts, raster            the main charts as SVG and PNG
//! ```

mod bars;
mod charts;
mod curves;
mod histogram;
mod html;
mod markdown;
mod markup;
mod modes;
mod raster;
mod summary;
mod view;

pub use charts::{charts, write_charts};
pub use html::html;
pub use markdown::{absent, markdown, platform, table};
pub use summary::standing;
pub use view::{Row, View};

use super::lines::Results;
use super::outputs::{Outputs, write};

/// Writes the page, the text, the figures and the charts.
///
/// # Errors
/// The file that can't be written, and why.
pub fn write_all(results: &Results, outputs: &Outputs) -> Result<(), String> {
    let view = View::of(results);
    write(&outputs.html(), |out| out.write_all(html(&view).as_bytes()))?;
    write(&outputs.markdown(), |out| {
        out.write_all(markdown(&view).as_bytes())
    })?;
    write_charts(&view, &outputs.folder.join("charts"))
}
