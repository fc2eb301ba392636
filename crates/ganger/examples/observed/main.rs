//! A living program to look into: a shop with a supervision tree, a pool, timers and sockets, and
//! four faults on demand. `cargo run --release --example observed --features observe` prints the
//! page to open, and some things to try. `-- --help` lists all options.

mod faults;
mod options;
mod shop;

pub(crate) use faults::Fault;
use faults::Faults;
use ganger::lock::{DeadlockWatch, Watch};
use ganger::observe::{AlarmWatch, Alarms, Endpoint, keep_letters, serve};
use ganger::prelude::*;
use ganger::supervise::TreeHandle;
use ganger::{Observe, Recorder, net::Net};
pub(crate) use options::Options;
use std::io::{IsTerminal as _, stdin};
use std::sync::Arc;
use std::time::Duration;

/// The parts to keep until the end of `main`.
pub(crate) struct Observed {
    pub(crate) scheduler: Scheduler,
    /// Keeps the tree.
    #[allow(dead_code, reason = "its drop stops the shop")]
    pub(crate) tree: TreeHandle,
    pub(crate) faults: Arc<Faults>,
    pub(crate) endpoint: Endpoint,
    /// Knows of waits from their begin on.
    #[allow(dead_code, reason = "its drop ends the watch")]
    watch: Watch,
    #[allow(dead_code, reason = "its drop ends the alarms")]
    alarms: AlarmWatch,
}

/// Builds the scheduler, opens the shop, and starts the endpoint.
pub(crate) fn start(options: &Options) -> Result<Observed, BoxError> {
    let scheduler = build(options)?;
    let watch = DeadlockWatch::new(Duration::from_secs(1)).on_report(|report| println!("{report}"));
    let watch = watch.start(&scheduler)?;
    let alarms = Alarms::new().deadlocks().watch(&scheduler)?;
    let mut endpoint = serve(&*options.listen).scheduler(&scheduler);
    if let Some(token) = &options.token {
        endpoint = endpoint.token(token).allow_actions();
    }
    let endpoint = endpoint
        .start()
        .map_err(|error| format!("{}: {error}", options.listen))?;
    let tree = shop::tree(options.sessions, options.busy).start(&scheduler)?;
    let faults = Arc::new(Faults::new(&scheduler, &tree));
    if let Some(fault) = options.fault {
        faults.begin(fault)?;
    }
    if let Some(time) = options.time {
        let handle = scheduler.handle();
        let clock = async move |cx: Cx| {
            cx.sleep(time).await?;
            handle.begin_stop(Duration::from_secs(5));
            Ok(())
        };
        scheduler.named("closing time").spawn(clock)?;
    }
    Ok(Observed {
        scheduler,
        tree,
        faults,
        endpoint,
        watch,
        alarms,
    })
}

/// Builds a scheduler that counts, measures and records, keeps dead letters and has sockets.
fn build(options: &Options) -> Result<Scheduler, BoxError> {
    let mut builder = keep_letters(Scheduler::builder())
        .host("shop")
        .observe(Observe::Histograms)
        .record(Recorder::new())
        .driver(Net::new()?)
        .quiet_failures();
    if options.token.is_some() {
        builder = builder.allow_interventions();
    }
    if let Some(workers) = options.workers {
        builder = builder.workers(workers);
    }
    #[cfg(all(feature = "backtraces", target_os = "linux"))]
    {
        builder = builder.long_step_backtraces(true);
    }
    #[cfg(all(feature = "profile", target_os = "linux"))]
    {
        builder = builder.profiles(true);
    }
    Ok(builder.start()?)
}

fn main() -> Result<(), BoxError> {
    let Some(options) = Options::parse(std::env::args().skip(1))? else {
        print!("{}", options::HELP);
        return Ok(());
    };
    let observed = start(&options)?;
    let address = observed.endpoint.address();
    println!("The shop is open. Look into it at http://{address}/\n");
    println!("{}", faults::HELP);
    if stdin().is_terminal() {
        println!("  quit      ends the program, as Ctrl-C does");
    }
    let (faults, handle) = (Arc::clone(&observed.faults), observed.scheduler.handle());
    // The end of the input leaves the shop open.
    std::thread::spawn(move || {
        for line in stdin().lines().map_while(Result::ok) {
            match line.trim() {
                "" => {}
                "quit" => handle.begin_stop(Duration::from_secs(5)),
                word => match faults.obey(word) {
                    Ok(done) => println!("{done}"),
                    Err(error) => println!("{error}"),
                },
            }
        }
    });
    let report = observed
        .scheduler
        .run_until_interrupted(Duration::from_secs(5))?;
    println!("the shop is closed: {report}");
    Ok(())
}

impl Faults {
    /// Carries out a line of the input. Returns where to look.
    pub(crate) fn obey(&self, line: &str) -> Result<&'static str, BoxError> {
        if line == "calm" {
            self.calm()?;
            return Ok("the faults have ended");
        }
        let fault: Fault = line.parse()?;
        self.begin(fault)?;
        Ok(fault.where_to_look())
    }
}
