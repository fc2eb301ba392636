//! Messages that neither reach a process nor return to their sender.

use crate::support::*;
use ganger_proc_api::{Message, process_fn};
use ganger_sched::{DeadLetter, DeadLetters, DeadReason, Instant, Scheduler};
use std::sync::{Arc, Mutex};

#[derive(Default)]
struct Noted(Mutex<Vec<DeadLetter>>);

impl DeadLetters for Noted {
    fn dead_letter(&self, letter: &DeadLetter) {
        self.0.lock().unwrap().push(letter.clone());
        assert_ne!(letter.topic.as_str(), "panic", "on purpose: sink");
    }
}

// pins: L8
#[test]
fn each_message_that_is_dropped_is_told_of_once_and_a_refused_one_is_not() {
    let noted = Arc::new(Noted::default());
    let builder = Scheduler::builder().workers(1).mailbox_limit(4);
    let scheduler = builder.dead_letters(Arc::clone(&noted) as _);
    let scheduler = scheduler.build().unwrap();
    // Takes the first alone.
    let target = process_fn(|_, events, out| {
        events.next();
        out.done(());
        Ok(())
    });
    let target = scheduler.spawn(target).unwrap();
    let pid = target.pid();
    let source = "{main|7}".parse().unwrap();
    for topic in ["taken", "panic", "left", "left too"] {
        target
            .send(Message::new(topic, ()).from_pid(source))
            .unwrap();
    }
    assert!(target.send(Message::new("refused", ())).is_err());
    target.send_control(Message::new("control", ())).unwrap();
    scheduler.start().unwrap();
    let address = target.address().clone();
    assert!(exit(target).is_done());
    assert!(address.send(Message::new("refused", ())).is_err());
    let letters = std::mem::take(&mut *noted.0.lock().unwrap());
    let at = Instant::from_nanos(0);
    let letters = letters
        .into_iter()
        .map(|it| DeadLetter::new(it.reason, it.source, it.target, it.topic, at));
    let letters: Vec<_> = letters.collect();
    let letter = |topic: &'static str| {
        DeadLetter::new(DeadReason::Ended, Some(source), pid, topic.into(), at)
    };
    // The control message has been the first.
    let expected = ["taken", "panic", "left", "left too"].map(letter);
    assert_eq!(letters, expected);
    let total = scheduler.stats().total;
    assert_eq!((total.undelivered, total.panics), (4, 1));
    // A letter from a crate above.
    scheduler.tell_of_dead_letter(&letter("late"));
    assert_eq!(*noted.0.lock().unwrap(), [letter("late")]);
}
