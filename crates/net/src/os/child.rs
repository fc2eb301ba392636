//! Child processes of the program.
//!
//! **How an end is noticed.** On Linux a descriptor of the child becomes ready when it ends.
//! Without such a descriptor, each SIGCHLD checks all such children. No wait is for any child of
//! the program, so no child is taken from other code.
//!
//! **No zombie.** A child dropped while it runs becomes an orphan, which waits for its end: the
//! waker of this wait owns the orphan. After the halt of the scheduler, a thread waits for it.

use super::signal::{Notice, SignalKind};
use crate::look::{About, SocketKind};
use crate::poller::{Direction, Lent};
use crate::reactor::{Reactor, WaiterSlot};
use crate::sockets::socket::{IoSource, Socket};
use crate::sockets::stream::{Stream, Transport};
use ganger_sync::sync::lock;
use rustix::process::{Pid, kill_process};
use std::fmt;
use std::fs::File;
use std::future::poll_fn;
use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::pin;
use std::process::{self, Command, ExitStatus, Output};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

/// A pipe to a child, or from it. An operation in the other direction fails.
///
/// A pipe to a child ends when it is closed or dropped.
pub type ChildStream = Stream<Pipe>;

/// The pipe of a [`ChildStream`].
pub struct Pipe {
    file: File,
    is_to_child: bool,
}

/// A child process of the program. A wait for its end takes no thread.
///
/// ```
/// # use ganger_net::Net;
/// # use ganger_sched::Scheduler;
/// use ganger_net::Child;
/// use ganger_task::Cx;
/// use std::process::{Command, Stdio};
///
/// # let scheduler = Scheduler::builder().driver(Net::new()?).build()?;
/// # scheduler.start()?;
/// let task = scheduler.spawn(async |_: Cx| {
///     let mut sort = Command::new("sort");
///     let mut child = Child::spawn(sort.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
///     let lines = child.stdin.take().ok_or("no pipe")?;
///     lines.write_all(b"b\na\n").await?;
///     drop(lines);
///     let output = child.output().await?;
///     Ok(output.status.success() && output.stdout == b"a\nb\n")
/// })?;
/// assert_eq!(task.wait().into_result()?.as_bool(), Some(true));
/// # Ok::<(), ganger_proc_api::BoxError>(())
/// ```
///
/// A dropped child goes on, unless [`kill_on_drop`](Self::kill_on_drop) says otherwise. In both
/// cases it leaves no zombie.
pub struct Child {
    /// The standard input, if it is piped.
    pub stdin: Option<ChildStream>,
    /// The standard output, if it is piped.
    pub stdout: Option<ChildStream>,
    /// The standard error, if it is piped.
    pub stderr: Option<ChildStream>,
    id: u32,
    kills: bool,
    exit: Arc<Socket<Exit>>,
}

/// The child until its status was taken.
struct Exit {
    /// None when a thread waits for the child.
    child: Mutex<Option<process::Child>>,
    end_event: EndEvent,
}

/// The event of a possible end of the child.
enum EndEvent {
    #[cfg(target_os = "linux")]
    Descriptor(OwnedFd),
    Signal(Notice),
}

