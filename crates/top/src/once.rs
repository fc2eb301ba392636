//! A single look, for scripts and logs.

use crate::app::App;
use crate::draw::{self, Theme};
use crate::fault::Fault;
use crate::feed::{Answer, News, Wish};
use crate::measure::Pulse;
use crate::source::Source;
use crate::text;
use ganger_observe::api::{By, Filter, Processes, ProcessesQuery, Snapshot};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde::Serialize;
use std::fmt::Write as _;
use std::thread;
use std::time::{Duration, Instant};

/// The questions of a look.
#[derive(Debug, Clone)]
pub struct Once {
    /// The time between two snapshots, for rates.
    pub every: Duration,
    /// The number of processes.
    pub top: u32,
    /// The choice of processes.
    pub filter: Filter,
    /// The columns of the text.
    pub width: u16,
}

impl Default for Once {
    fn default() -> Self {
        Self {
            every: Duration::from_secs(1),
            top: 20,
            filter: Filter::default(),
            width: 160,
        }
    }
}

/// The most processes of an answer of the API.
const MOST: u32 = 1_000;

impl Once {
    /// Returns the window of the API: from a millisecond to a minute.
    fn window(&self) -> Duration {
        let millis = self.every.as_millis().clamp(1, 60_000);
        Duration::from_millis(u64::try_from(millis).unwrap_or(60_000))
    }
}

/// The document of `--once --json`.
#[derive(Serialize)]
struct Document<'a> {
    /// The version of the API.
    version: u32,
    /// The schedulers with their rates.
    rates: Vec<Pulse>,
    snapshot: &'a Snapshot,
    processes: &'a Processes,
}

/// Looks twice, and returns a text.
///
/// Blocks for `every`, and until the answers are there.
///
/// ```
/// use ganger_top::{Demo, Once, once};
/// use std::time::{Duration, Instant};
///
/// let look = Once { every: Duration::from_millis(1), ..Once::default() };
/// let text = once(&Demo::new(), &look)?;
/// assert!(text.contains("scheduler shop") && text.contains("mailer Mailer"));
/// # Ok::<(), ganger_top::Fault>(())
/// ```
///
/// # Errors
/// [`Fault`], as the source has it.
pub fn once(source: &dyn Source, look: &Once) -> Result<String, Fault> {
    let mut app = App::new(source.name());
    app.filter = look.filter.clone();
    app.leave_window();
    app.take(News::Snapshot(source.snapshot()?));
    let Wish::Processes(mut query) = app.wish() else {
        return Ok(String::new());
    };
    query.top = MOST;
    take(&mut app, source.processes(&query)?);
    if app.rows.matched > MOST.into() && app.sort.has_window() {
        // The busiest of many may be others at each look.
        query.window = Some(look.window());
    } else {
        thread::sleep(look.every);
    }
    let processes = source.processes(&query)?;
    app.take(News::Snapshot(source.snapshot()?));
    take(&mut app, processes);
    let cycles = source.waits().ok().map(|it| it.cycles.len());
    app.take(News::Cycles(cycles));
    let rows = app.rows.all().len().min(look.top as usize);
    let height = u16::try_from(rows).unwrap_or(u16::MAX);
    Ok(print(&mut app, look.width, height.saturating_add(1)))
}

fn take(app: &mut App, processes: Processes) {
    let answer = Answer::Processes(processes, Vec::new());
    app.take(News::Answer(app.wish(), answer));
}

/// Prints the head, the title and the list as lines of text.
fn print(app: &mut App, width: u16, height: u16) -> String {
    let theme = Theme::new(false);
    let mut text = String::new();
    let mut head = draw::head(app, theme);
    head.push(draw::title(app, theme));
    for line in head {
        let _ = writeln!(text, "{}", line.to_string().trim_end());
    }
    let area = Rect::new(0, 0, width.max(40), height);
    let mut buffer = Buffer::empty(area);
    draw::view(app, theme, area, &mut buffer);
    for y in 0..area.height {
        let symbols = (0..area.width).map(|x| buffer[(x, y)].symbol());
        let _ = writeln!(text, "{}", symbols.collect::<String>().trim_end());
    }
    text
}

/// Looks twice, and returns a JSON document: `version` of the API, `rates` of each scheduler, and
/// the answers `snapshot` and `processes` of the API. The processes are the busiest within `every`,
/// where they are counted, and otherwise those with most messages. A terminal can print the text.
///
/// Blocks for `every`, and until the answers are there.
///
/// # Errors
/// [`Fault`], as the source has it.
pub fn once_json(source: &dyn Source, look: &Once) -> Result<String, Fault> {
    let start = Instant::now();
    let before = source.snapshot()?;
    let mut query = ProcessesQuery::default();
    query.top = look.top;
    query.filter = look.filter.clone();
    if before.schedulers.iter().any(|it| it.observes != "off") {
        query.by = By::Busy;
        query.window = Some(look.window());
    }
    let processes = source.processes(&query)?;
    thread::sleep(look.every.saturating_sub(start.elapsed()));
    let snapshot = source.snapshot()?;
    let rates = snapshot.schedulers.iter().map(|now| {
        let mut old = before.schedulers.iter();
        Pulse::of(now, old.find(|it| it.number == now.number))
    });
    let document = Document {
        version: snapshot.version,
        rates: rates.collect(),
        snapshot: &snapshot,
        processes: &processes,
    };
    let json =
        serde_json::to_string_pretty(&document).map_err(ganger_observe::api::ReadError::from)?;
    Ok(escaped(&json))
}

/// Returns the JSON with escapes for control characters, inside of its texts.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c != '\n' && text::is_unsafe(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(c);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_its_meaning_and_loses_what_terminals_obey() {
        let hostile = "a\u{1b}[2J\u{9b}1m\u{202e}\u{e0041}\n\"\\ü";
        let json = serde_json::to_string_pretty(&[hostile]).unwrap();
        let text = escaped(&json);
        assert!(
            !text.chars().any(|c| c != '\n' && text::is_unsafe(c)),
            "{text}"
        );
        assert_eq!(
            serde_json::from_str::<[String; 1]>(&text).unwrap(),
            [hostile]
        );
    }
}
