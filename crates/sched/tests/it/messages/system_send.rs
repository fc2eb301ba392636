//! System events from crates above the scheduler to processes.

use crate::support::*;
use ganger_proc_api::{Event, ExitCause, ExitNotice, Message};
use ganger_sched::{Scheduler, SystemEvent};

// pins: P13
#[test]
fn no_limit_refuses_a_system_event_and_the_room_is_right_after_it() {
    const MANY: u64 = 20;
    let builder = Scheduler::builder().workers(1).mailbox_limit(1);
    let scheduler = builder.build().unwrap();
    let mut seen = Vec::new();
    let process = process(move |_, events, out| {
        for event in events {
            match event {
                Event::Exit(exit) => seen.push(exit.tag),
                Event::Control(message) => seen.extend(message.payloads.into_first().as_u64()),
                Event::Message(_) => {
                    assert!((0..2 * MANY).eq(seen.iter().copied()), "{seen:?}");
                    out.done(());
                }
                _ => {}
            }
        }
        Ok(())
    });
    let handle = scheduler.submit(process, "main", ()).unwrap();
    let (address, pid) = (handle.address().clone(), handle.pid());
    for n in 0..MANY {
        let control = SystemEvent::Control(Message::new("n", 2 * n));
        address.send_system(control).unwrap();
        let notice = ExitNotice::new(pid, 2 * n + 1, ExitCause::Done);
        scheduler
            .send_system(pid, SystemEvent::Exit(notice))
            .unwrap();
    }
    assert!(
        address.send_control(Message::new("n", 0_u64)).is_err(),
        "it is full"
    );
    scheduler.start().unwrap();
    until_state(&scheduler, pid, ganger_sched::ProcessState::Idle);
    // All places are free again.
    address.send(Message::new("end", ())).unwrap();
    assert!(exit(handle).is_done());
    let late = address.send_system(SystemEvent::Control(Message::new("n", 7_u64)));
    let late = late.unwrap_err();
    assert!(matches!(*late.event, SystemEvent::Control(message) if message.topic == "n"));
    let notice = ExitNotice::new(pid, 9, ExitCause::Done);
    let late = scheduler.send_system(pid, SystemEvent::Exit(notice.clone()));
    assert!(matches!(*late.unwrap_err().event, SystemEvent::Exit(it) if it == notice));
}
