//! The head: five lines about the scheduler.

use super::theme::Theme;
use crate::app::{App, Link};
use crate::measure::{Pulse, Quantiles, Rates};
use crate::text::{self, count, percent, rate, time};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// The lines of the head.
pub(super) const HEIGHT: u16 = 5;

/// The most workers with a number each.
const WORKERS: usize = 12;

/// Names and values, as spans.
struct Words {
    spans: Vec<Span<'static>>,
    theme: Theme,
}

impl Words {
    fn new(theme: Theme) -> Self {
        let spans = Vec::new();
        Self { spans, theme }
    }

    fn add(&mut self, text: impl AsRef<str>, style: Style) {
        let text = text::clean(text.as_ref()).into_owned();
        self.spans.push(Span::styled(text, style));
    }

    /// Adds a name and its value.
    fn pair(&mut self, name: &str, value: impl AsRef<str>) {
        self.pair_in(name, value, self.theme.strong());
    }

    fn pair_in(&mut self, name: &str, value: impl AsRef<str>, style: Style) {
        let gap = if self.spans.is_empty() { "" } else { "  " };
        self.add(format!("{gap}{name} "), Style::new());
        self.add(value, style);
    }

    fn line(self) -> Line<'static> {
        Line::from(self.spans)
    }
}

pub(super) fn lines(app: &App, theme: Theme) -> Vec<Line<'static>> {
    let mut lines = vec![title(app, theme)];
    if let Some(pulse) = &app.pulse {
        lines.push(threads(pulse, theme));
        lines.push(rates(app, pulse, theme));
        lines.push(times(pulse, theme));
        lines.push(troubles(app, pulse, theme));
    } else if app.link == Link::Here {
        lines.push(Line::raw("The program shows no scheduler."));
    }
    lines
}

fn title(app: &App, theme: Theme) -> Line<'static> {
    let mut words = Words::new(theme);
    words.pair("ganger-top", &app.name);
    if app.is_paused {
        words.add("  PAUSED", theme.warning());
    }
    match &app.link {
        Link::Waiting => words.add("  asks …", theme.dim()),
        Link::Here => {}
        Link::Lost { since, again, .. } => {
            let ago = text::duration(app.now().saturating_sub(*since));
            let left = again.saturating_sub(app.now()).as_secs();
            words.add(
                format!("  NO ANSWER for {ago}, asks again in {left} s"),
                theme.bad(),
            );
        }
    }
    if let Some(pulse) = &app.pulse {
        words.pair("scheduler", &pulse.host);
        let all = app.schedulers();
        if let Some(place) = all.iter().position(|it| it.number == pulse.number)
            && all.len() > 1
        {
            words.add(format!(" ({} of {})", place + 1, all.len()), theme.dim());
        }
        if let Some(node) = &pulse.node {
            words.pair("node", node);
        }
        words.pair("up", time(pulse.uptime_ns));
        match (pulse.is_started, pulse.is_stopping) {
            (_, true) => words.add("  stopping", theme.warning()),
            (false, _) => words.add("  not started", theme.warning()),
            _ => {}
        }
    }
    words.line()
}

fn threads(pulse: &Pulse, theme: Theme) -> Line<'static> {
    let mut words = Words::new(theme);
    words.pair("workers", pulse.workers.to_string());
    let style = |share: f64| match share {
        0.9.. => theme.bad(),
        0.7.. => theme.warning(),
        _ => theme.good(),
    };
    if pulse.busy.is_empty() {
        words.pair_in("busy", "not counted", theme.dim());
    } else {
        let mean = pulse.busy.iter().sum::<f64>() / pulse.busy.len() as f64;
        words.pair_in("busy", format!("{}%", percent(mean)), style(mean));
        words.add(" (", theme.dim());
        for (place, share) in pulse.busy.iter().take(WORKERS).enumerate() {
            let gap = if place == 0 { "" } else { " " };
            words.add(format!("{gap}{}", percent(*share)), style(*share));
        }
        let more = if pulse.busy.len() > WORKERS {
            " …)"
        } else {
            ")"
        };
        words.add(more, theme.dim());
    }
    words.pair("asleep", pulse.sleeping.to_string());
    words.pair("searching", pulse.searching.to_string());
    words.pair("spares", pulse.spares.to_string());
    if pulse.relieved > 0 {
        words.pair_in("stuck", pulse.relieved.to_string(), theme.warning());
    }
    words.line()
}

fn rates(app: &App, pulse: &Pulse, theme: Theme) -> Line<'static> {
    let mut words = Words::new(theme);
    let counted = pulse.rates.as_ref().and_then(|it| it.messages);
    // An older program does not say: the listed processes do, as far as they are listed.
    let listed = || {
        let (number, is_all) = app.rows.messages()?;
        let sign = if is_all { "" } else { "≥ " };
        Some(format!("{sign}{}", rate(number)))
    };
    let messages = counted.map(rate).or_else(listed);
    words.pair("live", count(pulse.live));
    words.pair("ready", count(pulse.ready_now));
    words.pair("steps", each(pulse, |it| it.steps));
    words.pair(
        "messages",
        format!("{}/s", messages.as_deref().unwrap_or("-")),
    );
    words.pair("timers", each(pulse, |it| it.timers));
    words.add(
        format!(" ({} wait)", count(pulse.timers_pending)),
        theme.dim(),
    );
    words.line()
}

/// Formats a rate, or a dash before the second snapshot.
fn each(pulse: &Pulse, of: fn(&Rates) -> f64) -> String {
    let text = pulse.rates.as_ref().map(|it| rate(of(it)));
    format!("{}/s", text.as_deref().unwrap_or("-"))
}

fn times(pulse: &Pulse, theme: Theme) -> Line<'static> {
    let mut words = Words::new(theme);
    let quantiles = |it: Option<Quantiles>| match it {
        Some(it) => format!("p50 {} p99 {}", time(it.p50_ns), time(it.p99_ns)),
        None => "-".to_owned(),
    };
    words.pair("ready to run", quantiles(pulse.ready));
    words.pair("step", quantiles(pulse.step));
    words.pair("starts", each(pulse, |it| it.started));
    words.line()
}

fn troubles(app: &App, pulse: &Pulse, theme: Theme) -> Line<'static> {
    let mut words = Words::new(theme);
    let style = |is_trouble: bool, style: Style| if is_trouble { style } else { theme.strong() };
    let alarm = match pulse.severe_count {
        0 => style(pulse.alarm_count > 0, theme.warning()),
        _ => theme.bad(),
    };
    words.pair_in("alarms", pulse.alarm_count.to_string(), alarm);
    let cycles = app.cycles.map_or("-".to_owned(), |it| it.to_string());
    let has_cycles = app.cycles.is_some_and(|it| it > 0);
    words.pair_in("cycles", cycles, style(has_cycles, theme.bad()));
    if let Some(rates) = &pulse.rates {
        let failed = style(rates.failed > 0.0, theme.warning());
        words.pair_in("failures", format!("{}/s", rate(rates.failed)), failed);
        let letters = style(rates.letters > 0.0, theme.warning());
        words.pair_in(
            "dead letters",
            format!("{}/s", rate(rates.letters)),
            letters,
        );
    }
    words.pair("long steps", count(pulse.long_step_count));
    if pulse.longest_step_ns > 0 {
        words.add(
            format!(" (max {})", time(pulse.longest_step_ns)),
            theme.dim(),
        );
    }
    words.line()
}
