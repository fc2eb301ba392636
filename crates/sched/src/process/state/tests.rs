//! The word of a process, transition by transition.

use super::*;

const NUDGE: u8 = 9;

fn in_state(state: ProcessState) -> State<u8> {
    let word = State::new();
    let leave = match state {
        ProcessState::Ready => return word,
        _ => word.begin(),
    };
    assert_eq!(leave, Begin::Step);
    match state {
        ProcessState::Blocked => assert_eq!(word.park(Waiting::Blocked), Leave::Parked),
        ProcessState::Idle => assert_eq!(word.park(Waiting::Idle), Leave::Parked),
        ProcessState::Complete => assert!(!word.complete().0),
        ProcessState::Suspended => word.suspend(),
        ProcessState::Ready | ProcessState::Running => {}
    }
    assert_eq!(word.snapshot().state(), state);
    word
}

const ALL: [ProcessState; 5] = [
    ProcessState::Ready,
    ProcessState::Running,
    ProcessState::Blocked,
    ProcessState::Idle,
    ProcessState::Complete,
];

#[test]
fn a_wake_up_hands_the_token_out_when_nobody_has_it() {
    let owed = [
        Ok(Wake::Noted),
        Ok(Wake::Noted),
        Ok(Wake::Enqueue),
        Ok(Wake::Enqueue),
        Err(7),
    ];
    for (state, owed) in ALL.into_iter().zip(owed) {
        let word = in_state(state);
        assert_eq!(word.push(7), owed, "push in {state:?}");
        if owed == Ok(Wake::Enqueue) {
            assert_eq!(word.snapshot().state(), ProcessState::Ready);
            assert_eq!(word.push(8), Ok(Wake::Noted), "there is one token");
        }
        let word = in_state(state);
        assert_eq!(word.terminate(NUDGE), owed.ok(), "terminate in {state:?}");
        assert_eq!(word.snapshot().is_terminating(), owed.is_ok());
    }
}

#[test]
fn an_event_while_running_keeps_it_from_parking() {
    let word = in_state(ProcessState::Running);
    assert_eq!(word.push(7), Ok(Wake::Noted));
    assert_eq!(word.park(Waiting::Idle), Leave::Requeue);
    assert_eq!(word.snapshot().state(), ProcessState::Ready);
    assert_eq!(word.begin(), Begin::Step);
    assert!(word.has_events());
    assert_eq!(word.drain().into_iter().collect::<Vec<_>>(), [7]);
    assert_eq!(word.park(Waiting::Blocked), Leave::Parked);
    assert_eq!(word.snapshot().state(), ProcessState::Blocked);
}

#[test]
fn terminate_wins_over_every_way_to_go_on() {
    for leave in [State::requeue as fn(&State<u8>) -> Leave, |w| {
        w.park(Waiting::Idle)
    }] {
        let word = in_state(ProcessState::Running);
        assert_eq!(word.terminate(NUDGE), Some(Wake::Noted));
        assert_eq!(leave(&word), Leave::Terminate);
        assert!(word.complete().0);
    }
    let word = in_state(ProcessState::Idle);
    assert_eq!(word.terminate(NUDGE), Some(Wake::Enqueue));
    assert_eq!(word.begin(), Begin::Terminate);
}

// pins: P9
#[test]
fn who_terminates_what_has_been_terminated_is_told_so_when_it_has_ended() {
    let word = in_state(ProcessState::Running);
    for _ in 0..5 {
        assert_eq!(word.terminate(NUDGE), Some(Wake::Noted));
    }
    let (was_terminated, rest) = word.complete();
    assert!(was_terminated);
    let nudges = rest.into_iter().collect::<Vec<_>>();
    assert_eq!(
        nudges,
        [NUDGE],
        "more would take memory until the step is over"
    );
    assert_eq!(word.terminate(NUDGE), None);
}

#[test]
fn what_has_ended_gives_back_what_nobody_saw_and_takes_nothing() {
    let word = in_state(ProcessState::Running);
    assert_eq!(word.push(7), Ok(Wake::Noted));
    assert!(!word.is_closed());
    let (was_terminated, rest) = word.complete();
    assert!(!was_terminated && word.is_closed());
    assert_eq!(rest.into_iter().collect::<Vec<_>>(), [7]);
    assert_eq!(word.push(8), Err(8));
}

#[test]
fn marks_leave_the_phase_alone() {
    for state in ALL {
        let word = in_state(state);
        assert_eq!(word.is_unwanted(), state == ProcessState::Complete);
        assert!(!word.is_watched());
        assert_eq!(word.watch(), state == ProcessState::Complete);
        assert!(word.is_watched() && word.cancel());
        assert!(word.is_unwanted() && word.watch());
        assert!(word.claim_shutdown_notice());
        assert!(!word.claim_shutdown_notice());
        word.count_upgrade();
        word.count_upgrade();
        assert_eq!(word.snapshot().state(), state);
        assert_eq!(word.snapshot().incarnation(), 2);
    }
}
