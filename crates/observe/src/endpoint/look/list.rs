//! Lists of processes: the first of all processes behind a filter, in an order.
//!
//! **Protocol.** A list sees each process once, and keeps the first in a heap, by their places. At
//! the end it looks at the kept processes again, for all other fields of the answer, and leaves out
//! ended processes.

use super::children::{Named, Names, contains};
use super::one::{self, state};
use super::{count, nanos};
use crate::api::{By, Field, Filter, Process, Processes, ProcessesQuery, State, Term, VERSION};
use crate::endpoint::observed::Shown;
use ganger_proc_api::Pid;
use ganger_sched::{Instant, ProcessCounts, ProcessLook};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write as _;

/// The questions of a list to a process.
pub(in crate::endpoint) trait Seen {
    fn pid(&self) -> Pid;
    fn parent(&self) -> Option<Pid>;
    fn state(&self) -> State;
    fn type_name(&self) -> &str;
    fn has_method(&self, part: &str) -> bool;
    fn has_name(&self, part: &str) -> bool;
    fn has_label(&self, part: &str) -> bool;
    /// Returns the value by which a process is ordered, if it is known; the most comes first.
    fn value(&self, by: By) -> Option<u64>;
}

/// A live process, and the moment of the look.
#[derive(Clone, Copy)]
pub(in crate::endpoint) struct Live<'a> {
    pub(in crate::endpoint) look: ProcessLook<'a>,
    pub(in crate::endpoint) now: Instant,
}

impl Seen for Live<'_> {
    fn pid(&self) -> Pid {
        self.look.pid()
    }

    fn parent(&self) -> Option<Pid> {
        self.look.parent()
    }

    fn state(&self) -> State {
        state(self.look.state())
    }

    fn type_name(&self) -> &str {
        self.look.type_name()
    }

    fn has_method(&self, part: &str) -> bool {
        contains(self.look.method().as_str(), part)
    }

    fn has_name(&self, part: &str) -> bool {
        self.look.any_name(|name| contains(name, part))
    }

    fn has_label(&self, part: &str) -> bool {
        self.look.label().is_some_and(|it| contains(&it, part))
    }

    fn value(&self, by: By) -> Option<u64> {
        let of = |value: fn(ProcessCounts) -> u64| self.look.counts_at(self.now).map(value);
        // A task takes all events at once, and leaves the later events for later waits.
        let left = count(self.look.waiting());
        match by {
            By::Mailbox => Some(of(|it| it.waiting).map_or(left, |it| it.max(left))),
            By::Quiet => self.look.ran_before().map(nanos),
            By::Pid => None,
            By::Steps => of(|it| it.steps),
            By::Events => of(|it| it.events),
            By::Busy => of(|it| nanos(it.busy)),
            By::Growth => of(|it| it.waiting).map(|it| it.max(left)),
            By::Age => of(|it| nanos(it.age)),
        }
    }
}

/// The place of a process in a list, the first the greatest: by its value, and then by scheduler
/// and PID.
type Place = (Option<u64>, Reverse<(u64, u64)>);

/// A list, while a pass makes it.
pub(in crate::endpoint) struct List {
    query: ProcessesQuery,
    named: Named,
    live: u64,
    matched: u64,
    /// The last of these on top.
    first: BinaryHeap<Reverse<(Place, Pid)>>,
    /// For the texts of PIDs.
    text: String,
}

impl List {
    pub(in crate::endpoint) fn new(query: ProcessesQuery, schedulers: &[Shown]) -> Self {
        let most = query.top as usize;
        Self {
            named: Named::new(&query.filter, schedulers),
            query,
            live: 0,
            matched: 0,
            first: BinaryHeap::with_capacity(most),
            text: String::new(),
        }
    }

    /// Sees a process of a scheduler. `before` is its value at the begin of the window; 0 without a
    /// window.
    pub(in crate::endpoint) fn see(&mut self, scheduler: u64, process: &impl Seen, before: u64) {
        if self.query.scheduler.is_some_and(|it| it != scheduler) {
            return;
        }
        self.live += 1;
        let pid = process.pid();
        let is_named = |term| self.named.has(term, scheduler, pid);
        if !passes(&self.query.filter, process, is_named, &mut self.text) {
            return;
        }
        self.matched += 1;
        let value = process.value(self.query.by);
        let value = value.map(|now| now.saturating_sub(before));
        let new = Reverse(((value, Reverse((scheduler, pid.id()))), pid));
        if self.first.len() < self.query.top as usize {
            self.first.push(new);
        } else if let Some(mut last) = self.first.peek_mut()
            && new < *last
        {
            *last = new;
        }
    }

    /// Returns the answer. O(its processes, and all children).
    pub(in crate::endpoint) fn finish(self, schedulers: &[Shown]) -> Processes {
        let kept = self.first.iter();
        let kept = kept.map(|Reverse(((_, Reverse((scheduler, _))), pid))| (*scheduler, *pid));
        let names = Names::of(&kept.collect(), schedulers);
        self.finish_with(|scheduler, pid| {
            let shown = schedulers.iter().find(|it| it.number == scheduler)?;
            let handle = &shown.handle;
            let mut process = handle.look_at(pid, |it| one::process(scheduler, it))?;
            names.add_to((scheduler, pid), &mut process);
            Some(process)
        })
    }

