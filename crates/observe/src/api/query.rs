//! The query of `/api/v1/processes`.

use super::mistake::{QueryError, shown};
use super::order::{By, read_window, write_window};
use super::state::State;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The number of processes without a wish.
const TOP: u32 = 50;

/// The most processes in an answer.
const MOST: u32 = 1_000;

/// The most bytes of a filter.
const LONGEST_FILTER: usize = 256;

/// A query: a choice of processes, and their order.
///
/// ```
/// use ganger_observe::api::{By, ProcessesQuery};
///
/// let query: ProcessesQuery = "top=10&by=quiet&filter=state:blocked+store".parse()?;
/// assert_eq!((query.top, query.by), (10, By::Quiet));
/// assert_eq!(query.filter.terms().len(), 2);
/// assert_eq!(query.to_string().parse(), Ok(query));
/// # Ok::<(), ganger_observe::api::QueryError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessesQuery {
    /// The number of processes in the answer, from 1 to 1,000. Default: 50.
    pub top: u32,
    /// The order. Default: by mailbox.
    pub by: By,
    /// The time in which steps, events, busy time and growth are counted, from a millisecond to a
    /// minute. It begins with the question. Default: none, so that all since the start of each
    /// process counts. Other orders have no window.
    pub window: Option<Duration>,
    /// The processes. Default: all.
    pub filter: Filter,
    /// The number of the scheduler. Default: all.
    pub scheduler: Option<u64>,
}

/// A condition for processes: all terms hold. The text has spaces between the terms.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    terms: Vec<Term>,
}

/// A term of a filter: `text`, or `field:text`. With `-` before it, the term must not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// Whether the rest must not hold.
    pub is_not: bool,
    /// The field with the text; without a name any field but the state and the parent.
    pub field: Option<Field>,
    /// A part of the field, in any case of ASCII letters; of a state, the whole name.
    pub text: String,
}

/// A field of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// The state, by its whole name.
    State,
    /// The name of the type.
    Type,
    /// The entry point.
    Method,
    /// A name of the process, also as a child of its supervisor.
    Name,
    /// The PID.
    Pid,
    /// The PID of the parent.
    Parent,
    /// The label for its accounts.
    Label,
}

impl Default for ProcessesQuery {
    fn default() -> Self {
        Self {
            top: TOP,
            by: By::default(),
            window: None,
            filter: Filter::default(),
            scheduler: None,
        }
    }
}

impl FromStr for ProcessesQuery {
    type Err = QueryError;

    /// Reads a query as it is in an address, behind the `?`. O(length).
    fn from_str(text: &str) -> Result<Self, QueryError> {
        let mut query = Self::default();
        let mut seen = [false; 5];
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            let place = match &*name {
                "top" => {
                    let number = value.parse().ok();
                    let number = number.filter(|it| (1..=MOST).contains(it));
                    query.top = number.ok_or_else(|| QueryError::Top(shown(&value)))?;
                    0
                }
                "by" => {
                    query.by = value.parse()?;
                    1
                }
                "filter" => {
                    query.filter = value.parse()?;
                    2
                }
                "scheduler" => {
                    let number = value.parse().ok();
                    let wrong = || QueryError::Scheduler(shown(&value));
                    query.scheduler = Some(number.ok_or_else(wrong)?);
                    3
                }
                "window" => {
                    query.window = Some(read_window(&value)?);
                    4
                }
                _ => return Err(QueryError::Unknown(shown(&name))),
            };
            if std::mem::replace(&mut seen[place], true) {
                return Err(QueryError::Twice(name.into_owned()));
            }
        }
        Ok(query)
    }
}

/// The query as it is in an address, behind the `?`.
impl fmt::Display for ProcessesQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = form_urlencoded::Serializer::new(String::new());
        text.append_pair("top", &self.top.to_string());
        text.append_pair("by", self.by.name());
        if let Some(window) = self.window {
            text.append_pair("window", &write_window(window));
        }
        if !self.filter.terms.is_empty() {
            text.append_pair("filter", &self.filter.to_string());
        }
        if let Some(scheduler) = self.scheduler {
            text.append_pair("scheduler", &scheduler.to_string());
        }
        f.write_str(&text.finish())
    }
}

impl Filter {
    /// Returns the terms.
    #[must_use]
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }
}

impl FromStr for Filter {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Self, QueryError> {
        if text.len() > LONGEST_FILTER {
            return Err(QueryError::LongFilter(text.len()));
        }
        let terms = text.split_whitespace().map(str::parse);
        let terms = terms.collect::<Result<_, _>>()?;
        Ok(Self { terms })
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(f, "{space}{term}")?;
        }
        Ok(())
    }
}

impl FromStr for Term {
    type Err = QueryError;

    fn from_str(term: &str) -> Result<Self, QueryError> {
        let (is_not, rest) = match term.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, term),
        };
        // A type's name has colons in pairs: `store::Shelf` names no field.
        let split = rest
            .split_once(':')
            .filter(|(_, text)| !text.starts_with(':'));
        let (field, text) = match split {
            Some((field, text)) => (Some(field.parse()?), text),
            None => (None, rest),
        };
        if text.is_empty() {
            return Err(QueryError::NoText(shown(term)));
        }
        if field == Some(Field::State) && State::named(text).is_none() {
            return Err(QueryError::State(shown(text)));
        }
        let text = text.to_owned();
        Ok(Self {
            is_not,
            field,
            text,
        })
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_not {
            f.write_str("-")?;
        }
        if let Some(field) = self.field {
            write!(f, "{}:", field.name())?;
        }
        f.write_str(&self.text)
    }
}

impl State {
    /// Returns the state with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let all = [
            Self::Ready,
            Self::Running,
            Self::Blocked,
            Self::Idle,
            Self::Suspended,
        ];
        all.into_iter().find(|it| it.name() == name)
    }
}

impl Field {
    fn name(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Type => "type",
            Self::Method => "method",
            Self::Name => "name",
            Self::Pid => "pid",
            Self::Parent => "parent",
            Self::Label => "label",
        }
    }
}

impl FromStr for Field {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Self, QueryError> {
        let all = [
            Self::State,
            Self::Type,
            Self::Method,
            Self::Name,
            Self::Pid,
            Self::Parent,
            Self::Label,
        ];
        let found = all.into_iter().find(|it| it.name() == text);
        found.ok_or_else(|| QueryError::Field(shown(text)))
    }
}