impl Child {
    /// Starts a child. Blocks only while the system starts it.
    ///
    /// # Errors
    /// Errors of the system, mostly `NotFound`; `Unsupported` in a simulation; `Other` on a thread
    /// without a network.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        Self::start(command, EndEvent::new)
    }

    /// Starts a child as [`spawn`](Self::spawn) does on other systems than Linux.
    #[cfg(feature = "portable")]
    #[doc(hidden)]
    pub fn spawn_portable(command: &mut Command) -> io::Result<Self> {
        Self::start(command, |_| EndEvent::signal())
    }

    fn start(
        command: &mut Command,
        end_event: impl FnOnce(&process::Child) -> io::Result<EndEvent>,
    ) -> io::Result<Self> {
        // Without a poller no child starts: its end would go unnoticed.
        Reactor::current()?.poller()?;
        let mut child = command.spawn()?;
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let id = child.id();
        // From here on an error leaves the child running as an orphan.
        let end_event = end_event(&child);
        let child = Mutex::new(Some(child));
        let end_event = match end_event {
            Ok(end_event) => end_event,
            Err(error) => {
                reap(&child);
                return Err(error);
            }
        };
        let exit = Socket::new(Exit { child, end_event })?;
        Ok(Self {
            stdin: stdin.map(|it| pipe(it.into(), true)).transpose()?,
            stdout: stdout.map(|it| pipe(it.into(), false)).transpose()?,
            stderr: stderr.map(|it| pipe(it.into(), false)).transpose()?,
            id,
            kills: false,
            exit,
        })
    }

    /// Sets whether the drop of this value kills a running child: with the end of the process that
    /// owns it, for example. The default is false.
    #[must_use]
    pub fn kill_on_drop(self, kills: bool) -> Self {
        let mut this = self;
        this.kills = kills;
        this
    }

    /// Returns the system's number for the child.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Waits until the child has ended. Any number of processes may wait, and later waits get the
    /// same status. A child may wait for the end of its standard input: drop `stdin` before.
    ///
    /// # Errors
    /// Errors of the system; `NotConnected` when the scheduler has halted.
    pub async fn wait(&self) -> io::Result<ExitStatus> {
        self.exit.wait(Direction::Read, Exit::status).await
    }

    /// Returns the status of the child, if it has ended. Does not wait.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn try_wait(&self) -> io::Result<Option<ExitStatus>> {
        self.exit.with(|exit| exit.with(process::Child::try_wait))
    }

    /// Closes `stdin`, reads the rest of the output pipes, and waits until the child has ended.
    ///
    /// # Errors
    /// The errors of [`wait`](Self::wait), and the errors of reads.
    pub async fn output(mut self) -> io::Result<Output> {
        drop(self.stdin.take());
        let (stdout, stderr) = both(rest(self.stdout.take()), rest(self.stderr.take())).await;
        Ok(Output {
            status: self.wait().await?,
            stdout: stdout?,
            stderr: stderr?,
        })
    }

    /// Kills the child. Does not wait for its end, and does nothing after it.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn kill(&self) -> io::Result<()> {
        self.exit.with(|exit| exit.with(process::Child::kill))
    }

    /// Sends the child a signal. Does nothing after its end.
    ///
    /// # Errors
    /// As for [`kill`](Self::kill), and `InvalidInput` for a signal without a name.
    pub fn signal(&self, kind: SignalKind) -> io::Result<()> {
        let signal = kind.named()?;
        self.exit.with(|exit| {
            exit.with(|child| match child.try_wait()? {
                // The system keeps the number of the child until its status was taken.
                None => Ok(kill_process(Pid::from_child(child), signal)?),
                Some(_) => Ok(()),
            })
        })
    }
}

fn pipe(pipe: OwnedFd, is_to_child: bool) -> io::Result<ChildStream> {
    rustix::io::ioctl_fionbio(&pipe, true)?;
    let file = pipe.into();
    Socket::new(Pipe { file, is_to_child }).map(Stream)
}

/// Reads a pipe to its end.
async fn rest(pipe: Option<ChildStream>) -> io::Result<Vec<u8>> {
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    let Some(pipe) = pipe else { return Ok(all) };
    loop {
        match pipe.read(&mut buffer).await? {
            0 => return Ok(all),
            length => all.extend_from_slice(&buffer[..length]),
        }
    }
}

/// Waits for two futures at the same time.
async fn both<A, B>(one: impl Future<Output = A>, other: impl Future<Output = B>) -> (A, B) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let (mut first, mut second) = (None, None);
    poll_fn(|context| {
        if first.is_none()
            && let Poll::Ready(it) = one.as_mut().poll(context)
        {
            first = Some(it);
        }
        if second.is_none()
            && let Poll::Ready(it) = other.as_mut().poll(context)
        {
            second = Some(it);
        }
        match (first.take(), second.take()) {
            (Some(first), Some(second)) => Poll::Ready((first, second)),
            (one, other) => {
                (first, second) = (one, other);
                Poll::Pending
            }
        }
    })
    .await
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.kills {
            // Fails if the child has ended.
            let _ = self.kill();
        }
        Orphan::adopt(&self.exit);
    }
}

