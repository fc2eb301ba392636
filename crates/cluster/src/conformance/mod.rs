//! The cases of processes of two nodes, which hold as well within a single node: the same text for
//! each engine.
//!
//! A [`Harness`] starts two schedulers that can reach each other. Each case takes a harness and
//! fails by a panic. [`cases!`](crate::cases) makes a test of each. A case with a carrier that
//! loses, or a connection that is cut, is over at once where the harness has none.
//!
//! Schedulers run on a [`Ground`]: on threads, or in a simulation, whose machines move while a case
//! waits. So each wait of a case is a method of its ground.
//!
//! `// case: 7` above a test has its numbers in the list of cases, `xtask/conformance.txt`.
//! `cargo xtask conformance` makes the table of `docs/CLUSTER.md` from both. A case that needs a
//! hook asks for it in its own body, where the task looks for it.

#![allow(clippy::missing_panics_doc, reason = "a case fails by a panic")]

mod again;
mod calls;
mod ends;
mod functions;
mod ground;
mod groups;
mod histories;
mod large;
mod messages;
mod owners;
mod parts;
mod pauses;
mod pids;
mod races;
mod registrars;
mod room;
mod sessions;
mod starts;
mod stops;
mod stores;
mod strong;
mod twins;

pub use again::*;
pub use calls::*;
pub use ends::*;
pub use functions::*;
pub use ground::*;
pub use groups::*;
pub use histories::*;
pub use large::*;
pub use messages::*;
pub use owners::OwnerHistory;
pub use pauses::*;
pub use pids::*;
pub use races::*;
pub use registrars::{Registrars, TwinStrong};
pub use room::*;
pub use sessions::*;
pub use starts::*;
pub use stops::*;
pub use stores::*;
pub use strong::*;
pub use twins::Twins;

use crate::node::{Cluster, Types};
use ends::arrived;
use ganger_proc_api::Pid;
use ganger_sched::{Builder, Handle, Scheduler};
use std::time::Duration;

/// How long a case waits for something that comes for certain.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Two schedulers whose processes reach each other by their PIDs, or one in both roles.
pub trait Harness: Sized {
    /// Where the schedulers run: on threads, or in a simulation.
    type Ground: Ground;

    /// Starts both, as [`scheduler`] sets them up, and connects them. Each registers [`types`], and
    /// offers [`CHILD`] by [`child`].
    fn start(ground: Self::Ground) -> Self;

    /// Returns where the schedulers run.
    fn ground(&self) -> Self::Ground;

    /// Returns both schedulers, the near first.
    fn schedulers(&self) -> [&Handle; 2];

    /// Returns the scheduler of the senders and the watchers.
    fn near(&self) -> Side<Self::Ground> {
        let [near, _] = self.schedulers();
        Side {
            handle: near.clone(),
            ground: self.ground(),
        }
    }

    /// Returns the scheduler of the processes that they send to and watch.
    fn far(&self) -> Side<Self::Ground> {
        let [_, far] = self.schedulers();
        Side {
            handle: far.clone(),
            ground: self.ground(),
        }
    }

    /// Returns whether both are the same.
    fn is_one(&self) -> bool {
        false
    }

    /// Returns both as nodes of a cluster, the near first. `None`: both are the same scheduler.
    fn clusters(&self) -> Option<[&Cluster; 2]> {
        None
    }

    /// Has the carrier lose, repeat and reorder from now on. False: it can't.
    fn disturb(&self) -> bool {
        false
    }

    /// Ends the connection, so that both sides learn it within [`PATIENCE`]. False: it can't.
    fn cut(&self) -> bool {
        false
    }

    /// Starts the far scheduler again, under its name. False: it can't.
    fn restart_far(&mut self) -> bool {
        false
    }

    /// Starts as [`start`](Self::start) does, with sessions that end after this time, and with the
    /// hooks [`pause_far`](Self::pause_far), [`cut_way`](Self::cut_way) and
    /// [`throttle`](Self::throttle). `None`: the harness can't.
    fn start_frail(_ground: Self::Ground, _dead: Duration) -> Option<Self> {
        None
    }

    /// Holds the far node, or lets it go on: nothing comes from it, and what is for it waits.
    fn pause_far(&self, _is_paused: bool) {}

    /// Has all that the near node sends vanish, or pass again. The other direction is not cut.
    fn cut_way(&self, _is_cut: bool) {}

    /// Has the carrier pass no more than so many bytes a second, in each direction.
    fn throttle(&self, _bytes: u64) {}

    /// Returns the number of entries of all tables between both nodes, and of messages that wait
    /// there: for the near node, and for the far. `None`: the harness has no tables.
    fn entries(&self) -> Option<[usize; 2]> {
        None
    }

