//! The belongings of a PID: names and inherited values. An upgrade and a restart keep them, and the
//! next process of a cell does not get them.

mod inherited_values;
mod names;
mod restarts;
mod reuse;
mod upgrade;
