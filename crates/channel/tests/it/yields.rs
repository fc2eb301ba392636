//! State machines with waits by yields, and steps that must not block.

use ganger_channel::{Received, RecvError, SelectError, SendError, Until, channel, select};
use ganger_proc_api::{CommandError, Event, process_fn};
use ganger_sched::Scheduler;
use std::sync::mpsc;
use std::time::Duration;

// pins: Q5
#[test]
fn a_step_is_refused_where_it_would_block_its_worker() {
    let scheduler = Scheduler::start_default().unwrap();
    let (sender, receiver) = channel::<u32>(0);
    let (tell, told) = mpsc::channel();
    let process = scheduler.spawn(process_fn(move |ctx, _, out| {
        let sent = sender.send_blocking(7);
        let got = receiver.recv_timeout(Duration::from_secs(60));
        let selected = select().recv(&receiver, |it| it).wait();
        let within = ctx.blocking(|| receiver.recv_timeout(Duration::from_millis(1)));
        tell.send((sent, got, selected, within)).unwrap();
        out.done(());
        Ok(())
    }));
    process.unwrap().wait();
    let (sent, got, selected, within) = told.recv().unwrap();
    assert_eq!(
        (sent, got),
        (Err(SendError::OnWorker(7)), Err(RecvError::OnWorker))
    );
    assert_eq!(selected, Err(SelectError::OnWorker));
    assert_eq!(within, Err(RecvError::Timeout), "in `blocking` it may wait");
}

// pins: Q8
#[test]
fn yields_send_and_receive() {
    let scheduler = Scheduler::start_default().unwrap();
    let (sender, receiver) = channel::<u64>(0);
    let mut next = 0;
    let producer = scheduler.spawn(process_fn(move |_, events, out| {
        if let Some(Event::Completion(it)) = events.next() {
            it.take::<Result<(), SendError<u64>>>()??;
        }
        if next == 1_000 {
            out.done(());
            return Ok(());
        }
        out.ask(sender.sending(next), 1);
        next += 1;
        Ok(())
    }));
    let mut sum = 0;
    let consumer = scheduler.spawn(process_fn(move |_, events, out| {
        match events.next() {
            Some(Event::Completion(it)) => match it.take::<Received<u64>>() {
                Ok(received) => sum += received.into_inner(),
                Err(CommandError::Failed(error)) => {
                    assert_eq!(error.downcast_ref(), Some(&RecvError::Closed));
                    out.done(sum);
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            },
            Some(_) => return Ok(()),
            None => {}
        }
        out.ask(receiver.receiving(), 1);
        Ok(())
    }));
    assert!(producer.unwrap().wait().is_done());
    assert_eq!(consumer.unwrap().wait().take::<u64>().unwrap(), 499_500);
}

// pins: Q8
#[test]
fn a_yield_that_is_taken_back_or_whose_process_ends_leaves_no_place() {
    let scheduler = Scheduler::start_default().unwrap();
    let (sender, receiver) = channel::<u64>(0);
    for ends in [false, true] {
        let receiver = receiver.clone();
        let (tell, told) = mpsc::channel();
        let mut steps = 0;
        let waits = scheduler.spawn(process_fn(move |_, events, out| {
            steps += 1;
            match events.next() {
                None if steps == 1 => drop(out.ask(receiver.receiving(), 1)),
                None => {}
                Some(Event::Message(_)) if ends => out.done(()),
                Some(Event::Message(_)) => {
                    out.cancel(1);
                    out.step_again();
                }
                Some(_) => return Err("nothing was sent".into()),
            }
            tell.send(()).unwrap();
            Ok(())
        }));
        let waits = waits.unwrap();
        told.recv().unwrap();
        waits
            .address()
            .send(ganger_proc_api::Message::of(()))
            .unwrap();
        told.recv().unwrap();
        if ends {
            assert!(waits.wait().is_done());
        } else {
            // The next step, after the step with the withdrawal.
            told.recv().unwrap();
        }
        assert!(sender.try_send(1).is_err(), "it still waits");
        drop(told);
    }
}

// pins: Q8
#[test]
fn a_completion_that_is_dropped_gives_its_value_back() {
    let scheduler = Scheduler::start_default().unwrap();
    let (sender, receiver) = channel::<u64>(0);
    let its = receiver.clone();
    let waits = scheduler.spawn(process_fn(move |_, events, out| {
        match events.next() {
            None => drop(out.ask(its.receiving(), 1)),
            Some(Event::Completion(_)) => out.done(()),
            Some(_) => {}
        }
        Ok(())
    }));
    sender.send_blocking(42).unwrap();
    drop(sender);
    // The process may have the value, or has given it back; in both cases it is not lost.
    assert_eq!(receiver.recv_blocking(), Ok(42));
    assert!(waits.unwrap().wait().is_done());
    assert_eq!(receiver.recv_blocking(), Err(RecvError::Closed));
}

// pins: Q3, Q8
#[test]
fn a_value_that_a_completion_brings_may_come_back_until_it_is_taken_out() {
    let scheduler = Scheduler::start_default().unwrap();
    let (sender, receiver) = channel::<u64>(1);
    let (tell, told) = mpsc::channel();
    let its = receiver.clone();
    let waits = scheduler.spawn(process_fn(move |_, events, out| {
        match events.next() {
            None => drop(out.ask(its.receiving(), 1)),
            Some(Event::Completion(it)) => {
                tell.send(it.take::<Received<u64>>()?).unwrap();
                out.done(());
            }
            Some(_) => {}
        }
        Ok(())
    }));
    sender.send_blocking(42).unwrap();
    drop(sender);
    let received = told.recv().unwrap();
    assert!(waits.unwrap().wait().is_done());
    assert_eq!(receiver.try_recv(), Err(RecvError::Empty));
    assert_eq!(received.into_inner(), 42);
    assert_eq!(receiver.try_recv(), Err(RecvError::Closed));
}

// pins: Q8
#[test]
fn a_select_is_a_yield() {
    let scheduler = Scheduler::start_default().unwrap();
    let (a, from_a) = channel::<u64>(0);
    let (b, from_b) = channel::<u64>(0);
    let process = scheduler.spawn(process_fn(move |_, events, out| {
        match events.next() {
            None => {
                let (a, b) = (from_a.clone(), from_b.clone());
                let first = async move { select().recv(&a, |it| it).recv(&b, |it| it).await };
                out.ask(Until::new(first), 1);
            }
            Some(Event::Completion(it)) => out.done(it.take::<Result<u64, RecvError>>()??),
            Some(_) => {}
        }
        Ok(())
    }));
    b.send_blocking(7).unwrap();
    assert_eq!(process.unwrap().wait().take::<u64>().unwrap(), 7);
    drop(a);
}
