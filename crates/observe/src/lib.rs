#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

#[cfg(feature = "observer")]
mod alarms;
#[cfg(feature = "api")]
pub mod api;
#[cfg(feature = "observer")]
mod dumps;
#[cfg(feature = "serve")]
mod endpoint;
#[cfg(feature = "observer")]
mod every;
#[cfg(feature = "serve")]
mod letters;
#[cfg(feature = "observer")]
mod life;
#[cfg(any(feature = "metrics", feature = "serve"))]
mod metrics;
#[cfg(feature = "observer")]
mod observer;
#[cfg(feature = "observer")]
mod parts;
#[cfg(feature = "profile")]
mod profile;
#[cfg(feature = "observer")]
mod recent;
#[cfg(feature = "observer")]
mod recording;
#[cfg(feature = "serve")]
mod show;
#[cfg(feature = "spans")]
mod spans;
pub mod trace;
mod wire;

#[cfg(feature = "observer")]
pub use alarms::{Alarm, AlarmChange, AlarmLooker, AlarmWatch, Alarms, Kind};
#[cfg(feature = "observer")]
pub use dumps::{DumpCounts, DumpError, DumpLooker, DumpWatch, Dumps};
#[cfg(feature = "serve")]
pub use endpoint::{Endpoint, Serve, ServeError, serve};
#[cfg(feature = "observer")]
pub use ganger_wait::watch::Party;
#[cfg(feature = "serve")]
pub use letters::{KeepLetters, KeptLetter, keep_letters, keep_letters_and_tell};
#[cfg(feature = "observer")]
pub use life::{Life, LifeEvents, LifeFilter, LifeKind, life};
#[cfg(feature = "metrics")]
pub use metrics::{Metrics, Publishing, publish};
#[cfg(feature = "observer")]
pub use observer::{
    By, Counters, Group, Head, Node, Observer, ProcessDetails, Top, Tree, Wait, Waits,
};
#[cfg(feature = "cluster")]
pub use observer::{LeaseLook, NameLook, Nodes, Owners, PeerLook, StoreLook};
#[cfg(feature = "serve")]
pub use observer::{Socket, SocketKind, SocketWait, Sockets};
#[cfg(feature = "observer")]
pub use parts::Worker;
#[cfg(feature = "profile")]
pub use profile::{Profile, ProfileError};
#[cfg(feature = "serve")]
pub use show::Show;
#[cfg(feature = "spans")]
pub use spans::{StepSpans, Steps, trace_steps};
#[cfg(feature = "observer")]
pub use {
    ganger_sched::{LifeChange, LifeEvent, SupervisorChange, mark},
    recent::Recent,
    recording::NotRecording,
};
