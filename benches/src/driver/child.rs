//! A run: a process of its own that answers in lines, within a limit.
//!
//! The process leads a process group. So Ctrl-C in the terminal does not reach it, and at the limit
//! all its children end with it. It stays in this program's session, in which loops of idle
//! priority give way to it (`loops.rs`). While it runs, this thread checks five times a second
//! whether the user wants to stop.

use super::stop::Stop;
use crate::whole::job::MISSING;
use crate::whole::sample::Sample;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// The end of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ending {
    /// It measured.
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
    own_group(&mut command);
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let start = Instant::now();
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let program = command.get_program().to_string_lossy();
            return Ending::Crashed(format!("can't start {program}: {error}"));
        }
    };
    let lines = read_lines(&mut child);
    let complaint = read_end(&mut child);
    let ended = wait(&mut child, &lines, start + limit, stop);
    match ended {
        Err(Ended::TimedOut) => Ending::TimedOut(limit),
        Err(Ended::Stopped) => Ending::Stopped,
        Err(Ended::Failed(error)) => Ending::Crashed(error),
        Ok((status, lines)) => {
            // A process left behind may hold the pipe open.
            let complaint = complaint.recv_timeout(LOOK).unwrap_or_default();
            ending(status, &lines, complaint.trim())
        }
    }
}

/// Why it has not ended by itself.
enum Ended {
    TimedOut,
    Stopped,
    Failed(String),
}

/// The result of a run, from its exit status and its output.
fn ending(status: ExitStatus, lines: &[String], complaint: &str) -> Ending {
    let said = |otherwise: &str| match complaint {
        "" => otherwise.to_owned(),
        complaint => complaint.to_owned(),
    };
    if status.code() == Some(MISSING.into()) {
        // Some say why on standard output.
        let why = lines.first().map_or("it does not say why", String::as_str);
        return Ending::Missing(said(why));
    }
    if !status.success() {
        let complaint = said("it said nothing");
        return Ending::Crashed(format!("{status}: {complaint}"));
    }
    let samples: Result<Vec<_>, _> = lines
        .iter()
        .map(|line| Sample::parse(line).map_err(|error| format!("`{line}` is no sample: {error}")))
        .collect();
    match samples {
        Ok(samples) if samples.is_empty() => Ending::Crashed("it measured nothing".to_owned()),
        Ok(samples) => Ending::Measured(samples),
        Err(error) => Ending::Crashed(error),
    }
}

fn wait(
    child: &mut Child,
    output: &Receiver<io::Result<String>>,
    deadline: Instant,
    stop: &Stop,
) -> Result<(ExitStatus, Vec<String>), Ended> {
    let ended = wait_until(child, output, deadline, stop);
    if ended.is_err() {
        kill(child);
    }
    ended
}

fn wait_until(
    child: &mut Child,
    output: &Receiver<io::Result<String>>,
    deadline: Instant,
    stop: &Stop,
) -> Result<(ExitStatus, Vec<String>), Ended> {
    let failed = |error: io::Error| Ended::Failed(error.to_string());
    let mut lines = Vec::new();
    let mut is_open = true;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if stop.is_wanted() {
            return Err(Ended::Stopped);
        }
        if left.is_zero() {
            return Err(Ended::TimedOut);
        }
        if is_open {
            match output.recv_timeout(LOOK.min(left)) {
                Ok(line) => lines.push(line.map_err(failed)?),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => is_open = false,
            }
        } else if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok((status, lines));
        } else {
            // The child has printed all, and is about to end.
            thread::sleep(Duration::from_millis(2));
        }
    }
}

fn read_lines(child: &mut Child) -> Receiver<io::Result<String>> {
    let (sender, receiver) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                if line.as_ref().is_ok_and(|line| line.trim().is_empty()) {
                    continue;
                }
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
    }
    receiver
}

/// Returns the end of its standard error.
fn read_end(child: &mut Child) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    if let Some(mut stderr) = child.stderr.take() {
        thread::spawn(move || {
            let mut kept = Vec::new();
            let mut chunk = [0; 4_096];
            while let Ok(read @ 1..) = stderr.read(&mut chunk) {
                kept.extend_from_slice(&chunk[..read]);
                kept.drain(..kept.len().saturating_sub(KEPT));
            }
            // The receiver is gone when the time is up.
            let _unheard = sender.send(String::from_utf8_lossy(&kept).into_owned());
        });
    }
    receiver
}

