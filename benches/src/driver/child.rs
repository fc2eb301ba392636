//! A run: a process of its own that answers in lines, within a limit.
//!
//! The process leads a process group. So Ctrl-C in the terminal does not reach it, and at the limit
//! all its children end with it. The program stays in this program's session, in which loops of
//! idle priority give way to it (`loops.rs`). While it runs, this thread checks five times a second
//! whether the user wants to stop.

use super::stop::Stop;
use crate::whole::job::MISSING;
use crate::whole::sample::Sample;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// The end of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ending {
    /// The peer has measured.
    Measured(Vec<Sample>),
    /// The peer has no such workload; with its message.
    Missing(String),
    /// The run ended otherwise, or printed a line that is no sample.
    Crashed(String),
    /// The run was ended at its limit.
    TimedOut(Duration),
    /// The run was ended because the user wants to stop.
    Stopped,
}

/// How often to check whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(200);

/// The limit of bytes kept of its standard error: its end.
const KEPT: usize = 2_000;

/// Runs the command and reads its output.
///
/// Blocks until it has ended, at most for the limit.
pub(super) fn run(mut command: Command, limit: Duration, stop: &Stop) -> Ending {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let deadline = Instant::now() + limit;
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let program = command.get_program().to_string_lossy();
            return Ending::Crashed(format!("can't start {program}: {error}"));
        }
    };
    let said = read(child.stdout.take(), usize::MAX);
    let complaint = read(child.stderr.take(), KEPT);
    let mut lines = None;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if lines.is_none() {
            lines = said.recv_timeout(LOOK.min(left)).ok();
        } else if let Ok(Some(status)) = child.try_wait() {
            // A process left behind may hold the pipe open.
            let complaint = complaint.recv_timeout(LOOK).unwrap_or_default();
            return ending(status, &lines.unwrap_or_default(), complaint.trim());
        } else {
            // The child has printed all, and is about to end.
            thread::sleep(Duration::from_millis(2));
        }
        let ended = match stop.is_wanted() {
            true => Ending::Stopped,
            false if left.is_zero() => Ending::TimedOut(limit),
            false => continue,
        };
        kill(&mut child);
        return ended;
    }
}

/// Returns the result of a run, from its exit status and its output.
fn ending(status: ExitStatus, said: &str, complaint: &str) -> Ending {
    let mut lines = said.lines().filter(|line| !line.trim().is_empty());
    let or = |otherwise: &str| match complaint {
        "" => otherwise.to_owned(),
        complaint => complaint.to_owned(),
    };
    if status.code() == Some(MISSING.into()) {
        // Some say why on standard output.
        return Ending::Missing(or(lines.next().unwrap_or("it does not say why")));
    }
    if !status.success() {
        return Ending::Crashed(format!("{status}: {}", or("it said nothing")));
    }
    let sample =
        |line| Sample::parse(line).map_err(|error| format!("`{line}` is no sample: {error}"));
    match lines.map(sample).collect::<Result<Vec<_>, _>>() {
        Ok(samples) if samples.is_empty() => Ending::Crashed("it measured nothing".to_owned()),
        Ok(samples) => Ending::Measured(samples),
        Err(error) => Ending::Crashed(error),
    }
}

/// Reads to the end on a thread of its own, and sends the last bytes.
fn read(from: Option<impl Read + Send + 'static>, most: usize) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let (mut from, mut kept, mut chunk) = (from?, Vec::new(), [0; 4_096]);
        while let Ok(read @ 1..) = from.read(&mut chunk) {
            kept.extend_from_slice(&chunk[..read]);
            kept.drain(..kept.len().saturating_sub(most));
        }
        // The receiver is gone when the time is up.
        sender
            .send(String::from_utf8_lossy(&kept).into_owned())
            .ok()
    });
    receiver
}

/// Ends it with its whole group, unless it has ended already.
fn kill(child: &mut Child) {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Pid, Signal, kill_process_group};
        let _ended = kill_process_group(Pid::from_child(child), Signal::KILL);
    }
    let _ended = child.kill();
    let _ended = child.wait();
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);
    const LINE: &str = "{\"workload\":\"W1\",\"peer\":\"go\",\"variant\":\"time\",\
                        \"unit\":\"ns\",\"n\":10,\"value\":2.5}";

    fn run_within(script: &str, limit: Duration) -> Ending {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(command, limit, &Stop::default())
    }

    #[test]
    fn what_a_run_says_is_its_ending() {
        let measured = run_within(&format!("echo hm >&2; echo '{LINE}'; echo"), LIMIT);
        assert_eq!(
            measured,
            Ending::Measured(vec![Sample::parse(LINE).unwrap()])
        );
        for script in ["echo 'no PIDs' >&2; exit 3", "echo 'no PIDs'; exit 3"] {
            let ending = run_within(script, LIMIT);
            assert_eq!(ending, Ending::Missing("no PIDs".to_owned()));
        }
        for (script, end) in [
            ("echo sum is wrong >&2; exit 1", ": sum is wrong"),
            ("kill -SEGV $$", "it said nothing"),
            ("exit 0", "it measured nothing"),
            (
                "yes words | head -n 100000 >&2; echo last >&2; exit 1",
                "last",
            ),
        ] {
            let Ending::Crashed(why) = run_within(script, LIMIT) else {
                panic!("{script}");
            };
            assert!(why.ends_with(end) && why.len() < KEPT + 100, "{why}");
        }
        let Ending::Crashed(why) = run_within("echo nonsense", LIMIT) else {
            panic!("nonsense is no sample");
        };
        assert!(why.starts_with("`nonsense` is no sample: "), "{why}");
    }

    #[test]
    fn at_the_limit_it_ends_with_all_that_it_has_started() {
        let limit = Duration::from_millis(300);
        // In the first script an inner process keeps the pipe open. In the second the process
        // closes its output, and goes on.
        for script in ["sleep 600 & wait", "exec >&-; exec sleep 600"] {
            assert_eq!(run_within(script, limit), Ending::TimedOut(limit));
        }
        let stop = Stop::default();
        stop.now();
        let mut command = Command::new("sleep");
        command.arg("600");
        assert_eq!(run(command, LIMIT, &stop), Ending::Stopped);
    }
}
