//! Processes with all acts by yields, names of hosts, and files.

use crate::support::{ok, result, start, until};
use ganger_net::{AnySocket, TcpListener, TcpStream, commands, fs};
use ganger_proc_api::{
    BoxError, Command, CommandId, Completion, Context, Event, Events, Message, Payload, Payloads,
    Process, StepOutput, StepResult, process_fn,
};
use ganger_sched::Scheduler;
use ganger_task::Cx;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::mpsc;
use std::task::Poll;
use std::{future::poll_fn, pin::pin};

const CONNECT: u16 = 30;
const LISTEN: u16 = 31;
const ACCEPT: u16 = 32;
const BIND: u16 = 33;
const RESOLVE: u16 = 34;
const LOCAL_ADDRESS: u16 = 35;
const SEND_TO: u16 = 36;
const RECEIVE_FROM: u16 = 37;
const READ: u16 = 50;
const WRITE: u16 = 51;
const CLOSE: u16 = 52;
const ACTIVE: u16 = 53;
const END_WRITES: u16 = 54;
const READ_FILE: u16 = 55;
const WRITE_FILE: u16 = 56;

/// Yields command after command, and keeps all events.
struct Interpreter {
    program: Program,
    answers: Vec<Completion>,
    packets: Vec<Message>,
}

/// The next command, given the events so far. None is the end.
type Program = fn(&Interpreter) -> Option<Command>;

impl Process for Interpreter {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        let mut is_begin = true;
        let mut is_answered = false;
        for event in events {
            is_begin = false;
            match event {
                Event::Completion(answer) => {
                    self.answers.push(answer);
                    is_answered = true;
                }
                Event::Message(message) => self.packets.push(message),
                _ => {}
            }
        }
        if is_begin || is_answered {
            match (self.program)(self) {
                Some(command) => {
                    out.yield_command(command, self.answers.len() as u64);
                }
                None => out.done(()),
            }
        }
        Ok(())
    }
}

impl Interpreter {
    fn answer(&self, step: usize) -> &Payload {
        self.answers[step].result.as_ref().unwrap()
    }

    fn socket(&self, step: usize) -> Payload {
        let socket: &AnySocket = self.answer(step).downcast_ref().unwrap();
        socket.clone().into()
    }

    fn text(&self, step: usize) -> Payload {
        self.answer(step).as_str().unwrap().into()
    }
}

fn command(id: u16, payloads: impl Into<Payloads>) -> Option<Command> {
    Some(Command::new(CommandId::new(id), payloads))
}

fn run(scheduler: &Scheduler, program: Program) {
    let interpreter = Interpreter {
        program,
        answers: Vec::new(),
        packets: Vec::new(),
    };
    result(scheduler.spawn(interpreter).unwrap());
}

/// Connects both sides within the same process.
fn connection(it: &Interpreter) -> Option<Command> {
    match it.answers.len() {
        0 => command(LISTEN, "127.0.0.1:0"),
        1 => command(LOCAL_ADDRESS, it.socket(0)),
        2 => command(CONNECT, it.text(1)),
        3 => command(ACCEPT, it.socket(0)),
        4 => command(WRITE, [it.socket(2), b"hello".to_vec().into()]),
        5 => command(READ, [it.socket(3), 3_u64.into()]),
        6 => {
            assert_eq!(it.answer(5).as_bytes(), Some(&b"hel"[..]));
            command(ACTIVE, [it.socket(3), 2_u64.into(), 1_u64.into()])
        }
        7 => {
            // The messages, and then a notice without an end.
            assert_eq!(it.answer(6).as_bool(), Some(false));
            command(END_WRITES, it.socket(2))
        }
        8 => command(ACTIVE, [it.socket(3), 2_u64.into(), 1_u64.into()]),
        9 => {
            assert_eq!(it.answer(8).as_bool(), Some(true));
            let packets = it.packets.iter().map(|packet| {
                assert_eq!(packet.topic, "net.data");
                packet.payloads.as_slice()[0].as_bytes().unwrap()
            });
            assert_eq!(packets.collect::<Vec<_>>().concat(), b"lo");
            command(CLOSE, it.socket(3))
        }
        10 => command(READ, [it.socket(3), 1_u64.into()]),
        _ => {
            let error = it.answers[10].result.as_ref().unwrap_err();
            assert!(error.to_string().contains("closed"), "{error}");
            None
        }
    }
}

