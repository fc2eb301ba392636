use super::*;
use crate::process::exit_action::ExitAction;
use ganger_proc_api::Message;

/// Does nothing.
struct Nothing;

impl ExitAction for Nothing {}

fn request() -> ExitRequest {
    ExitRequest::Add(Box::new(Nothing))
}

#[test]
fn what_is_for_no_step_is_carried_out_a_batch_at_a_time() {
    const LIMIT: usize = 16;
    const ALL: usize = 10 * LIMIT;
    let (state, counters) = (State::new(), Counters::new(false));
    let mut core = Core::default();
    for _ in 0..ALL {
        assert!(state.push(Item::Exit(request())).is_ok());
    }
    core.receive(&state, |_| 0);
    let mut before = ALL;
    while before > 0 {
        let gathered = core.gather_rare(&state, 0, LIMIT, &counters);
        assert!(matches!(gathered, Gathered::Nothing));
        let left = core.pending.len();
        assert!(
            left < before && left + LIMIT >= before,
            "{before} -> {left}"
        );
        before = left;
    }
}

#[cfg(feature = "observe")]
#[test]
fn causes_are_taken_out_a_batch_at_a_time() {
    const LIMIT: usize = 16;
    const ALL: usize = 10 * LIMIT;
    let (state, counters) = (State::new(), Counters::new(false));
    let mut core = Core::default();
    for number in 0..ALL {
        assert!(state.push(Item::Cause(Cause::new(number))).is_ok());
    }
    let message = Item::Event(Event::Message(Message::new("n", 1_u64)));
    assert!(state.push(message).is_ok());
    core.receive(&state, crate::runtime::item::count_causes);
    let mut before = core.pending.len();
    while before > 1 {
        assert_eq!(core.waiting(), 1, "the message alone");
        let gathered = core.gather_rare(&state, 0, LIMIT, &counters);
        let left = core.pending.len();
        assert!(
            left < before && left + LIMIT >= before,
            "{before} -> {left}"
        );
        let is_last = matches!(gathered, Gathered::Step(1));
        assert_eq!(is_last, left == 1);
        before = left;
    }
    assert_eq!(core.take_causes(1).len(), 128, "the most of one step");
    assert!(core.aside.is_none(), "nothing is kept for no cause");
}

/// Checks that the request stays also when a sender has counted a system event and not put it in
/// yet.
#[test]
fn who_is_to_be_told_stays_when_nothing_else_is_aside() {
    let (state, counters) = (State::new(), Counters::new(false));
    let mut core = Core::default();
    core.apply(request(), &counters);
    core.partition(Batch::new());
    let message = Item::Event(Event::Message(Message::new("n", 1_u64)));
    core.partition(Batch::of(message));
    let gathered = core.gather_rare(&state, 0, 16, &counters);
    assert!(matches!(gathered, Gathered::Step(1)));
    assert!(core.take_events(&mut Batch::new()).is_some());
}
