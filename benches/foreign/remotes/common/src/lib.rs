//! What the programs of this workspace have in common: their command line and figures, which are
//! those of Ganger's nodes, and the second program.

#[allow(dead_code, reason = "Ganger's nodes use more of it")]
#[path = "../../../../cluster/src/tally.rs"]
mod tally;
#[allow(dead_code, reason = "Ganger's nodes use more of it")]
#[path = "../../../../cluster/src/timed.rs"]
mod timed;

pub use tally::{LAST, Tally, block, percentiles};
pub use timed::{LARGE, Measured, SMALL, execute, round_trips, streams};

use ganger_bench_options::job::Job;
use std::env;
use std::io::{self, BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::runtime::{Builder, Runtime};

/// Any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How long anything may take that takes no time.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The name by which the first program finds the receiver of the second.
pub const RECEIVER: &str = "receiver";

const SECOND: &str = "SECOND";

/// The other program of a run, until this is dropped.
#[derive(Debug)]
pub struct Second {
    child: Child,
    _stdin: Option<ChildStdin>,
    place: String,
}

impl Second {
    /// Starts this program again, with the same arguments, and waits for its [place](tell_place).
    ///
    /// # Errors
    /// The program can't be started, or ends before.
    pub fn start() -> Result<Self, BoxError> {
        let mut command = Command::new(env::current_exe()?);
        command.args(env::args_os().skip(1)).env(SECOND, "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().ok_or("the program has no output")?;
        let mut second = Self {
            child,
            _stdin: stdin,
            place: String::new(),
        };
        BufReader::new(stdout).read_line(&mut second.place)?;
        match second.place() {
            "" => Err("the second program ends before it listens".into()),
            _ => Ok(second),
        }
    }

    /// Where it listens.
    #[must_use]
    pub fn place(&self) -> &str {
        self.place.trim()
    }
}

impl Drop for Second {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether this is the second program.
#[must_use]
pub fn is_second() -> bool {
    env::var_os(SECOND).is_some()
}

/// Tells the first program where this one listens, and waits until the first ends.
///
/// # Errors
/// The first program has ended.
pub async fn tell_place(place: &str) -> Result<(), BoxError> {
    println!("{place}");
    tokio::io::stdin().read_to_end(&mut Vec::new()).await?;
    Ok(())
}

/// A runtime with as many workers as the job says.
///
/// # Errors
/// The system refuses a thread.
pub fn runtime(job: &Job) -> io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(job.workers)
        .enable_all()
        .build()
}
