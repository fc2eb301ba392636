//! A live view of a running Ganger program, in the terminal; `--help` tells more.

use clap::Parser as _;
use ganger_observe::trace::Trace;
use ganger_top::{Demo, Once, Options, Remote, Source, once, once_json, run, text};
use std::error::Error;
use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    match shown(Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", text::clean(&error.to_string()));
            ExitCode::FAILURE
        }
    }
}

fn shown(options: Options) -> Result<(), Box<dyn Error>> {
    options.check()?;
    if let Some(path) = &options.file {
        let file = File::open(path).map_err(|it| format!("{}: {it}", path.display()))?;
        let summary = Trace::read(file)?.summary().to_string();
        let lines = summary.lines().map(text::clean);
        return print(&Vec::from_iter(lines).join("\n"));
    }
    let source: Arc<dyn Source> = match options.demo {
        true => Arc::new(Demo::new()),
        false => Arc::new(Remote::new(options.address, options.token)?),
    };
    if !options.once {
        return Ok(run(source, options.every, options.filter)?);
    }
    let mut look = Once {
        every: options.every,
        filter: options.filter,
        ..Once::default()
    };
    look.top = options.top.unwrap_or(look.top);
    if io::stdout().is_terminal()
        && let Ok((width, _)) = ratatui::crossterm::terminal::size()
    {
        look.width = width;
    }
    print(&match options.json {
        true => once_json(&*source, &look)?,
        false => once(&*source, &look)?,
    })
}

/// Prints a text with an end of line. A reader with enough is no failure.
fn print(text: &str) -> Result<(), Box<dyn Error>> {
    match writeln!(io::stdout(), "{}", text.trim_end()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}
