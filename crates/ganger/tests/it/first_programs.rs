//! The examples to begin with: they end by themselves, and the chat room tells the right guests.

#[path = "../../examples/chat_room.rs"]
mod chat_room;
#[path = "../../examples/counter.rs"]
mod counter;
#[cfg(feature = "lock")]
#[path = "../../examples/dining.rs"]
mod dining;
#[path = "../../examples/jobs.rs"]
mod jobs;
#[path = "../../examples/philosophers.rs"]
mod philosophers;

use chat_room::{ChatRoom, Room};
use ganger::prelude::*;
use std::sync::mpsc::channel;

#[test]
fn each_ends_by_itself() {
    for program in [
        counter::main,
        philosophers::main,
        chat_room::main,
        jobs::main,
    ] {
        program().unwrap();
    }
}

#[cfg(feature = "lock")]
#[test]
fn philosophers_dine_and_a_watch_explains_the_deadlock() {
    dining::main().unwrap();
    dining::dine(true).unwrap();
}

// pins: R4
#[test]
fn a_guest_hears_what_the_others_say_while_both_are_there() {
    let scheduler = Scheduler::start_default().unwrap();
    let room = scheduler.spawn(ChatRoom::default()).unwrap();
    let (sender, lines) = channel();
    for name in ["Ann", "Bob"] {
        let sender = sender.clone();
        let guest = scheduler.spawn(actor_fn(move |_, line: String, _| {
            sender.send(format!("{name} hears: {line}"))?;
            Ok(())
        }));
        let recipient = guest.unwrap().address().recipient();
        room.send(Room::Join(name.to_owned(), recipient)).unwrap();
    }
    drop(sender);
    for name in ["Ann", "Bob"] {
        let said = Room::Say(name.to_owned(), format!("I am {name}"));
        room.send(said).unwrap();
    }
    room.send(Room::Leave("Ann".to_owned())).unwrap();
    room.send(Room::Say("Bob".to_owned(), "alone?".to_owned()))
        .unwrap();
    assert_eq!(room.call(Room::Names).wait().unwrap(), ["Bob"]);
    // The guests end with the scheduler, after their last messages.
    scheduler.stop(std::time::Duration::from_secs(60)).unwrap();
    let mut heard: Vec<_> = lines.iter().collect();
    heard.sort_by_key(|line| line.starts_with("Bob"));
    let expected = [
        "Ann hears: Bob is here",
        "Ann hears: Bob: I am Bob",
        "Bob hears: Ann: I am Ann",
        "Bob hears: Ann has left",
    ];
    assert_eq!(heard, expected);
}
