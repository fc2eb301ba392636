//! Yields taken back by their tag, and processes that give way.

use crate::support::*;
use ganger_proc_api::{BoxError, Command, CommandId, Completer, EndWatch, Event, Handler, Message};
use ganger_sched::{Builder, Scheduler};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

const ASK: CommandId = CommandId::new(1000);

/// Passes its completers to the test.
struct Pass(Mutex<Sender<Completer>>);

impl Handler for Pass {
    fn handle(&self, _: Command, completer: Completer) -> Result<(), BoxError> {
        Ok(self.0.lock().unwrap().send(completer)?)
    }
}

fn started(builder: Builder) -> (Scheduler, Receiver<Completer>) {
    let scheduler = builder.workers(1).build().unwrap();
    let (sender, completers) = channel();
    let handler = Pass(Mutex::new(sender));
    scheduler.register(ASK, "ask", handler).unwrap();
    scheduler.start().unwrap();
    (scheduler, completers)
}

fn next(completers: &Receiver<Completer>) -> Completer {
    completers.recv_timeout(PATIENCE).unwrap()
}

/// Has the puppet yield with these tags.
fn asks(strings: &puppet::Strings, tags: &'static [u64]) {
    strings.have(move |_, out| {
        for &tag in tags {
            out.yield_command(Command::new(ASK, ()), tag);
        }
        Ok(())
    });
}

// pins: P6, P7
#[test]
fn what_is_taken_back_does_not_complete_and_its_handler_knows() {
    let (scheduler, completers) = started(Scheduler::builder());
    let (seen, completions) = channel();
    let mut begins = true;
    let asker = process(move |_, events, out| {
        if std::mem::take(&mut begins) {
            for tag in [7, 8, 7] {
                out.yield_command(Command::new(ASK, ()), tag);
            }
        }
        for event in events {
            match event {
                Event::Message(message) => {
                    out.cancel(message.payloads.into_first().as_u64().unwrap());
                }
                Event::Completion(completion) => seen.send(completion.tag)?,
                _ => out.done(()),
            }
        }
        Ok(())
    });
    let asker = scheduler.submit(asker, "main", ()).unwrap();
    let [first, other, second] = [(); 3].map(|()| next(&completers));
    let (told, tells) = channel();
    let on_end = |completer: &Completer| -> EndWatch {
        let (told, tag) = (told.clone(), completer.tag());
        completer.on_end(move || told.send(tag).unwrap()).unwrap()
    };
    let _watches = [on_end(&first), on_end(&other)];
    let late = second;
    assert!(![&first, &other, &late].iter().any(|it| it.is_cancelled()));
    for _ in 0..2 {
        // The second time no yield is left.
        asker.send(Message::new("cancel", 7_u64)).unwrap();
    }
    assert_eq!(tells.recv_timeout(PATIENCE).unwrap(), 7);
    assert!(first.is_cancelled() && late.is_cancelled() && !other.is_cancelled());
    // A later request for a notice is served as well.
    let _watch = on_end(&late);
    assert_eq!(tells.recv_timeout(PATIENCE).unwrap(), 7);
    first.complete(1_u64);
    drop(late);
    other.complete(2_u64);
    assert_eq!(completions.recv_timeout(PATIENCE).unwrap(), 8);
    scheduler.cancel(asker.pid(), "enough").unwrap();
    drop(exit(asker));
    // The handler of the answered yield has kept its watch.
    assert_eq!(tells.try_iter().collect::<Vec<_>>(), [8]);
    assert!(completions.try_recv().is_err());
    assert_eq!(scheduler.stats().total.stale_completions, 2);
}

/// Checks completions in the mailbox when the process takes their yields back, and a completion
/// left by a step.
// pins: P7
#[test]
fn a_completion_in_the_mailbox_is_taken_back_too() {
    let (scheduler, completers) = started(Scheduler::builder());
    let (inside, is_inside) = channel();
    let (go, goes) = channel::<()>();
    let (seen, completions) = channel();
    let mut step = 0;
    let asker = process(move |_, events, out| {
        step += 1;
        match step {
            1 => (0..3).for_each(|_| out.yield_command(Command::new(ASK, ()), 7)),
            // The step leaves the completion by which it was woken.
            2 => {
                assert_eq!(events.len(), 1);
                inside.send(())?;
                goes.recv_timeout(PATIENCE)?;
                out.cancel(7);
                out.yield_command(Command::new(ASK, ()), 7);
            }
            _ => {
                for event in events {
                    let Event::Completion(completion) = event else {
                        continue;
                    };
                    seen.send(completion.result.unwrap().as_u64())?;
                    out.done(());
                }
            }
        }
        Ok(())
    });
    let asker = scheduler.submit(asker, "main", ()).unwrap();
    let [first, second, third] = [(); 3].map(|()| next(&completers));
    first.complete(1_u64);
    is_inside.recv_timeout(PATIENCE).unwrap();
    second.complete(2_u64);
    go.send(()).unwrap();
    let fourth = next(&completers);
    assert!(third.is_cancelled() && !fourth.is_cancelled());
    third.complete(3_u64);
    fourth.complete(4_u64);
    assert!(exit(asker).is_done());
    assert_eq!(completions.iter().collect::<Vec<_>>(), [Some(4)]);
    assert_eq!(scheduler.stats().total.stale_completions, 3);
}