    fn finish_with(self, process: impl Fn(u64, Pid) -> Option<Process>) -> Processes {
        let sorted = self.first.into_sorted_vec().into_iter();
        let processes = sorted.filter_map(|Reverse(((value, Reverse(place)), pid))| {
            let process = process(place.0, pid)?;
            Some(Process { value, ..process })
        });
        Processes {
            version: VERSION,
            live: self.live,
            matched: self.matched,
            processes: processes.collect(),
        }
    }
}

/// Returns whether the filter lets a process pass. `is_named` says whether the process has the text
/// of the term in that place in its name as a child.
fn passes(
    filter: &Filter,
    process: &impl Seen,
    is_named: impl Fn(usize) -> bool,
    text: &mut String,
) -> bool {
    let mut terms = filter.terms().iter().enumerate();
    terms.all(|(at, term)| (is_named(at) || has(process, term, text)) != term.is_not)
}

/// Returns whether a field of the process has the text. `buffer` is for PIDs.
fn has(process: &impl Seen, term: &Term, buffer: &mut String) -> bool {
    let part = &*term.text;
    let mut pid = |pid: Pid| {
        buffer.clear();
        // A string takes all.
        let _ = write!(buffer, "{pid}");
        contains(buffer, part)
    };
    let kind = || contains(process.type_name(), part);
    match term.field {
        // Labels and names last: they are behind locks.
        None => {
            kind()
                || process.has_method(part)
                || pid(process.pid())
                || process.has_label(part)
                || process.has_name(part)
        }
        Some(Field::State) => process.state().name() == part,
        Some(Field::Type) => kind(),
        Some(Field::Method) => process.has_method(part),
        Some(Field::Name) => process.has_name(part),
        Some(Field::Pid) => pid(process.pid()),
        Some(Field::Parent) => process.parent().is_some_and(pid),
        Some(Field::Label) => process.has_label(part),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ganger_proc_api::{HostName, process_fn};
    use ganger_sched::{Observe, Scheduler};
    use proptest::collection::vec;
    use proptest::prelude::*;

    const TYPES: [&str; 3] = ["store::Shelf", "store::Door", "Worker<u64>"];
    const STATES: [State; 4] = [State::Ready, State::Running, State::Blocked, State::Idle];

    /// A process, drawn; the counts are those of an observed scheduler.
    #[derive(Debug, Clone)]
    struct Drawn {
        kind: usize,
        state: usize,
        has_name: bool,
        has_label: bool,
        waiting: u64,
        quiet: Option<u64>,
        counts: Option<[u64; 4]>,
        before: u64,
    }

    /// With its PID.
    #[derive(Debug, Clone)]
    struct Model(Pid, Drawn);

    fn drawn() -> impl Strategy<Value = Drawn> {
        (
            (0..3_usize, 0..4_usize, any::<[bool; 2]>(), 0..4_u64),
            prop::option::of(0..4_u64),
            prop::option::weighted(0.8, any::<[u8; 4]>()),
            0..3_u64,
        )
            .prop_map(
                |((kind, state, [has_name, has_label], waiting), quiet, counts, before)| Drawn {
                    kind,
                    state,
                    has_name,
                    has_label,
                    waiting,
                    quiet,
                    counts: counts.map(|it| it.map(|it| u64::from(it) % 5)),
                    before,
                },
            )
    }

    impl Seen for Model {
        fn pid(&self) -> Pid {
            self.0
        }

        fn parent(&self) -> Option<Pid> {
            self.1.has_name.then(|| Pid::new(self.0.host(), 5))
        }

        fn state(&self) -> State {
            STATES[self.1.state]
        }

        fn type_name(&self) -> &str {
            TYPES[self.1.kind]
        }

        fn has_method(&self, part: &str) -> bool {
            contains("main", part)
        }

        fn has_name(&self, part: &str) -> bool {
            self.1.has_name && contains("Door", part)
        }

        fn has_label(&self, part: &str) -> bool {
            self.1.has_label && contains("Tenant-7", part)
        }

        fn value(&self, by: By) -> Option<u64> {
            let Drawn {
                waiting,
                quiet,
                counts,
                ..
            } = self.1;
            match by {
                By::Mailbox => Some(waiting),
                By::Quiet => quiet,
                By::Pid => None,
                By::Steps => counts.map(|it| it[0]),
                By::Events => counts.map(|it| it[1]),
                By::Busy => counts.map(|it| it[2]),
                By::Growth => counts.map(|_| waiting),
                By::Age => counts.map(|it| it[3]),
            }
        }
    }

    /// Returns whether a term holds, in the plainest way.
    fn holds(term: &str, it: &Model) -> bool {
        if let Some(rest) = term.strip_prefix('-') {
            return !holds(rest, it);
        }
        let has = |text: &str, part: &str| text.to_lowercase().contains(&part.to_lowercase());
        let name = if it.1.has_name { "Door" } else { "" };
        let label = if it.1.has_label { "Tenant-7" } else { "" };
        match term.split_once(':') {
            Some(("state", state)) => it.state().name() == state,
            Some(("type", part)) => has(it.type_name(), part),
            Some(("name", part)) => has(name, part),
            Some(("label", part)) => has(label, part),
            Some(("pid", part)) => has(&it.0.to_string(), part),
            Some(("parent", part)) => it.parent().is_some_and(|it| has(&it.to_string(), part)),
            _ => {
                let pid = it.0.to_string();
                let all = [it.type_name(), "main", name, label, &pid];
                all.iter().any(|text| has(text, term))
            }
        }
    }

    fn queries() -> impl Strategy<Value = String> {
        let term = "-?(shelf|STORE|tenant|type:store|state:idle|state:ready|name:door|pid:7\
                    |parent:5|label:TENANT)";
        let filter = vec(term, 0..4).prop_map(|terms| terms.join("+"));
        let by = "mailbox|quiet|pid|steps|events|busy|growth|age";
        (1..12_u32, by, filter, prop::option::of(1..4_u64)).prop_map(
            |(top, by, filter, scheduler)| {
                let scheduler = scheduler.map(|it| format!("&scheduler={it}"));
                let scheduler = scheduler.unwrap_or_default();
                format!("top={top}&by={by}&filter={filter}{scheduler}")
            },
        )
    }

    fn plain(scheduler: u64, pid: Pid) -> Process {
        let json = serde_json::json!({
            "scheduler": scheduler, "pid": pid.to_string(), "state": "idle", "method": "",
            "type_name": "", "names": [], "parent": null, "incarnation": 0,
            "is_cancelled": false, "is_terminating": false, "left": 0, "queued": null,
            "quiet_ns": null,
        });
        serde_json::from_value(json).unwrap()
    }

    // pins: V1, V11
    #[test]
    fn a_list_is_what_a_plain_sort_of_all_gives() {
        let host = HostName::new("main").unwrap();
        let config = ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        proptest!(config, |(sizes in vec(vec(drawn(), 0..12), 0..3), text in queries())| {
            let all: Vec<(u64, Model)> = (1..).zip(sizes).flat_map(|(scheduler, all)| {
                let each = all.into_iter().zip(0..);
                each.map(move |(it, id)| (scheduler, Model(Pid::new(host, id), it)))
            }).collect();
            let query: ProcessesQuery = text.parse().unwrap();
            let mut list = List::new(query.clone(), &[]);
            // The order in which they are seen does not matter.
            for (scheduler, it) in all.iter().rev() {
                list.see(*scheduler, it, it.1.before);
            }
            let seen = list.finish_with(|scheduler, pid| Some(plain(scheduler, pid)));

            let is_asked = |at: u64| query.scheduler.is_none_or(|number| at == number);
            let asked: Vec<_> = all.iter().filter(|it| is_asked(it.0)).collect();
            let filter = query.filter.to_string();
            let passes = |it: &Model| filter.split_whitespace().all(|term| holds(term, it));
            // In the order of schedulers and PIDs already.
            let mut found: Vec<_> = asked.iter().filter(|it| passes(&it.1)).collect();
            let value = |it: &Model| {
                it.value(query.by).map(|now| now.saturating_sub(it.1.before))
            };
            found.sort_by_key(|it| Reverse(value(&it.1)));
            prop_assert_eq!(seen.live, asked.len() as u64);
            prop_assert_eq!(seen.matched, found.len() as u64);
            let first = found.iter().take(query.top as usize);
            let first: Vec<_> = first.map(|it| {
                Process { value: value(&it.1), ..plain(it.0, it.1.0) }
            }).collect();
            prop_assert_eq!(seen.processes, first);
        });
    }

    // pins: V11
    #[test]
    fn a_process_is_seen_as_it_is() {
        let idle = || process_fn(|_, _, _| Ok(()));
        for (level, has_counts) in [(Observe::Off, false), (Observe::Counts, true)] {
            let scheduler = Scheduler::builder().observe(level).build().unwrap();
            let process = scheduler.spawner().labelled("Tenant-7");
            let process = process.spawn(idle()).unwrap();
            scheduler.register_name("The Door", process.pid()).unwrap();
            let found = scheduler.look_at(process.pid(), |look| {
                let live = Live {
                    look,
                    now: scheduler.now(),
                };
                assert_eq!(live.pid(), process.pid());
                assert_eq!((live.state(), live.parent()), (State::Ready, None));
                assert!(live.has_name("door") && !live.has_name("gate"));
                assert_eq!(live.has_label("tenant"), has_counts);
                assert!(!live.has_label("landlord"));
                assert!(!live.has_method("no such method") && !live.type_name().is_empty());
                assert!(live.value(By::Mailbox).is_some());
                assert_eq!((live.value(By::Quiet), live.value(By::Pid)), (None, None));
                assert_eq!(live.value(By::Growth).is_some(), has_counts);
                for by in [By::Steps, By::Events, By::Busy] {
                    assert_eq!(live.value(by), has_counts.then_some(0));
                }
                assert_eq!(live.value(By::Age).is_some(), has_counts);
            });
            assert!(found.is_some());
        }
    }
}