impl EndEvent {
    fn new(child: &process::Child) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        {
            use rustix::process::{PidfdFlags, pidfd_open};
            if let Ok(descriptor) = pidfd_open(Pid::from_child(child), PidfdFlags::empty()) {
                return Ok(Self::Descriptor(descriptor));
            }
        }
        let _ = child;
        Self::signal()
    }

    /// Watches for the end of a child by its signal. The first check comes later, and sees an end
    /// before this call.
    fn signal() -> io::Result<Self> {
        Notice::of(SignalKind::CHILD).map(Self::Signal)
    }
}

impl Exit {
    /// Returns the status. Fails with `WouldBlock` until the child has ended.
    fn status(&self) -> io::Result<ExitStatus> {
        if let EndEvent::Signal(notice) = &self.end_event {
            // Fails if no signal has come.
            let _ = notice.take();
        }
        let status = self.with(process::Child::try_wait)?;
        status.ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }

    fn with<R>(&self, f: impl FnOnce(&mut process::Child) -> io::Result<R>) -> io::Result<R> {
        match &mut *lock(&self.child) {
            Some(child) => f(child),
            None => Err(crate::error::closed()),
        }
    }
}

impl IoSource for Exit {
    fn lent(&self) -> Option<Lent<'_>> {
        Some(match &self.end_event {
            #[cfg(target_os = "linux")]
            EndEvent::Descriptor(descriptor) => descriptor.as_fd(),
            EndEvent::Signal(notice) => notice.lent(),
        })
    }

    fn about(&self) -> About {
        About::of(SocketKind::Child)
    }
}

impl Drop for Exit {
    fn drop(&mut self) {
        reap(&self.child);
    }
}

/// Starts a thread that waits for a running child.
fn reap(child: &Mutex<Option<process::Child>>) {
    let Some(mut child) = lock(child).take() else {
        return;
    };
    if let Ok(None) = child.try_wait() {
        let waits = move || {
            // An error has no receiver.
            let _ = child.wait();
        };
        // Without a thread the child is a zombie from its end to the end of the program.
        let _ = thread::Builder::new().spawn(waits);
    }
}

/// A child without an owner. The waker of its wait owns it until its end.
struct Orphan(Mutex<Option<Arc<Socket<Exit>>>>);

impl Orphan {
    fn adopt(exit: &Arc<Socket<Exit>>) {
        Arc::new(Self(Mutex::new(Some(Arc::clone(exit))))).check();
    }

    fn check(self: &Arc<Self>) {
        let Some(exit) = lock(&self.0).clone() else {
            return;
        };
        let waker = Waker::from(Arc::clone(self));
        let mut context = Context::from_waker(&waker);
        let polled = exit.poll(
            Direction::Read,
            WaiterSlot::Owner,
            &mut context,
            Exit::status,
        );
        if polled.is_ready() {
            let kept = lock(&self.0).take();
            drop(kept);
        }
    }
}

impl Wake for Orphan {
    fn wake(self: Arc<Self>) {
        self.check();
    }
}

impl IoSource for Pipe {
    fn lent(&self) -> Option<Lent<'_>> {
        Some(self.file.as_fd())
    }

    fn about(&self) -> About {
        About::of(SocketKind::Pipe)
    }
}

impl Transport for Pipe {
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.file).read(buffer)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        (&self.file).write(bytes)
    }

    fn write_vectored(&self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        (&self.file).write_vectored(bytes)
    }

    /// Ends nothing: only the close ends a pipe to a child, and a pipe from a child has nothing to
    /// end.
    fn shutdown(&self, _: Shutdown) -> io::Result<()> {
        match self.is_to_child {
            true => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "a pipe has no shutdown: close or drop it",
            )),
            false => Ok(()),
        }
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
