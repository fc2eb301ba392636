//! Stops: the ends of all processes, the service until then, and the report.

mod last_commands;
mod many_processes;
mod report;
mod several_stops;
mod started_in_a_stop;
mod stop;
mod stop_from_inside;
mod stuck_close;
mod thread_locals;
