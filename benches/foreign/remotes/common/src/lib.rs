//! The common part of this workspace's programs: the command line and the figures, the same as of
//! Ganger's nodes, and the second program.

#[allow(dead_code, reason = "Ganger's nodes use more of it")]
#[path = "../../../../cluster/src/tally.rs"]
mod tally;
#[allow(dead_code, reason = "Ganger's nodes use more of it")]
#[path = "../../../../cluster/src/timed.rs"]
mod timed;

pub use tally::{LAST, Tally, block, percentiles};
pub use timed::{LARGE, Measured, SMALL, execute, round_trips, streams};

use ganger_bench_options::catalog::Id;
use ganger_bench_options::job::{Error, Job};
use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;
use tokio::runtime::Builder;

/// Any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The limit of acts that should end at once.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The name by which the first program finds the receiver of the second.
pub const RECEIVER: &str = "receiver";

const SECOND: &str = "SECOND";

/// The other program of a run, until this is dropped.
#[derive(Debug)]
struct Second {
    child: Child,
    _stdin: Option<ChildStdin>,
    place: String,
}

impl Second {
    /// Starts this program again, with the same arguments, and waits for its [place](tell_place).
    ///
    /// # Errors
    /// The program can't be started, or ends before.
    fn start() -> Result<Self, BoxError> {
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
        match second.place.trim() {
            "" => Err("the second program ends before it listens".into()),
            _ => Ok(second),
        }
    }
}

impl Drop for Second {
    fn drop(&mut self) {
        // The program may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Tells the first program where this program listens, and waits until the first ends.
///
/// # Errors
/// The first program has ended.
pub async fn tell_place(place: &str) -> Result<(), BoxError> {
    println!("{place}");
    tokio::io::stdin().read_to_end(&mut Vec::new()).await?;
    Ok(())
}

/// The receiver of the second program, at the first.
pub trait Remote: Clone + Send + Sync + 'static {
    /// Starts the receiver, and [tells](tell_place) where the second program listens.
    fn serve() -> impl Future<Output = Result<(), BoxError>>;

    /// Finds the receiver of the program at this place.
    fn connect(place: &str) -> impl Future<Output = Result<Self, BoxError>>;

    /// Sends a block, and returns the block that comes back.
    fn ask(&self, block: Vec<u8>) -> impl Future<Output = Result<Vec<u8>, BoxError>> + Send;

    /// Sends blocks of a size, and returns how many came as they should.
    fn stream(&self, count: u64, size: usize)
    -> impl Future<Output = Result<u64, BoxError>> + Send;
}

async fn trips(to: impl Remote, count: u64) -> Result<[u64; 2], BoxError> {
    let mut times = Vec::new();
    for number in 0..count {
        let begin = Instant::now();
        let back = to.ask(block(number, 0, SMALL)).await?;
        times.push(u64::try_from(begin.elapsed().as_nanos())?);
        if back != block(number, 0, SMALL) {
            return Err("another block comes back".into());
        }
    }
    Ok(percentiles(&mut times))
}

/// Runs a job, or serves, as the second program.
///
/// # Errors
/// The job is none of X1 to X3, or fails.
pub fn run<R: Remote>(job: &Job) -> Measured {
    let mut runtime = Builder::new_multi_thread();
    let runtime = runtime.worker_threads(job.workers).enable_all().build()?;
    if env::var_os(SECOND).is_some() {
        return runtime.block_on(R::serve()).map(|()| Vec::new());
    }
    let size = match job.id {
        Id::X1 | Id::X2 => SMALL,
        Id::X3 => LARGE,
        _ => return Err(Error::Missing("this program has X1 to X3".to_owned()).into()),
    };
    let second = Second::start()?;
    let to = runtime.block_on(R::connect(second.place.trim()))?;
    // A task of its own runs on a worker, as the actors do.
    match job.id {
        Id::X1 => round_trips(job, |count| {
            runtime.block_on(runtime.spawn(trips(to.clone(), count)))?
        }),
        _ => streams(job, |count| {
            let to = to.clone();
            runtime.block_on(runtime.spawn(async move { to.stream(count, size).await }))?
        }),
    }
}
