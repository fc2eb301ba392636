//! Linux: `/proc` has an account of each thread, and a thread has a mask of cores.

use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_setaffinity};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Returns the system's id of the calling thread; 0 if the system has none.
#[must_use]
pub fn thread_id() -> u32 {
    gettid().as_raw_nonzero().get().unsigned_abs()
}

/// The system's view of a thread, for many looks: the files stay open, and a look is a single call.
///
/// At most two files stay open: the files of the thread of the last look.
#[derive(Debug, Default)]
pub struct ThreadFiles {
    thread: u32,
    state: Option<File>,
    times: Option<File>,
}

impl ThreadFiles {
    /// Returns whether the thread sleeps at this moment, in any call; `None` if the system does not
    /// say.
    #[must_use]
    pub fn is_asleep(&mut self, thread: u32) -> Option<bool> {
        self.turn_to(thread);
        let mut room = [0; ROOM];
        let account = read(&mut self.state, thread, "stat", &mut room)?;
        // The thread's name, before the state, is in brackets and may contain brackets.
        let end = account.iter().rposition(|&byte| byte == b')')?;
        Some(matches!(account.get(end + 2)?, b'S' | b'D'))
    }

    /// Returns how long the thread has had a processor; `None` if the system does not say.
    #[must_use]
    pub fn computed(&mut self, thread: u32) -> Option<Duration> {
        self.turn_to(thread);
        let mut room = [0; ROOM];
        let account = read(&mut self.times, thread, "schedstat", &mut room)?;
        let nanos = str::from_utf8(account).ok()?.split_whitespace().next()?;
        Some(Duration::from_nanos(nanos.parse().ok()?))
    }

    fn turn_to(&mut self, thread: u32) {
        if self.thread != thread {
            *self = Self {
                thread,
                ..Self::default()
            };
        }
    }
}

/// The number of bytes read of a file: the name is short, and only the text up to the state counts.
const ROOM: usize = 128;

/// Reads a file of the thread from its beginning, and keeps the file open.
fn read<'a>(
    kept: &mut Option<File>,
    thread: u32,
    name: &str,
    room: &'a mut [u8; ROOM],
) -> Option<&'a [u8]> {
    if let Some(file) = kept
        && let Ok(count) = file.read_at(room, 0)
    {
        return Some(&room[..count]);
    }
    // None yet, or the thread has ended, and another may have its id.
    *kept = None;
    let file = kept.insert(File::open(format!("/proc/self/task/{thread}/{name}")).ok()?);
    let count = file.read_at(room, 0).ok()?;
    Some(&room[..count])
}

/// Returns the cores that the calling thread may use, in order.
pub(crate) fn allowed_cores() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&core| set.is_set(core))
        .collect())
}

/// Restricts a thread, or with 0 the calling thread, to these cores.
pub(crate) fn allow_cores(thread: u32, cores: &[usize]) -> io::Result<()> {
    let thread = i32::try_from(thread).ok().and_then(Pid::from_raw);
    let mut set = CpuSet::new();
    cores.iter().for_each(|&core| set.set(core));
    Ok(sched_setaffinity(thread, &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    /// Starts a thread with this id in its name's place, which sleeps until the sender goes.
    fn sleeper() -> (u32, mpsc::Sender<()>, thread::JoinHandle<()>) {
        let (release, released) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let builder = thread::Builder::new().name("S) R (".to_owned());
        let sleeper = builder.spawn(move || {
            tell.send(thread_id()).unwrap();
            // The thread waits for the disconnection.
            let _released = released.recv();
        });
        (told.recv().unwrap(), release, sleeper.unwrap())
    }

    #[test]
    fn each_look_is_fresh_and_of_the_thread_that_is_asked_about() {
        let (mut files, own) = (ThreadFiles::default(), thread_id());
        let (first, release, joined) = sleeper();
        while files.is_asleep(first) != Some(true) {
            thread::yield_now();
        }
        assert_eq!(files.is_asleep(own), Some(false));
        let before = files.computed(own).unwrap();
        // The account is as old as the last tick of the system.
        while files.computed(own).unwrap() == before {}
        assert_eq!(files.is_asleep(first), Some(true));
        drop(release);
        joined.join().unwrap();
        // The system may take a while to forget the thread.
        while files.is_asleep(first).is_some() {
            thread::yield_now();
        }
        assert_eq!(files.computed(first), None);
    }

    #[test]
    fn files_of_a_thread_that_has_ended_are_opened_anew() {
        let own = thread_id();
        let (ended, release, joined) = sleeper();
        let mut files = ThreadFiles::default();
        assert!(files.computed(ended).is_some() && files.is_asleep(ended).is_some());
        drop(release);
        joined.join().unwrap();
        // As if this thread had the id now.
        files.thread = own;
        while files.computed(own).is_none() || files.is_asleep(own).is_none() {}
        assert_eq!(files.is_asleep(own), Some(false));
    }
}
