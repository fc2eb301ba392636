//! Signals of the system. Each test has its own signal, because signals concern the whole program.

use crate::support::{ms, ok, result, start, until};
use ganger_net::{Signal, SignalKind, commands, ctrl_c};
use ganger_proc_api::{BoxError, Event, process_fn};
use ganger_sched::ContextExt;
use ganger_task::Cx;
use rustix::process::{Signal as Named, getpid, kill_process};
use std::io::{self, ErrorKind};
use std::sync::Arc;

fn raise(signal: Named) {
    kill_process(getpid(), signal).unwrap();
}

// pins: I9
#[test]
fn each_that_waits_for_a_signal_is_told() {
    let (scheduler, net) = start(2);
    let task = scheduler.spawn(async |cx: Cx| {
        let (one, other) = (
            Signal::new(SignalKind::USER_1)?,
            Signal::new(SignalKind::USER_1)?,
        );
        let unconcerned = Signal::new(SignalKind::USER_2)?;
        let child = cx.spawn(async move |_: Cx| {
            other.recv().await?;
            ok(())
        })?;
        let ended = cx.monitor(child.pid());
        raise(Named::USR1);
        one.recv().await?;
        ended.await?;
        unconcerned.set_deadline(Some(ms(10)));
        let none = unconcerned.recv().await.unwrap_err();
        assert_eq!(none.kind(), ErrorKind::TimedOut);
        // A later signal is reported again, at most as often as it has come.
        for _ in 0..3 {
            raise(Named::USR1);
        }
        one.recv().await?;
        let mut times = 1;
        one.set_deadline(Some(ms(100)));
        while one.recv().await.is_ok() {
            times += 1;
        }
        assert!(times <= 3, "{times}");
        ok(())
    });
    result(task.unwrap());
    until("no socket is left", || net.sockets() == 0);
}

// pins: I9
#[test]
fn a_program_goes_on_after_a_signal_that_is_waited_for() {
    let (scheduler, _) = start(1);
    let task = scheduler.spawn(async |_: Cx| {
        let signals = [ctrl_c()?, Signal::new(SignalKind::HANGUP)?];
        raise(Named::INT);
        raise(Named::HUP);
        for signal in &signals {
            signal.recv().await?;
        }
        drop(signals);
        // Even if no process waits any more.
        raise(Named::HUP);
        ok(())
    });
    result(task.unwrap());
}

// pins: I9
#[test]
fn a_signal_that_no_program_may_handle_is_refused() {
    let (_scheduler, net) = start(1);
    for signal in [9, 19, -1, 1000] {
        let refused = net.enter(|| Signal::new(SignalKind::from_raw(signal)));
        assert_eq!(
            refused.unwrap_err().kind(),
            ErrorKind::InvalidInput,
            "{signal}"
        );
    }
    let none = Signal::new(SignalKind::QUIT).unwrap_err();
    assert_eq!(none.kind(), ErrorKind::Other);
    assert_eq!(net.sockets(), 0);
}

// pins: I9
#[test]
fn a_close_ends_the_wait_for_a_signal() {
    let (scheduler, _) = start(1);
    let task = scheduler.spawn(async |cx: Cx| {
        let signal = Signal::new(SignalKind::from_raw(Named::WINCH.as_raw()))?;
        let closer = signal.closer();
        let (ended, ()) = cx.join((signal.recv(), async { closer.close() })).await;
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::NotConnected);
        ok(())
    });
    result(task.unwrap());
}

// pins: I9
#[test]
fn a_state_machine_waits_for_a_signal() -> Result<(), BoxError> {
    let (scheduler, net) = start(1);
    let urgent = SignalKind::from_raw(Named::URG.as_raw());
    let signal = Arc::new(net.enter(|| Signal::new(urgent))?);
    let waits = process_fn(move |_, events, out| {
        match events.next() {
            Some(Event::Completion(answer)) => {
                answer.take::<io::Result<()>>()??;
                out.done(());
            }
            _ => {
                let _asked = out.ask(commands::signal(&signal), 1);
                raise(Named::URG);
            }
        }
        Ok(())
    });
    result(scheduler.spawn(waits)?);
    Ok(())
}
