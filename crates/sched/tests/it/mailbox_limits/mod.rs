//! Mailboxes with a limit, and senders that wait for room.

mod every_message_accounted;
mod limit_of_a_process;
mod overload;
mod room_behind_routers;
mod served_while_room_is_free;
mod steps_that_must_not_wait;
mod waiting_senders;
mod waits_that_end;