    /// Returns the PID of a far process, as the near scheduler knows it.
    fn far_pid(&self, pid: Pid) -> Pid {
        self.near().canonical(self.far().absolute(pid))
    }

    /// Returns the PID of a near process, as the far scheduler knows it.
    fn near_pid(&self, pid: Pid) -> Pid {
        self.far().canonical(self.near().absolute(pid))
    }
}

/// A value of a type with a codec.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Parcel {
    /// Any number.
    pub number: u64,
    /// Any bytes.
    pub content: Vec<u8>,
}

/// A value of a type without a codec.
#[derive(Debug, PartialEq, Eq)]
pub struct Unregistered(pub u64);

/// Registers the types of the cases.
pub fn types(types: &mut Types) {
    types
        .add::<Parcel>("conformance.parcel")
        .add::<Count>("conformance.count")
        .add::<Pay>("conformance.pay");
}

/// Returns a builder of a scheduler of a harness, with its threads.
pub fn scheduler(node: &str) -> Builder {
    settings(Scheduler::builder().workers(2).node(node))
}

/// Applies the settings of each scheduler of a harness.
pub fn settings(builder: Builder) -> Builder {
    builder
        .mailbox_limit(100)
        .allow_interventions()
        .quiet_failures()
}

/// A scheduler in both roles.
pub struct One(Scheduler);

impl Harness for One {
    type Ground = Threads;

    fn start(_: Threads) -> Self {
        let scheduler = scheduler("one").start();
        Self(scheduler.expect("the scheduler starts"))
    }

    fn ground(&self) -> Threads {
        Threads
    }

    fn schedulers(&self) -> [&Handle; 2] {
        [&self.0; 2]
    }

    fn is_one(&self) -> bool {
        true
    }
}

/// Waits on the thread for a condition that comes for certain, but without a notice.
fn eventually(what: &str, is_so: impl FnMut() -> bool) {
    Threads.eventually(what, is_so);
}