// pins: P3, P6
#[test]
fn a_yield_of_the_same_step_is_not_carried_out() {
    let (scheduler, completers) = started(Scheduler::builder());
    let strings = puppet::puppet(&scheduler);
    strings.have(|_, out| {
        for tag in [1, 2, 3, 2] {
            out.yield_command(Command::new(ASK, ()), tag);
        }
        out.cancel(2);
        out.yield_command(Command::new(ASK, ()), 2);
        Ok(())
    });
    assert_eq!([(); 3].map(|()| next(&completers).tag()), [1, 3, 2]);
    asks(&strings, &[4]);
    assert_eq!(next(&completers).tag(), 4);
    scheduler.cancel(strings.pid(), "enough").unwrap();
    drop(exit(strings.handle));
    assert!(completers.try_recv().is_err());
}

/// Checks an upgrade, after which the process continues, and so do its entries at handlers.
// pins: P7, P12
#[test]
fn what_was_taken_back_stays_so_after_an_upgrade_and_after_the_end() {
    let (scheduler, completers) = started(Scheduler::builder());
    let strings = puppet::puppet(&scheduler);
    asks(&strings, &[1, 2]);
    let [taken, kept] = [(); 2].map(|()| next(&completers));
    strings.have(|_, out| {
        out.cancel(1);
        Ok(())
    });
    until("the handler knows", || taken.is_cancelled());
    let heir = ganger_proc_api::UpgradeRequest::process(waiter(), "main", ());
    scheduler.upgrade(strings.pid(), heir).unwrap();
    until("it is replaced", || {
        scheduler.process(strings.pid()).unwrap().incarnation == 1
    });
    assert!(taken.is_cancelled() && !kept.is_cancelled());
    scheduler.cancel(strings.pid(), "enough").unwrap();
    drop(exit(strings.handle));
    assert!(taken.is_cancelled() && kept.is_cancelled());
    taken.complete(());
    kept.complete(());
    assert_eq!(scheduler.stats().total.stale_completions, 2);
}

/// Has a single worker take all three from the global queue, first the process that gives way. A
/// continuing process is on top of the worker's deque.
// pins: P3, G3
#[test]
fn a_process_that_gives_way_is_behind_the_others() {
    let builder = Scheduler::builder().workers(1).rotation(1_000_000);
    let scheduler = builder.build().unwrap();
    let left = Arc::new(AtomicU64::new(2));
    let polite = {
        let (left, mut steps) = (Arc::clone(&left), 0_u64);
        process(move |_, _, out| {
            out.yield_now();
            if left.load(Ordering::Relaxed) == 0 {
                out.done(steps);
            }
            steps += 1;
            Ok(())
        })
    };
    let polite = scheduler.submit(polite, "main", ()).unwrap();
    for _ in 0..2 {
        let (left, mut steps) = (Arc::clone(&left), 0);
        let busy = process(move |_, _, out| {
            steps += 1;
            out.step_again();
            if steps == 100 {
                left.fetch_sub(1, Ordering::Relaxed);
                out.done(());
            }
            Ok(())
        });
        drop(scheduler.submit(busy, "main", ()).unwrap());
    }
    scheduler.start().unwrap();
    // The clock may have the worker rotate now and then.
    assert!(exit_number(polite) < 50, "it was first all the time");
}

/// Checks that a lone process is served at once, again and again.
// pins: G2, P3
#[test]
fn a_lone_process_that_gives_way_goes_on() {
    let scheduler = start(2);
    let mut steps = 0_u64;
    let polite = process(move |_, _, out| {
        steps += 1;
        out.yield_now();
        if steps == 10_000 {
            out.done(steps);
        }
        Ok(())
    });
    assert_eq!(
        exit_number(scheduler.submit(polite, "main", ()).unwrap()),
        10_000
    );
}
