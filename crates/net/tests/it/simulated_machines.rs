//! Simulated sockets between the machines of a simulation.

use ganger_net::sim::{Faults, Lan};
use ganger_net::{TcpListener, TcpStream};
use ganger_proc_api::BoxError;
use ganger_sched::ContextExt as _;
use ganger_sim::{Change, Sim, World};
use ganger_task::Cx;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SERVER: &str = "10.0.0.1:80";
const SECOND: Duration = Duration::from_secs(1);

type Log = Arc<Mutex<Vec<String>>>;

fn said(log: &Log) -> Vec<String> {
    std::mem::take(&mut *log.lock().unwrap())
}

fn say(log: &Log, text: impl Into<String>) {
    log.lock().unwrap().push(text.into());
}

/// Starts a server, which answers each byte with the next byte, and a client, which sends a byte
/// each second.
fn start(world: &World<'_>, log: &Log, resets: bool) -> Lan {
    let lan = Lan::new();
    lan.set_faults(world.choose(1 << 20) as u64, Faults::some());
    let own = lan.clone();
    world.builder(move |builder| own.add_to(builder));
    let own = lan.clone();
    world.on_change(move |change| match change {
        // Before the network itself would have it reset.
        Change::Crashed(name) if !resets => own.crash(name, false),
        _ => {}
    });
    world.carrier(lan.clone());
    world.start("server", |machine| {
        let server = machine.spawn(async |cx: Cx| -> Result<(), BoxError> {
            let listener = TcpListener::bind(SERVER)?;
            loop {
                let (stream, _) = listener.accept().await?;
                cx.spawn(async move |_: Cx| {
                    let mut byte = [0];
                    loop {
                        stream.read_exact(&mut byte).await?;
                        stream.write_all(&[byte[0] + 1]).await?;
                    }
                    #[allow(unreachable_code, reason = "it says the type")]
                    Ok(())
                })?;
            }
        });
        drop(server.unwrap());
    });
    world.run_for(SECOND / 10);
    let log = Arc::clone(log);
    world.start("client", move |machine| {
        let log = Arc::clone(&log);
        let client = machine.spawn(async move |cx: Cx| {
            if let Err(error) = client(&cx, &log).await {
                say(&log, format!("{:?}", error.kind()));
            }
            Ok(())
        });
        drop(client.unwrap());
    });
    lan
}

async fn client(cx: &Cx, log: &Log) -> io::Result<()> {
    let stream = TcpStream::connect(SERVER).await?;
    for number in (0..200).step_by(2) {
        stream.write_all(&[number]).await?;
        let mut byte = [0];
        stream.read_exact(&mut byte).await?;
        say(log, byte[0].to_string());
        if cx.sleep(SECOND).await.is_err() {
            break;
        }
    }
    Ok(())
}

fn sim() -> Sim {
    Sim::new(0).faults(ganger_sim::Faults {
        clock_jumps: 0,
        ..ganger_sim::Faults::some()
    })
}

// pins: B41
#[test]
fn a_cut_of_one_direction_holds_the_bytes_until_it_ends() {
    sim().check_worlds(20, |world| {
        let log = Log::default();
        start(world, &log, true);
        world.run_for(2 * SECOND + SECOND / 2);
        let before = said(&log);
        assert!(before.starts_with(&["1".to_owned()]), "{before:?}");
        let (from, to) = match world.choose(2) {
            0 => ("client", "server"),
            _ => ("server", "client"),
        };
        world.cut(from, to);
        world.run_for(5 * SECOND);
        assert!(said(&log).len() <= 1, "at most what was on the way");
        world.heal(from, to);
        world.run_for(2 * SECOND);
        assert!(!said(&log).is_empty(), "the bytes arrive");
        world.delay(from, to, 3 * SECOND);
        world.run_for(SECOND);
        said(&log);
        world.run_for(2 * SECOND);
        assert!(said(&log).len() <= 1, "all is late");
    });
}

#[test]
fn a_paused_machine_answers_when_it_goes_on() {
    sim().check_worlds(20, |world| {
        let log = Log::default();
        start(world, &log, true);
        world.run_for(2 * SECOND + SECOND / 2);
        world.pause("server", 5 * SECOND);
        said(&log);
        world.run_for(4 * SECOND);
        assert!(said(&log).len() <= 1, "at most what was on the way");
        world.run_for(3 * SECOND);
        assert!(!said(&log).is_empty());
    });
}

// pins: B41
#[test]
fn a_killed_machine_resets_its_connections_and_one_without_power_is_silent_until_it_starts_again() {
    for resets in [true, false] {
        sim().check_worlds(20, |world| {
            let log = Log::default();
            start(world, &log, resets);
            world.run_for(2 * SECOND + SECOND / 2);
            assert!(!said(&log).is_empty());
            world.crash("server");
            world.run_for(3 * SECOND);
            let end = said(&log);
            let is_told = end.last().is_some_and(|it| it == "ConnectionReset");
            assert_eq!(is_told, resets, "{end:?}");
            world.restart("server");
            world.run_for(SECOND);
            let later = said(&log);
            assert_eq!(later.len(), usize::from(!resets), "{later:?}");
            world.restart("client");
            world.run_for(SECOND);
            assert_eq!(said(&log), ["1"], "the address has a new listener");
        });
    }
}

/// Breaks a connection under way to a machine with the machine, as an open connection.
// pins: B41
#[test]
fn a_connect_under_way_to_a_machine_that_crashes_fails() {
    for resets in [true, false] {
        sim().check_worlds(20, |world| {
            let log = Log::default();
            start(world, &log, resets);
            world.run_for(Duration::from_millis(world.choose(15) as u64));
            world.crash("server");
            world.run_for(SECOND);
            world.restart("server");
            world.run_for(3 * SECOND);
            let end = said(&log);
            let is_broken = |it: &String| it.starts_with("Connection");
            assert!(end.last().is_some_and(is_broken), "{end:?}");
        });
    }
}
