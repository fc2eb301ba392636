//! The numbers of the fields, by their messages, as Perfetto publishes them; and the numbers of
//! tracks, our own.

pub(super) mod trace {
    pub(in super::super) const PACKET: u32 = 1;
}

pub(super) mod packet {
    pub(in super::super) const TIMESTAMP: u32 = 8;
    pub(in super::super) const SEQUENCE_ID: u32 = 10;
    pub(in super::super) const TRACK_EVENT: u32 = 11;
    pub(in super::super) const INTERNED_DATA: u32 = 12;
    pub(in super::super) const SEQUENCE_FLAGS: u32 = 13;
    pub(in super::super) const PREVIOUS_PACKET_DROPPED: u32 = 42;
    pub(in super::super) const TRACK_DESCRIPTOR: u32 = 60;
    pub(in super::super) const FIRST_PACKET_ON_SEQUENCE: u32 = 87;

    /// The packet needs no texts of packets before it.
    pub(in super::super) const STATE_CLEARED: u64 = 1;
    /// The packet uses texts of packets before it.
    pub(in super::super) const NEEDS_STATE: u64 = 2;
}

/// `TrackDescriptor`, `ProcessDescriptor`, `ThreadDescriptor`, `CounterDescriptor`.
pub(super) mod track {
    pub(in super::super) const UUID: u32 = 1;
    pub(in super::super) const NAME: u32 = 2;
    pub(in super::super) const PROCESS: u32 = 3;
    pub(in super::super) const THREAD: u32 = 4;
    pub(in super::super) const PARENT_UUID: u32 = 5;
    pub(in super::super) const COUNTER: u32 = 8;

    pub(in super::super) const PROCESS_PID: u32 = 1;
    pub(in super::super) const PROCESS_NAME: u32 = 6;
    pub(in super::super) const THREAD_PID: u32 = 1;
    pub(in super::super) const THREAD_TID: u32 = 2;
    pub(in super::super) const THREAD_NAME: u32 = 5;
    pub(in super::super) const COUNTER_UNIT: u32 = 3;
    pub(in super::super) const UNIT_COUNT: u64 = 2;
}

/// `TrackEvent`.
pub(super) mod event {
    pub(in super::super) const CATEGORY_IIDS: u32 = 3;
    pub(in super::super) const DEBUG_ANNOTATIONS: u32 = 4;
    pub(in super::super) const TYPE: u32 = 9;
    pub(in super::super) const NAME_IID: u32 = 10;
    pub(in super::super) const TRACK_UUID: u32 = 11;
    pub(in super::super) const NAME: u32 = 23;
    pub(in super::super) const COUNTER_VALUE: u32 = 30;
    pub(in super::super) const FLOW_IDS: u32 = 47;
    pub(in super::super) const TERMINATING_FLOW_IDS: u32 = 48;

    pub(in super::super) const SLICE_BEGIN: u64 = 1;
    pub(in super::super) const SLICE_END: u64 = 2;
    pub(in super::super) const INSTANT: u64 = 3;
    pub(in super::super) const COUNTER: u64 = 4;
}

/// `DebugAnnotation`.
pub(super) mod annotation {
    pub(in super::super) const NAME_IID: u32 = 1;
    pub(in super::super) const UINT_VALUE: u32 = 3;
    pub(in super::super) const STRING_VALUE_IID: u32 = 17;
}

/// `InternedData`, whose messages all have an id and a text.
pub(super) mod interned {
    pub(in super::super) const EVENT_CATEGORIES: u32 = 1;
    pub(in super::super) const EVENT_NAMES: u32 = 2;
    pub(in super::super) const DEBUG_ANNOTATION_NAMES: u32 = 3;
    pub(in super::super) const DEBUG_ANNOTATION_STRING_VALUES: u32 = 29;

    pub(in super::super) const ALL: [u32; 4] = [
        EVENT_CATEGORIES,
        EVENT_NAMES,
        DEBUG_ANNOTATION_NAMES,
        DEBUG_ANNOTATION_STRING_VALUES,
    ];

    pub(in super::super) const IID: u32 = 1;
    pub(in super::super) const TEXT: u32 = 2;
}

/// Perfetto's number of the only process and of the only packet sequence.
pub(super) const ONLY: u64 = 1;
/// The track of the scheduler itself.
pub(super) const ROOT: u64 = 1;
/// The track above the tracks of all processes.
pub(super) const PROCESSES: u64 = 2;
/// The number of the first track of a trace. A thread has the number of its track.
pub(super) const FIRST: u64 = 3;