/// Makes a test of each case, for a harness. `within` names a function that calls a case with its
/// ground: [`on_threads`](crate::conformance::on_threads), or a simulation's own.
///
/// ```
/// mod one_scheduler {
///     ganger_cluster::cases!(ganger_cluster::conformance::One);
/// }
/// ```
#[macro_export]
macro_rules! cases {
    ($harness:ty) => {
        $crate::cases!(within $crate::conformance::on_threads, $harness);
    };
    (within $run:path, $harness:ty) => {
        // pins: B19, B20
        // case: 43
        #[test]
        fn far_pids_have_the_node_and_near_ones_do_not() {
            $crate::case!($run, $harness, far_pids_have_the_node_and_near_ones_do_not);
        }
        // pins: B13, B19
        // case: 43
        #[test]
        fn each_call_takes_pids_with_and_without_the_node() {
            $crate::case!($run, $harness, each_call_takes_pids_with_and_without_the_node);
        }
        // pins: B1, B16
        // case: 1
        #[test]
        fn messages_of_a_pair_keep_their_order() {
            $crate::case!($run, $harness, messages_of_a_pair_keep_their_order);
        }
        // case: 2
        #[test]
        fn messages_of_many_pairs_keep_their_order() {
            $crate::case!($run, $harness, messages_of_many_pairs_keep_their_order);
        }
        // pins: B2, B3
        // case: 4, 31
        #[test]
        fn nothing_is_lost_or_doubled_by_a_bad_carrier() {
            $crate::case!($run, $harness, nothing_is_lost_or_doubled_by_a_bad_carrier);
        }
        // pins: B21
        #[test]
        fn plain_values_and_registered_types_cross() {
            $crate::case!($run, $harness, plain_values_and_registered_types_cross);
        }
        // pins: B12, B21
        // case: 5
        #[test]
        fn what_has_no_codec_comes_back() {
            $crate::case!($run, $harness, what_has_no_codec_comes_back);
        }
        // case: 3
        #[test]
        fn control_overtakes_and_has_its_order() {
            $crate::case!($run, $harness, control_overtakes_and_has_its_order);
        }
        #[test]
        fn a_message_to_a_process_that_is_gone_is_no_error_of_the_link() {
            $crate::case!(
                $run,
                $harness,
                a_message_to_a_process_that_is_gone_is_no_error_of_the_link
            );
        }
        // pins: B23
        // case: 7
        #[test]
        fn a_full_mailbox_stops_no_other_pair() {
            $crate::case!($run, $harness, a_full_mailbox_stops_no_other_pair);
        }
        // pins: B23
        // case: 8
        #[test]
        fn a_full_mailbox_stops_no_control() {
            $crate::case!($run, $harness, a_full_mailbox_stops_no_control);
        }
        // pins: B16, B23
        // case: 5, 6, 7
        #[test]
        fn a_sender_waits_for_room_in_order() {
            $crate::case!($run, $harness, a_sender_waits_for_room_in_order);
        }
        // pins: B16
        // case: 6
        #[test]
        fn a_stop_ends_the_wait_for_room() {
            $crate::case!($run, $harness, a_stop_ends_the_wait_for_room);
        }
        // pins: B22
        // case: 9
        #[test]
        fn large_messages_keep_the_order_of_their_sender() {
            $crate::case!($run, $harness, large_messages_keep_the_order_of_their_sender);
        }
        // pins: B22
        // case: 10
        #[test]
        fn a_session_outlives_large_messages() {
            $crate::case!($run, $harness, a_session_outlives_large_messages);
        }
        // pins: B13
        // case: 11
        #[test]
        fn a_monitor_has_the_cause() {
            $crate::case!($run, $harness, a_monitor_has_the_cause);
        }
        // case: 12, 13
        #[test]
        fn a_monitor_of_what_is_not_there_says_so() {
            $crate::case!($run, $harness, a_monitor_of_what_is_not_there_says_so);
        }
        // case: 14
        #[test]
        fn a_monitor_taken_back_is_silent() {
            $crate::case!($run, $harness, a_monitor_taken_back_is_silent);
        }
        // pins: B13
        // case: 14
        #[test]
        fn a_monitor_taken_back_beside_the_end_is_told_at_most_once() {
            $crate::case!($run, $harness, a_monitor_taken_back_beside_the_end_is_told_at_most_once);
        }
        // case: 16
        #[test]
        fn of_many_monitors_each_is_told_once() {
            $crate::case!($run, $harness, of_many_monitors_each_is_told_once);
        }
        // pins: B13, B24
        // case: 15
        #[test]
        fn an_end_beside_the_end_of_the_connection_is_told_once() {
            $crate::case!($run, $harness, an_end_beside_the_end_of_the_connection_is_told_once);
        }
        // case: 18
        #[test]
        fn a_notice_in_order_is_behind_the_messages() {
            $crate::case!($run, $harness, a_notice_in_order_is_behind_the_messages);
        }
        // pins: B14
        // case: 19
        #[test]
        fn links_end_both_sides() {
            $crate::case!($run, $harness, links_end_both_sides);
        }
        // case: 19
        #[test]
        fn a_link_taken_back_is_over() {
            $crate::case!($run, $harness, a_link_taken_back_is_over);
        }
        // pins: B14
        // case: 19
        #[test]
        fn links_of_both_sides_at_once_are_one() {
            $crate::case!($run, $harness, links_of_both_sides_at_once_are_one);
        }
        // pins: B14
        // case: 19
        #[test]
        fn a_link_taken_back_beside_the_end_is_told_at_most_once() {
            $crate::case!($run, $harness, a_link_taken_back_beside_the_end_is_told_at_most_once);
        }
        // case: 22
        #[test]
        fn processes_are_cancelled_and_terminated() {
            $crate::case!($run, $harness, processes_are_cancelled_and_terminated);
        }
        // pins: B24
        // case: 17
        #[test]
        fn the_end_of_the_connection_is_told_once() {
            $crate::case!($run, $harness, the_end_of_the_connection_is_told_once);
        }
        // pins: B6
        // case: 26, 29
        #[test]
        fn a_short_pause_loses_nothing() {
            $crate::case!($run, $harness, a_short_pause_loses_nothing);
        }
        // pins: B5, B24
        // case: 27
        #[test]
        fn a_long_pause_is_told_to_both() {
            $crate::case!($run, $harness, a_long_pause_is_told_to_both);
        }
        // pins: B3, B24
        // case: 28
        #[test]
        fn a_cut_of_one_way_is_told_to_both() {
            $crate::case!($run, $harness, a_cut_of_one_way_is_told_to_both);
        }
        // pins: B15
        // case: 25
        #[test]
        fn a_stale_pid_is_not_found() {
            $crate::case!($run, $harness, a_stale_pid_is_not_found);
        }
        // pins: B25
        // case: 39
        #[test]
        fn a_stop_carries_the_last_messages() {
            $crate::case!($run, $harness, a_stop_carries_the_last_messages);
        }
        // pins: B25
        // case: 39
        #[test]
        fn a_stop_ends_in_time_though_the_peer_takes_nothing() {
            $crate::case!($run, $harness, a_stop_ends_in_time_though_the_peer_takes_nothing);
        }
        // pins: B13, B18
        // case: 40
        #[test]
        fn nothing_is_left_in_the_tables() {
            $crate::case!($run, $harness, nothing_is_left_in_the_tables);
        }
        // pins: B13
        // case: 40
        #[test]
        fn monitors_end_with_their_watchers() {
            $crate::case!($run, $harness, monitors_end_with_their_watchers);
        }
        // pins: B18
        // case: 23, 41
        #[test]
        fn a_question_has_its_answer() {
            $crate::case!($run, $harness, a_question_has_its_answer);
        }
        // pins: B18
        // case: 23, 42
        #[test]
        fn a_question_without_an_answer_has_the_cause() {
            $crate::case!($run, $harness, a_question_without_an_answer_has_the_cause);
        }
        // pins: B18
        // case: 23, 42
        #[test]
        fn a_question_taken_back_is_seen() {
            $crate::case!($run, $harness, a_question_taken_back_is_seen);
        }
        // pins: B18
        // case: 23
        #[test]
        fn a_late_answer_is_nobodys() {
            $crate::case!($run, $harness, a_late_answer_is_nobodys);
        }
        // pins: B18, B24
        // case: 23, 42
        #[test]
        fn a_question_over_a_lost_connection_says_so() {
            $crate::case!($run, $harness, a_question_over_a_lost_connection_says_so);
        }
        // pins: C6, C7
        // case: 44
        #[test]
        fn a_question_asked_twice_is_done_once() {
            $crate::case!($run, $harness, a_question_asked_twice_is_done_once);
        }
        // pins: B17, B19
        // case: 41
        #[test]
        fn references_cross_inside_of_messages() {
            $crate::case!($run, $harness, references_cross_inside_of_messages);
        }
        // pins: B30
        // case: 45
        #[test]
        fn a_far_function_answers() {
            $crate::case!($run, $harness, a_far_function_answers);
        }
        // pins: B30
        // case: 45
        #[test]
        fn a_far_function_that_does_not_answer_says_why() {
            $crate::case!($run, $harness, a_far_function_that_does_not_answer_says_why);
        }
        // pins: B30
        // case: 45
        #[test]
        fn a_far_function_sees_that_its_caller_has_left() {
            $crate::case!($run, $harness, a_far_function_sees_that_its_caller_has_left);
        }
        // pins: B26
        // case: 20
        #[test]
        fn a_process_started_elsewhere_is_monitored_from_its_first_moment() {
            $crate::case!(
                $run,
                $harness,
                a_process_started_elsewhere_is_monitored_from_its_first_moment
            );
        }
        // pins: B26
        // case: 21
        #[test]
        fn a_start_elsewhere_that_fails_says_why() {
            $crate::case!($run, $harness, a_start_elsewhere_that_fails_says_why);
        }
        // pins: B29
        // case: 20
        #[test]
        fn a_process_started_elsewhere_is_linked_from_its_first_moment() {
            $crate::case!(
                $run,
                $harness,
                a_process_started_elsewhere_is_linked_from_its_first_moment
            );
        }
        // pins: B29
        // case: 20
        #[test]
        fn a_linked_process_ends_with_an_asker_that_ends_early() {
            $crate::case!($run, $harness, a_linked_process_ends_with_an_asker_that_ends_early);
        }
        // pins: B29
        // case: 21
        #[test]
        fn a_link_of_a_start_elsewhere_ends_with_the_connection() {
            $crate::case!($run, $harness, a_link_of_a_start_elsewhere_ends_with_the_connection);
        }
        // pins: B36
        // case: 38
        #[test]
        fn groups_have_the_members_of_all_nodes() {
            $crate::case!($run, $harness, groups_have_the_members_of_all_nodes);
        }
        // pins: B37
        // case: 38
        #[test]
        fn a_broadcast_reaches_the_members_of_all_nodes() {
            $crate::case!($run, $harness, a_broadcast_reaches_the_members_of_all_nodes);
        }
        // pins: B36
        // case: 38
        #[test]
        fn members_of_a_lost_node_leave() {
            $crate::case!($run, $harness, members_of_a_lost_node_leave);
        }
        // pins: B38
        // case: 36
        #[test]
        fn a_name_of_the_cluster_is_found_everywhere() {
            $crate::case!($run, $harness, a_name_of_the_cluster_is_found_everywhere);
        }
        // pins: B38
        // case: 36
        #[test]
        fn a_name_of_the_cluster_has_one_holder_in_the_end() {
            $crate::case!($run, $harness, a_name_of_the_cluster_has_one_holder_in_the_end);
        }
    };
}

/// Calls a case, for a harness.
#[doc(hidden)]
#[macro_export]
macro_rules! case {
    ($run:path, $harness:ty, $case:ident) => {
        $run(|ground| $crate::conformance::$case::<$harness>(ground))
    };
}
