//! Looks at a running scheduler: they show its figures and disturb none of its work.

#[cfg(feature = "observe")]
mod counts;
mod dump;
#[cfg(feature = "observe")]
mod inspect;
#[cfg(feature = "observe")]
mod suspend;
#[cfg(feature = "observe")]
mod traced;
#[cfg(feature = "observe")]
mod watched;