fn packets(it: &Interpreter) -> Option<Command> {
    match it.answers.len() {
        0 => command(BIND, "127.0.0.1:0"),
        1 => command(LOCAL_ADDRESS, it.socket(0)),
        2 => command(
            SEND_TO,
            [it.socket(0), b"packet".to_vec().into(), it.text(1)],
        ),
        3 => {
            assert_eq!(it.answer(2).as_u64(), Some(6));
            command(RECEIVE_FROM, [it.socket(0), 100_u64.into()])
        }
        _ => {
            let packet: &(Vec<u8>, SocketAddr) = it.answer(3).downcast_ref().unwrap();
            assert_eq!(packet.0, b"packet");
            None
        }
    }
}

fn refusals(it: &Interpreter) -> Option<Command> {
    match it.answers.len() {
        0 => command(RESOLVE, "127.0.0.1:7"),
        1 => {
            let addresses: &Vec<SocketAddr> = it.answer(0).downcast_ref().unwrap();
            assert_eq!(addresses, &["127.0.0.1:7".parse().unwrap()]);
            command(CONNECT, 7_u64)
        }
        2 => command(READ, "no socket"),
        3 => command(LISTEN, "no address"),
        4 => command(BIND, "127.0.0.1:0"),
        5 => command(READ, [it.socket(4), 1_u64.into()]),
        6 => command(WRITE, it.socket(4)),
        7 => command(ACCEPT, it.socket(4)),
        8 => command(RESOLVE, "no port"),
        _ => {
            let missing = "missing value: `ganger_net::commands` has the table of commands";
            for (refused, expected) in [
                (1, ""),
                (2, ""),
                (
                    3,
                    "invalid address: `no address`; expected an IP address with a port",
                ),
                (
                    5,
                    "expected a connection: use `net.connect` or `net.accept`",
                ),
                (6, missing),
                (7, "expected a listener: use `net.listen`"),
                (8, "invalid host: `no port`; expected `host:port`"),
            ] {
                let error = it.answers[refused].result.as_ref().unwrap_err();
                let text = error.to_string();
                assert!(text.contains(expected), "{refused}: {text}");
            }
            None
        }
    }
}

// pins: I6
#[test]
fn a_process_does_everything_by_yields() {
    let (scheduler, net) = start(2);
    for program in [connection, packets, refusals] {
        run(&scheduler, program);
    }
    until("no socket is left", || net.sockets() == 0);
}

#[cfg(unix)]
fn paths(it: &Interpreter) -> Option<Command> {
    static FOLDER: std::sync::OnceLock<tempfile::TempDir> = std::sync::OnceLock::new();
    let folder = FOLDER.get_or_init(|| tempfile::tempdir().unwrap());
    let path = |name: &str| folder.path().join(name).display().to_string();
    let socket = format!("unix:{}", path("socket"));
    match it.answers.len() {
        0 => command(LISTEN, socket),
        1 => command(CONNECT, socket),
        2 => command(ACCEPT, it.socket(0)),
        3 => command(WRITE, [it.socket(1), b"unix".to_vec().into()]),
        4 => command(READ, [it.socket(2), 10_u64.into()]),
        5 => {
            let read = it.answer(4).as_bytes().unwrap().to_vec();
            command(WRITE_FILE, [path("file").into(), read.into()])
        }
        6 => command(READ_FILE, path("file")),
        7 => {
            assert_eq!(it.answer(6).as_bytes(), Some(&b"unix"[..]));
            command(READ_FILE, path("no such file"))
        }
        _ => {
            assert!(it.answers[7].result.is_err());
            None
        }
    }
}

// pins: I6
#[cfg(unix)]
#[test]
fn a_process_uses_paths_by_yields() {
    let (scheduler, net) = start(2);
    run(&scheduler, paths);
    until("no socket is left", || net.sockets() == 0);
}

// pins: I6
#[test]
fn the_missing_network_is_named() {
    let scheduler = Scheduler::start_default().unwrap();
    let asks = process_fn(|_, events: &mut Events<'_>, out: &mut StepOutput| {
        match events.next() {
            Some(Event::Completion(answer)) => out.done(answer.result.unwrap_err().to_string()),
            _ => {
                out.yield_command(Command::new(CommandId::new(READ), ()), 1);
            }
        }
        Ok(())
    });
    let text = result(scheduler.spawn(asks).unwrap());
    assert!(text.as_str().unwrap().contains("Net::new"), "{text:?}");
}