#[cfg(unix)]
fn own_group(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    command.process_group(0);
}

#[cfg(not(unix))]
fn own_group(_: &mut Command) {}

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

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn run_within(script: &str, limit: Duration) -> Ending {
        run(shell(script), limit, &Stop::default())
    }

    fn crash(script: &str) -> String {
        match run_within(script, LIMIT) {
            Ending::Crashed(why) => why,
            other => panic!("{script}: {other:?}"),
        }
    }

    #[test]
    fn what_it_measures_is_read() {
        let ending = run_within(
            &format!("echo chatter >&2; echo '{LINE}'; echo; echo '{LINE}'"),
            LIMIT,
        );
        let sample = Sample::parse(LINE).unwrap();
        assert_eq!(ending, Ending::Measured(vec![sample.clone(), sample]));
    }

    #[test]
    fn what_it_has_not_is_no_crash() {
        let ending = run_within("echo 'no PIDs' >&2; exit 3", LIMIT);
        assert_eq!(ending, Ending::Missing("no PIDs".to_owned()));
        let ending = run_within("echo 'no PIDs'; exit 3", LIMIT);
        assert_eq!(ending, Ending::Missing("no PIDs".to_owned()));
    }

    #[test]
    fn crashes_say_how_and_with_what_last_words() {
        let why = crash(&format!("echo '{LINE}'; echo sum is wrong >&2; exit 1"));
        assert!(
            why.contains('1') && why.ends_with(": sum is wrong"),
            "{why}"
        );
        let why = crash("kill -SEGV $$");
        assert!(
            why.contains("signal") && why.ends_with("it said nothing"),
            "{why}"
        );
        assert!(crash("echo nonsense").starts_with("`nonsense` is no sample: "));
        assert_eq!(crash("exit 0"), "it measured nothing");
        let why = crash("yes a-line-of-words | head -n 100000 >&2; echo last >&2; exit 1");
        assert!(
            why.len() < KEPT + 100 && why.ends_with("last"),
            "{}",
            why.len()
        );
    }

    #[test]
    fn what_cannot_be_started_says_so() {
        let command = Command::new("/nowhere/at-all");
        let Ending::Crashed(why) = run(command, LIMIT, &Stop::default()) else {
            panic!("it can't be started");
        };
        assert!(why.starts_with("can't start /nowhere/at-all: "), "{why}");
    }

    #[test]
    fn at_the_limit_it_ends_with_all_that_it_has_started() {
        let limit = Duration::from_millis(300);
        let start = Instant::now();
        // The inner process would keep the pipe open for ten minutes.
        assert_eq!(
            run_within("sleep 600 & wait", limit),
            Ending::TimedOut(limit)
        );
        // The process has closed its output, and does not end.
        assert_eq!(
            run_within("exec >&-; exec sleep 600", limit),
            Ending::TimedOut(limit)
        );
        assert!(start.elapsed() < LIMIT);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_it_has_started_is_gone_after_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let script = format!("sleep 600 & echo $! >'{}'; wait", file.display());
        let limit = Duration::from_secs(1);
        assert_eq!(run_within(&script, limit), Ending::TimedOut(limit));
        let pid = std::fs::read_to_string(file).unwrap();
        let stat = format!("/proc/{}/stat", pid.trim());
        // The zombie may have no parent that reaps it.
        let is_alive = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
        let start = Instant::now();
        while is_alive() {
            assert!(start.elapsed() < Duration::from_secs(10), "{pid} goes on");
            thread::yield_now();
        }
    }

    #[test]
    fn who_wants_to_stop_does_not_wait() {
        let stop = Stop::default();
        let start = Instant::now();
        thread::scope(|scope| {
            let running = scope.spawn(|| run(shell("exec sleep 600"), LIMIT, &stop));
            stop.now();
            assert_eq!(running.join().unwrap(), Ending::Stopped);
        });
        assert!(start.elapsed() < LIMIT);
    }
}
