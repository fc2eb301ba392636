//! A trace as a time line: tracks, and entries on them by their time.
//!
//! Both formats of files have the time line entry by entry. A trace read from a file is the same.

use foldhash::HashMap;

/// Defines an enum whose variants have a text, their name in files.
macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $text:literal,)+ })+) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub(super) enum $name { $($(#[$of])* $variant,)+ }

            impl $name {
                pub(super) const ALL: &[Self] = &[$(Self::$variant),+];

                pub(super) const fn text(self) -> &'static str {
                    match self { $(Self::$variant => $text,)+ }
                }

                pub(super) fn of(text: &str) -> Option<Self> {
                    Self::ALL.iter().copied().find(|it| it.text() == text)
                }
            }
        )+
    };
}

/// The version of the file's format: of its tracks, categories and arguments.
pub const FORMAT: u64 = 1;

/// The events of a scheduler in a window of time.
#[derive(Debug, Clone)]
pub struct Trace {
    pub(super) scheduler: String,
    /// The window, in nanoseconds since the scheduler's start.
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) lost: u64,
    pub(super) left_out: u64,
    pub(super) unknown: u64,
    pub(super) names: Names,
    pub(super) tracks: Vec<Track>,
    /// By their time. Slices of a track nest, and each has its end.
    pub(super) entries: Vec<Entry>,
    pub(super) arguments: Vec<Argument>,
}

impl Trace {
    pub(super) fn arguments(&self, entry: &Entry) -> &[Argument] {
        let begin = entry.arguments as usize;
        &self.arguments[begin..begin + usize::from(entry.argument_count)]
    }
}

texts! {
    /// The subject of an entry.
    Category {
        /// A slice: a worker runs a process.
        Turn = "turn",
        /// A slice: a worker sleeps.
        Sleep = "sleep",
        /// A slice: a process is there.
        Life = "life",
        /// A slice: a process waits for a worker.
        Ready = "ready",
        /// A slice: a process waits for an event.
        Waits = "waits",
        /// A slice: a command of a process is underway.
        Yield = "yield",
        /// An instant: a process becomes ready.
        Wake = "wake",
        /// An instant: a message is sent, or taken.
        Message = "message",
        /// An instant: a timer has fired.
        Timer = "timer",
        /// An instant: processes change workers.
        Steal = "steal",
        /// An instant: a spare takes the place of a worker.
        Spare = "spare",
        /// An instant: a process is there, or gone.
        Process = "process",
        /// An instant: an alarm.
        Alarm = "alarm",
        /// An instant: a mark of a user.
        Mark = "mark",
        /// A value: the length of a queue.
        Queue = "queue",
        /// The instant at the begin of a file.
        Trace = "trace",
    }

    /// The meaning of a number or a text at an entry.
    Key {
        Process = "process",
        By = "by",
        Parent = "parent",
        Pick = "pick",
        After = "after",
        Steps = "steps",
        Cause = "cause",
        Tag = "tag",
        Late = "late (ns)",
        Victim = "victim",
        Worker = "worker",
        Count = "count",
        Value = "value",
        End = "end",
        /// The slice began before the window.
        BeganEarlier = "began earlier",
        /// The slice had not ended when the window did.
        GoesOn = "goes on",
        Format = "format",
        From = "from (ns)",
        To = "to (ns)",
        Lost = "lost",
        LeftOut = "left out",
        Unknown = "unknown",
        Entries = "entries",
    }
}

/// The subject of a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shows {
    /// A thread: a worker, or another recording thread.
    Thread,
    /// A process.
    Process,
    /// Commands of the process with this track, at most a single command at a time.
    Yields(u32),
    /// The length of a queue.
    Queue,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Track {
    pub(super) name: Name,
    pub(super) shows: Shows,
}

/// A text of a trace, by its place among them. The first is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Name(pub(super) u32);

/// An arrow between two entries. The start is before the end in the list of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    None,
    Starts(u32),
    Ends(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Begin,
    End,
    Instant,
    /// A new value of a queue's track.
    Value(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// In nanoseconds since the scheduler's start.
    pub(super) at: u64,
    pub(super) track: u32,
    pub(super) form: Form,
    pub(super) category: Category,
    /// Empty for an end and a value.
    pub(super) name: Name,
    pub(super) flow: Flow,
    /// Where the entry's arguments begin in the list of all.
    pub(super) arguments: u32,
    pub(super) argument_count: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    Number(u64),
    Text(Name),
}

pub(super) type Argument = (Key, Value);

/// The texts of a trace, each once.
#[derive(Debug, Clone)]
pub(super) struct Names {
    texts: Vec<String>,
    places: HashMap<String, Name>,
}

impl Names {
    pub(super) fn new() -> Self {
        let mut names = Self {
            texts: Vec::new(),
            places: HashMap::default(),
        };
        names.add("");
        names
    }

    /// Returns the place of a text, and adds it if it is new.
    pub(super) fn add(&mut self, text: &str) -> Name {
        if let Some(name) = self.places.get(text) {
            return *name;
        }
        let name = Name(number(self.texts.len()));
        self.texts.push(text.to_owned());
        self.places.insert(text.to_owned(), name);
        name
    }

    pub(super) fn text(&self, name: Name) -> &str {
        &self.texts[name.0 as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }
}

/// Returns a place in a list as a number. A list has fewer than 2³² items: rings and files of
/// hundreds of gigabytes would be needed for more.
pub(super) fn number(place: usize) -> u32 {
    u32::try_from(place).expect("a trace has fewer than 2^32 entries, texts and arguments")
}