/// Finds hosts by name, where the first address of the host may refuse.
// pins: I6
#[test]
fn hosts_are_found_by_their_names() {
    let (scheduler, net) = start(1);
    let task = scheduler.spawn(async |cx: Cx| {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let (client, server) = cx
            .join((
                TcpStream::connect(format!("localhost:{port}")),
                listener.accept(),
            ))
            .await;
        assert_eq!(client?.local_addr()?, server?.1);
        let none = TcpStream::connect("name.invalid:80").await;
        assert!(none.is_err());
        let no_port = TcpStream::connect("localhost").await.unwrap_err();
        assert_eq!(no_port.kind(), ErrorKind::InvalidInput);
        let late = TcpStream::connect_within("localhost:1", std::time::Duration::ZERO).await;
        assert_eq!(late.unwrap_err().kind(), ErrorKind::TimedOut);
        ok(())
    });
    result(task.unwrap());
    until("no socket is left", || net.sockets() == 0);
}

struct Asks(mpsc::Sender<io::Result<Vec<SocketAddr>>>);

impl Process for Asks {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        match events.next() {
            Some(Event::Completion(answer)) => {
                self.0.send(answer.take()?)?;
                out.done(());
            }
            _ => {
                let _asked = out.ask(commands::resolve("localhost", 80), 1);
            }
        }
        Ok(())
    }
}

// pins: I6
#[test]
fn a_state_machine_asks_for_the_addresses_of_a_host() -> Result<(), BoxError> {
    let (scheduler, _) = start(1);
    let (send, addresses) = mpsc::channel();
    result(scheduler.spawn(Asks(send))?);
    let addresses = addresses.recv()??;
    assert!(addresses.iter().all(|it| it.ip().is_loopback()));
    Ok(())
}

/// Checks that a dropped wait revokes its call before a thread makes it, and the call takes no
/// thread.
// pins: I6
#[test]
fn what_blocks_is_taken_back_before_it_has_begun() {
    let (scheduler, net) = start(1);
    let folder = tempfile::tempdir().unwrap();
    let (kept, dropped) = (folder.path().join("kept"), folder.path().join("dropped"));
    let (keeps, drops) = (kept.clone(), dropped.clone());
    let task = scheduler.spawn(async move |_: Cx| {
        {
            let mut taken_back = pin!(fs::write(drops, b"a"));
            let is_pending = poll_fn(|cx| Poll::Ready(taken_back.as_mut().poll(cx).is_pending()));
            assert!(is_pending.await);
        }
        fs::write(keeps, b"b").await?;
        ok(())
    });
    result(task.unwrap());
    until("the calls are over", || scheduler.stats().live == 0);
    assert!(kept.exists() && !dropped.exists());
    assert_eq!(net.sockets(), 0);
}

// pins: D1, D2
#[test]
fn in_a_stop_a_shield_looks_up_a_host_connects_and_writes_a_file() {
    let (scheduler, _net) = start(2);
    let folder = tempfile::tempdir().unwrap();
    let (path, listener) = (
        folder.path().join("saved"),
        std::net::TcpListener::bind("127.0.0.1:0").unwrap(),
    );
    let (saves, port) = (path.clone(), listener.local_addr().unwrap().port());
    let task = scheduler.spawn(async move |cx: Cx| {
        cx.cancelled().await;
        let clean_up = async {
            let found = ganger_net::resolve("localhost", port).await?;
            drop(TcpStream::connect(format!("localhost:{port}")).await?);
            fs::write(saves, b"saved").await?;
            ok(!found.is_empty())
        };
        cx.shield(clean_up).await
    });
    let report = scheduler.stop(crate::support::PATIENCE).unwrap();
    assert_eq!(report.forced, 0, "{report:?}");
    assert_eq!(result(task.unwrap()).as_bool(), Some(true));
    assert!(listener.accept().is_ok() && path.exists());
}

// pins: I6
#[test]
fn what_blocks_is_no_matter_of_a_thread() {
    let (_scheduler, net) = start(1);
    let read = net.enter(|| {
        let mut read = pin!(fs::read("Cargo.toml"));
        let waker = std::task::Waker::noop();
        match read
            .as_mut()
            .poll(&mut std::task::Context::from_waker(waker))
        {
            Poll::Ready(read) => read,
            Poll::Pending => panic!("it waits"),
        }
    });
    assert_eq!(read.unwrap_err().kind(), ErrorKind::Other);
}
