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
    core.receive(&state, |_| ());
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

/// Also when a sender has counted a system event and not put it in yet.
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
