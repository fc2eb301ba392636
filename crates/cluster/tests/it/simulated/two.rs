//! The cases between two machines, over a twin.

use super::cases::Two;
use super::play::sim;
use super::troubled;
use ganger_cluster::Twin;
use ganger_sim::World;

fn two<'w, 'a>(world: &'w World<'a>) -> Two<'w, 'a> {
    let twin = Twin::new(0);
    twin.faults(troubled());
    world.carrier(twin.clone());
    Two::start(world, move |_| twin.port())
}

// pins: B13
// case: 11, 22
#[test]
fn a_monitor_has_the_cause() {
    sim().check_worlds(5, |world| two(world).a_monitor_has_the_cause());
}

// pins: B13
// case: 12, 13
#[test]
fn a_monitor_of_what_is_not_there_says_so() {
    sim().check_worlds(5, |world| {
        two(world).a_monitor_of_what_is_not_there_says_so();
    });
}

// pins: B13
// case: 14
#[test]
fn a_monitor_taken_back_is_silent() {
    sim().check_worlds(5, |world| two(world).a_monitor_taken_back_is_silent());
}

// pins: B1
// case: 2
#[test]
fn messages_of_many_pairs_keep_their_order() {
    sim().check_worlds(5, |world| {
        two(world).messages_of_many_pairs_keep_their_order();
    });
}

// pins: B18
// case: 23, 41, 42
#[test]
fn a_question_has_one_answer_whatever_ends_it() {
    sim().check_worlds(5, |world| {
        two(world).a_question_has_one_answer_whatever_ends_it();
    });
}
