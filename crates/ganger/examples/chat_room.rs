//! A chat room: all other guests hear each line of a guest. `cargo run -p ganger --example
//! chat_room`

use ganger::prelude::*;
use std::collections::BTreeMap;

pub(crate) enum Room {
    Join(String, Recipient<String>),
    Say(String, String),
    Leave(String),
    Names(Reply<Vec<String>>),
}

/// Has an address for the lines to each guest.
#[derive(Default)]
pub(crate) struct ChatRoom(BTreeMap<String, Recipient<String>>);

impl ChatRoom {
    /// Sends a line to the other guests. A guest that has ended hears nothing.
    fn tell_others(&self, name: &str, line: &str) {
        for (_, guest) in self.0.iter().filter(|(other, _)| *other != name) {
            let _ = guest.send(line.to_owned());
        }
    }
}

impl Actor for ChatRoom {
    type Message = Room;

    fn receive(&mut self, _: &Context, message: Room, _: &mut StepOutput) -> StepResult {
        match message {
            Room::Join(name, guest) => {
                self.tell_others(&name, &format!("{name} is here"));
                self.0.insert(name, guest);
            }
            Room::Say(name, text) => self.tell_others(&name, &format!("{name}: {text}")),
            Room::Leave(name) => {
                self.0.remove(&name);
                self.tell_others(&name, &format!("{name} has left"));
            }
            Room::Names(reply) => reply.complete(self.0.keys().cloned().collect()),
        }
        Ok(())
    }
}

pub(crate) fn main() -> Result<(), BoxError> {
    let scheduler = Scheduler::start_default()?;
    let room = scheduler.spawn(ChatRoom::default())?;
    for name in ["Ann", "Bob", "Cleo"] {
        let guest = scheduler.spawn(actor_fn(move |_, line: String, _| {
            println!("{name} hears: {line}");
            Ok(())
        }))?;
        room.send(Room::Join(name.to_owned(), guest.address().recipient()))?;
    }
    room.send(Room::Say("Bob".to_owned(), "hello".to_owned()))?;
    room.send(Room::Leave("Ann".to_owned()))?;
    println!("left: {:?}", room.call(Room::Names).wait()?);
    Ok(())
}
