//! The terminal: keys in, screens out, until a person quits.

use crate::app::{self, App, Deed, Wanted};
use crate::draw::{self, Theme};
use crate::fault::Fault;
use crate::feed::{Feed, News};
use crate::save;
use crate::source::Source;
use crate::text;
use ganger_observe::api::{Acted, Filter};
use ratatui::crossterm::event::{self, Event};
use ratatui::{DefaultTerminal, Frame};
use std::io::{self, IsTerminal as _};
use std::panic;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// The longest time between two drawings: times go on, and ended processes disappear.
const REDRAW: Duration = Duration::from_millis(500);

/// The time of a trace.
const TRACE: Duration = Duration::from_secs(5);

/// A cause to draw again.
enum Message {
    Event(Event),
    News(News),
    Saved(Result<(PathBuf, u64), Fault>),
    Acted(Wanted, Result<Acted, Fault>),
    /// A panic of a thread.
    Panicked(String),
    /// A signal, or the end of the input.
    Quit,
}

impl From<News> for Message {
    fn from(news: News) -> Self {
        Self::News(news)
    }
}

/// Restores the terminal at the end. At a panic the hook has done so, before the print.
struct Restored;

impl Drop for Restored {
    fn drop(&mut self) {
        if !thread::panicking() {
            ratatui::restore();
        }
    }
}

/// Shows a source on the terminal, until a person quits or the process is asked to end.
///
/// # Errors
/// If the output is no terminal, or the terminal fails.
pub fn run(source: Arc<dyn Source>, every: Duration, filter: Filter) -> io::Result<()> {
    if !io::stdout().is_terminal() {
        let what = "the output is not a terminal: use --once, or --once --json";
        return Err(io::Error::other(what));
    }
    let (tell, told) = mpsc::channel();
    let quit = tell.clone();
    // Without the handler, a signal leaves the terminal as it is.
    let handled = ctrlc::set_handler(move || drop(quit.send(Message::Quit)));
    handled.map_err(io::Error::other)?;
    let terminal = ratatui::try_init()?;
    let restored = Restored;
    hook_panics(tell.clone());
    let keys = tell.clone();
    thread::Builder::new()
        .name("keys".to_owned())
        .spawn(move || read_keys(&keys))?;
    let feed = Feed::start(&source, every, &tell)?;
    let mut app = App::new(source.name());
    app.filter = filter;
    let ended = show(terminal, &mut app, &feed, &told, &source, &tell);
    drop(restored);
    ended
}

/// Prints a panic of this thread on a restored terminal. A panic of another thread is told to this
/// thread, which would draw over the print.
fn hook_panics(tell: Sender<Message>) {
    let screen = thread::current().id();
    let restore_and_print = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if thread::current().id() == screen {
            restore_and_print(info);
        } else {
            let text = info.to_string();
            let lines: Vec<_> = text.lines().map(str::trim).collect();
            // The screen may have gone.
            let _ = tell.send(Message::Panicked(lines.join(" ")));
        }
    }));
}

/// Reads events until the screen has gone.
fn read_keys(tell: &Sender<Message>) {
    loop {
        let message = match event::read() {
            Ok(event) => Message::Event(event),
            Err(_) => Message::Quit,
        };
        let is_end = matches!(message, Message::Quit);
        if tell.send(message).is_err() || is_end {
            return;
        }
    }
}

fn show(
    mut terminal: DefaultTerminal,
    app: &mut App,
    feed: &Feed,
    told: &Receiver<Message>,
    source: &Arc<dyn Source>,
    tell: &Sender<Message>,
) -> io::Result<()> {
    let start = Instant::now();
    let theme = Theme::of_environment();
    let mut is_saving = false;
    loop {
        app.tick(start.elapsed());
        feed.wish(app.wish(), app.is_paused);
        terminal.draw(|frame: &mut Frame<'_>| {
            let area = frame.area();
            draw::screen(app, theme, area, frame.buffer_mut());
        })?;
        let first = match told.recv_timeout(REDRAW) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        app.tick(start.elapsed());
        // A burst of messages is drawn once.
        for message in std::iter::once(first).chain(told.try_iter().take(256)) {
            match message {
                Message::Quit => return Ok(()),
                Message::Panicked(what) => {
                    let what = format!("a thread has {what}: report it");
                    return Err(io::Error::other(what));
                }
                Message::News(news) => app.take(news),
                Message::Saved(saved) => {
                    is_saving = false;
                    app.say(save::sentence(&saved));
                }
                Message::Acted(wanted, acted) => app.say(app::sentence(&wanted, &acted)),
                Message::Event(Event::Key(key)) => match app.key(key) {
                    Deed::Quit => return Ok(()),
                    Deed::Trace if !is_saving => {
                        is_saving = true;
                        let time = text::duration(TRACE);
                        app.say(format!("asks for a trace of the last {time} …"));
                        save(app, source, tell)?;
                    }
                    Deed::Act(wanted) => act(wanted, source, tell)?,
                    Deed::Trace | Deed::None => {}
                },
                Message::Event(_) => {}
            }
        }
    }
}

/// Asks for an action, on a thread of its own.
fn act(wanted: Wanted, source: &Arc<dyn Source>, tell: &Sender<Message>) -> io::Result<()> {
    let (source, tell) = (Arc::clone(source), tell.clone());
    let body = move || {
        let (scheduler, pid) = &wanted.process;
        let acted = source.act(wanted.action, *scheduler, pid);
        // The screen may have gone.
        let _ = tell.send(Message::Acted(wanted, acted));
    };
    thread::Builder::new()
        .name("action".to_owned())
        .spawn(body)?;
    Ok(())
}

/// Saves a trace, on a thread of its own.
fn save(app: &App, source: &Arc<dyn Source>, tell: &Sender<Message>) -> io::Result<()> {
    let (source, tell) = (Arc::clone(source), tell.clone());
    let host = app.pulse.as_ref().map_or("trace", |it| &it.host).to_owned();
    let body = move || {
        let saved = save::trace(&*source, TRACE, &host, ".".as_ref());
        // The screen may have gone.
        let _ = tell.send(Message::Saved(saved));
    };
    thread::Builder::new()
        .name("trace".to_owned())
        .spawn(body)?;
    Ok(())
}
