//! All limits of the endpoint, which keep its memory and its share of a core bounded.

use std::time::Duration;

/// The connections served at a time.
pub(super) const CONNECTIONS: usize = 64;

/// The streams of events at a time, among the connections.
pub(super) const STREAMS: usize = 32;

/// The connections that are being refused at a time. Further connections wait in the system's
/// queue.
pub(super) const REFUSALS: usize = 64;

/// The bytes of a request's head.
pub(super) const HEAD: usize = 8 << 10;

/// The bytes of a head that hyper reads: a head over the limit gets a sentence, and a head over
/// this number the bare status.
pub(super) const BUFFER: usize = 2 * HEAD;

/// The bytes of a request's body.
pub(super) const BODY: usize = 64 << 10;

/// The time for a request to arrive: for its head, from the connection or the answer before, and
/// then for its body.
pub(super) const REQUEST: Duration = Duration::from_secs(5);

/// The time for an answer to be made.
pub(super) const MAKE: Duration = Duration::from_secs(10);

/// The time for an action to take effect, before its answer says that it has not yet.
pub(super) const HAPPEN: Duration = LOOK.saturating_mul(LOOKS);

/// The looks whether it has.
pub(super) const LOOKS: u32 = 200;

/// The time until the next look.
pub(super) const LOOK: Duration = Duration::from_millis(5);

/// The time of a profile.
#[cfg(feature = "profile")]
pub(super) const PROFILE: Duration = Duration::from_secs(60);

/// The time for an answer to be read by the client.
pub(super) const ANSWER: Duration = Duration::from_secs(10);

/// The time between the end of an answer and the close of its connection, in which late bytes of
/// the client are read and dropped: a close with unread bytes takes the answer away.
pub(super) const LINGER: Duration = Duration::from_secs(1);

/// The bytes dropped in this time.
pub(super) const DROPPED: usize = 1 << 20;

/// The places for processes in a portion of a pass.
pub(super) const PORTION: u32 = 4_096;

/// The longest time of a portion, if the thread has a processor.
pub(super) const PORTION_TIME: Duration = Duration::from_millis(10);

/// The share of a pass: a core divided by this number.
pub(super) const PARTS_OF_A_PASS: u32 = 10;

/// The share of all passes together: a core divided by this number, up to [`LONGEST_REST`].
pub(super) const PARTS_OF_ALL: u32 = 50;

/// The longest rest behind a pass.
pub(super) const LONGEST_REST: Duration = Duration::from_secs(2);

/// The windows at a time with a table of 16 bytes for each process, beside a window with the marks.
pub(super) const TABLES: usize = 3;

/// The different windows at most in a wait for their begin.
pub(super) const WINDOWS: usize = 8;

/// The time until the next look whether the clients of a window are still there.
pub(super) const ATTEND: Duration = Duration::from_millis(100);

/// The time of a step without a report: an answer of many processes takes some milliseconds. No
/// spare takes the worker's place, so the endpoint costs a busy thread at most.
pub(super) const STEP: Duration = Duration::from_secs(10);

/// The bytes of a token.
pub(super) const TOKEN: std::ops::RangeInclusive<usize> = 16..=256;
