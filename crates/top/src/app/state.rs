//! The knowledge of the screen.

use super::act::Asking;
use super::edit::Edit;
use super::folds::Folds;
use super::view::{Cursor, View};
use crate::feed::{Answer, News, Wish};
use crate::measure::{Key, Pulse, Row, Rows, Sort};
use crate::text;
use ganger_observe::api::{
    ClusterName, Filter, Group, Groups, Letter, Letters, Node, Nodes, Peer, ProcessesQuery,
    Scheduler, Snapshot, Socket, Sockets, SocketsQuery, Waits,
};
use std::collections::HashMap;
use std::time::Duration;

/// The orders, as the keys go through them.
pub(crate) const SORTS: [Sort; 10] = [
    Sort::Pid,
    Sort::Name,
    Sort::State,
    Sort::Mailbox,
    Sort::Growth,
    Sort::Messages,
    Sort::Busy,
    Sort::Steps,
    Sort::Restarts,
    Sort::Age,
];

/// The processes or sockets in the table.
const TOP: u32 = 200;

/// The windows, in seconds; 0 is the time since the start of each process.
const WINDOWS: [u64; 4] = [1, 5, 15, 0];

/// The life of a message.
const SAID: Duration = Duration::from_secs(8);

/// Whether the program answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Link {
    /// No answer yet.
    Waiting,
    /// The program answers.
    Here,
    /// The program has not answered since this moment. The next attempt is at `again`.
    Lost {
        since: Duration,
        again: Duration,
        why: String,
    },
}

pub(crate) struct App {
    /// The name of the source.
    pub(crate) name: String,
    pub(crate) view: View,
    /// The view before the view of a single process.
    pub(crate) back: View,
    pub(crate) link: Link,
    pub(crate) is_paused: bool,
    pub(crate) has_help: bool,
    pub(crate) filter: Filter,
    /// While a person edits the filter.
    pub(crate) edit: Option<Edit>,
    /// While a person chooses what to do to a process.
    pub(super) asking: Option<Asking>,
    pub(crate) sort: Sort,
    pub(crate) is_descending: bool,
    /// Whether a person has chosen the order.
    pub(super) is_sorted: bool,
    /// A place in [`WINDOWS`].
    window: usize,
    /// The number of the scheduler, once a person has chosen.
    chosen: Option<u64>,
    /// The rows of a page.
    pub(crate) page: usize,
    cursors: HashMap<View, Cursor>,
    said: Option<(String, Duration)>,
    /// A wish without an answer, and the reason.
    note: Option<(Wish, String)>,
    now: Duration,
    snapshots: [Option<Snapshot>; 2],
    pub(crate) pulse: Option<Pulse>,
    pub(crate) rows: Rows,
    /// The wish behind the rows.
    rows_of: Option<Wish>,
    pub(crate) groups: Option<Groups>,
    pub(crate) tree: Folds,
    pub(crate) waits: Option<Waits>,
    pub(crate) sockets: Option<Sockets>,
    pub(crate) nodes: Option<Nodes>,
    pub(crate) letters: Option<Letters>,
    pub(crate) cycles: Option<usize>,
    pub(crate) one: Option<Key>,
    /// The single process, as it was the last time.
    pub(crate) single: Option<Row>,
    /// Whether the single process has ended.
    pub(crate) has_ended: bool,
    /// The lines of its view.
    pub(crate) one_lines: usize,
}

impl App {
    pub(crate) fn new(name: String) -> Self {
        Self {
            name,
            view: View::Processes,
            back: View::Processes,
            link: Link::Waiting,
            is_paused: false,
            has_help: false,
            filter: Filter::default(),
            edit: None,
            asking: None,
            sort: Sort::Mailbox,
            is_descending: true,
            is_sorted: false,
            window: 0,
            chosen: None,
            page: 10,
            cursors: HashMap::new(),
            said: None,
            note: None,
            now: Duration::ZERO,
            snapshots: [None, None],
            pulse: None,
            rows: Rows::default(),
            rows_of: None,
            groups: None,
            tree: Folds::default(),
            waits: None,
            sockets: None,
            nodes: None,
            letters: None,
            cycles: None,
            one: None,
            single: None,
            has_ended: false,
            one_lines: 0,
        }
    }

    /// Returns the wish of the view.
    pub(crate) fn wish(&self) -> Wish {
        match self.view {
            View::Processes => Wish::Processes(self.query()),
            View::Groups => Wish::Groups,
            View::Tree => Wish::Tree,
            View::Waits => Wish::Waits,
            View::Sockets => Wish::Sockets(self.sockets_query()),
            View::Nodes => Wish::Nodes,
            View::Letters => Wish::Letters,
            View::Alarms => Wish::Nothing,
            View::One => self.one.clone().map_or(Wish::Nothing, Wish::Process),
        }
    }

    /// Returns the number of the shown scheduler, where it is one of several.
    fn one_of_several(&self) -> Option<u64> {
        let several = self.schedulers().len() > 1;
        let shown = self.pulse.as_ref().filter(|_| several);
        shown.map(|it| it.number)
    }

    fn sockets_query(&self) -> SocketsQuery {
        let mut query = SocketsQuery::default();
        query.top = TOP;
        query.scheduler = self.one_of_several();
        query
    }

    fn query(&self) -> ProcessesQuery {
        let mut query = ProcessesQuery::default();
        query.top = TOP;
        query.by = self.sort.by();
        query.window = self.window().filter(|_| self.sort.has_window());
        query.filter = self.filter.clone();
        query.scheduler = self.one_of_several();
        query
    }

    pub(crate) fn window(&self) -> Option<Duration> {
        let seconds = WINDOWS[self.window];
        (seconds > 0).then(|| Duration::from_secs(seconds))
    }

    /// Takes the whole life of each process for the window.
    pub(crate) fn leave_window(&mut self) {
        self.window = WINDOWS.len() - 1;
    }

    pub(super) fn next_window(&mut self) {
        self.window = (self.window + 1) % WINDOWS.len();
    }

    /// Returns the time since the start of this program.
    pub(crate) fn now(&self) -> Duration {
        self.now
    }

    pub(crate) fn tick(&mut self, now: Duration) {
        self.now = now;
        self.rows.tick(now);
        self.said.take_if(|it| it.1 <= now);
        self.follow();
    }

    pub(crate) fn say(&mut self, text: impl AsRef<str>) {
        let text = text::clean(text.as_ref()).into_owned();
        self.said = Some((text, self.now + SAID));
    }

    pub(crate) fn said(&self) -> Option<&str> {
        self.said.as_ref().map(|it| it.0.as_str())
    }

    /// Returns the reason why the view has no answer.
    pub(crate) fn note(&self) -> Option<&str> {
        let note = self.note.as_ref()?;
        (note.0 == self.wish()).then_some(note.1.as_str())
    }

    /// Returns whether the view has had an answer. Of a list with another filter, there was none
    /// yet.
    pub(crate) fn is_answered(&self) -> bool {
        match self.view {
            View::Processes => {
                let rows_of = self.rows_of.as_ref();
                rows_of.is_some_and(|it| is_same_list(it, &self.wish()))
            }
            View::Groups => self.groups.is_some(),
            View::Tree => self.tree.is_there,
            View::Waits => self.waits.is_some(),
            View::Sockets => self.sockets.is_some(),
            View::Nodes => self.nodes.is_some(),
            View::Letters => self.letters.is_some(),
            View::Alarms => self.pulse.is_some(),
            View::One => true,
        }
    }

    pub(crate) fn schedulers(&self) -> &[Scheduler] {
        let newest = self.snapshots[1].as_ref();
        newest.map_or(&[], |it| it.schedulers.as_slice())
    }

    /// Returns the names of the actions that the program allows.
    pub(super) fn actions(&self) -> &[String] {
        let newest = self.snapshots[1].as_ref();
        newest.map_or(&[], |it| it.actions.as_slice())
    }

    pub(super) fn next_scheduler(&mut self) {
        let all: Vec<_> = self.schedulers().iter().map(|it| it.number).collect();
        let shown = self.pulse.as_ref().map(|it| it.number);
        let place = all.iter().position(|it| Some(*it) == shown);
        let next = place.map_or(0, |it| (it + 1) % all.len());
        self.chosen = all.get(next).copied();
        self.look();
    }

    /// Takes news from a thread of the feed.
    pub(crate) fn take(&mut self, news: News) {
        match news {
            News::Snapshot(_) | News::Cycles(_) | News::Answer(..) if self.is_paused => {}
            News::Snapshot(snapshot) => {
                if matches!(self.link, Link::Lost { .. }) {
                    self.say(format!("{} answers again", self.name));
                }
                self.link = Link::Here;
                let [_, before] = &mut self.snapshots;
                self.snapshots = [before.take(), Some(snapshot)];
                self.look();
            }
            News::Lost(fault, pause) => {
                let since = match &self.link {
                    Link::Lost { since, .. } => *since,
                    _ => self.now,
                };
                let why = text::clean(&fault.to_string()).into_owned();
                let again = self.now + pause;
                self.link = Link::Lost { since, again, why };
            }
            News::Cycles(cycles) => self.cycles = cycles,
            News::Answer(wish, answer) if wish == self.wish() => self.answer(wish, answer),
            // The head tells that the program has gone, and the last rows stay.
            News::Fault(_, fault) if fault.may_pass() => {
                if self.link == Link::Here {
                    self.say(fault.to_string());
                }
            }
            News::Fault(wish, fault) if wish == self.wish() => {
                self.note = Some((wish, text::clean(&fault.to_string()).into_owned()));
            }
            News::Answer(..) | News::Fault(..) => {}
        }
        self.follow();
    }

    fn answer(&mut self, wish: Wish, answer: Answer) {
        self.note = None;
        match answer {
            Answer::Processes(answer, gone) => {
                if !self
                    .rows_of
                    .as_ref()
                    .is_some_and(|it| is_same_list(it, &wish))
                {
                    self.rows.clear();
                }
                self.rows_of = Some(wish);
                self.rows.take(answer, &gone, self.now);
            }
            Answer::Process(process) => {
                self.has_ended = process.is_none();
                if let Some(process) = process {
                    self.single = Some(Row::new(*process, self.single.take()));
                }
            }
            Answer::Groups(groups) => self.groups = Some(groups),
            Answer::Tree(tree) => self.tree.take(tree),
            Answer::Sockets(sockets) => self.sockets = Some(sockets),
            Answer::Nodes(nodes) => self.nodes = Some(nodes),
            Answer::Letters(letters) => self.letters = Some(letters),
            Answer::Waits(waits) => {
                self.cycles = Some(waits.cycles.len());
                self.waits = Some(waits);
            }
        }
    }

    /// Makes the head of the two newest snapshots.
    fn look(&mut self) {
        let [before, Some(now)] = &self.snapshots else {
            return;
        };
        let chosen = now
            .schedulers
            .iter()
            .find(|it| Some(it.number) == self.chosen);
        let shown = chosen.or(now.schedulers.first());
        self.pulse = shown.map(|now| {
            let before = before.iter().flat_map(|it| &it.schedulers);
            Pulse::of(now, before.into_iter().find(|it| it.number == now.number))
        });
        if let Some(pulse) = &self.pulse
            && !self.is_sorted
        {
            self.sort = match &*pulse.observes {
                "off" | "" => Sort::Mailbox,
                _ => Sort::Busy,
            };
        }
    }

    /// Sorts the rows, and finds the selected row again.
    pub(super) fn follow(&mut self) {
        self.rows.sort(self.sort, self.is_descending);
        let ids = self.ids();
        self.cursor().follow(&ids);
    }

    pub(crate) fn cursor(&mut self) -> &mut Cursor {
        self.cursors.entry(self.view).or_default()
    }

    /// Returns the selected row.
    pub(crate) fn at(&self) -> usize {
        self.cursors.get(&self.view).map_or(0, Cursor::at)
    }

    /// Returns the identities of the rows of the view.
    pub(super) fn ids(&self) -> Vec<String> {
        let key = |row: &Row| format!("{} {}", row.process.scheduler, row.process.pid);
        match self.view {
            View::Processes => self.rows.all().iter().map(key).collect(),
            View::Groups => self.groups().iter().map(group_id).collect(),
            View::Tree => (self.tree.visible().iter().map(|it| self.tree.id(*it))).collect(),
            View::Waits => {
                let waits = self.waits.iter().flat_map(|it| &it.waits);
                waits
                    .map(|it| format!("{} {}", it.waiter, it.kind))
                    .collect()
            }
            View::Sockets => {
                let sockets = self.sockets().iter();
                sockets
                    .map(|it| format!("{} {}", it.scheduler, it.id))
                    .collect()
            }
            View::Nodes => {
                let peers = self.peers().into_iter();
                let peers = peers.map(|(node, it)| format!("{} {}", node.scheduler, it.name));
                let names = self.names().into_iter().map(|(node, it)| {
                    let kind = if it.token.is_some() {
                        "strong"
                    } else {
                        "eventual"
                    };
                    format!("{} {kind} name {}", node.scheduler, it.name)
                });
                peers.chain(names).collect()
            }
            View::Alarms => {
                let pulse = self.pulse.as_ref();
                let alarms = pulse.map_or(0, |it| it.alarms.len() + it.long_steps.len());
                (0..alarms).map(|it| it.to_string()).collect()
            }
            View::Letters => {
                let letters = self.letters().into_iter();
                letters
                    .map(|it| format!("{} {}", it.at_ns, it.target))
                    .collect()
            }
            View::One => (0..self.one_lines).map(|it| it.to_string()).collect(),
        }
    }

    /// Returns the groups of the shown scheduler.
    pub(crate) fn groups(&self) -> Vec<&Group> {
        let number = self.pulse.as_ref().map(|it| it.number);
        let groups = self.groups.iter().flat_map(|it| &it.groups);
        groups
            .filter(|it| number.is_none_or(|number| number == it.scheduler))
            .collect()
    }

    /// Returns the sockets of the answer.
    pub(crate) fn sockets(&self) -> &[Socket] {
        self.sockets.as_ref().map_or(&[], |it| &it.sockets)
    }

    /// Returns the peers of the nodes, each with its node.
    pub(crate) fn peers(&self) -> Vec<(&Node, &Peer)> {
        let nodes = self.nodes.iter().flat_map(|it| &it.nodes);
        let peers = nodes.flat_map(|node| node.peers.iter().map(move |peer| (node, peer)));
        peers.collect()
    }

    /// Returns the names of the cluster, each with the node that knows the name.
    pub(crate) fn names(&self) -> Vec<(&Node, &ClusterName)> {
        let nodes = self.nodes.iter().flat_map(|it| &it.nodes);
        let names = nodes.flat_map(|node| node.names.first.iter().map(move |name| (node, name)));
        names.collect()
    }

    /// Returns the letters of the shown scheduler, the newest first.
    pub(crate) fn letters(&self) -> Vec<&Letter> {
        let number = self.pulse.as_ref().map(|it| it.number);
        let all = self.letters.iter().flat_map(|it| &it.schedulers);
        let shown = all.filter(|it| number.is_none_or(|number| number == it.scheduler));
        shown
            .flat_map(|it| it.last.iter().flatten())
            .rev()
            .collect()
    }

    /// Returns the process of the selected row.
    pub(super) fn selected(&self) -> Option<Key> {
        let at = self.at();
        let number = self.pulse.as_ref().map_or(1, |it| it.number);
        let is_pid = |key: &Key| key.1.starts_with('{');
        let key = match self.view {
            View::Processes => self.rows.all().get(at).map(Row::key),
            View::Tree => {
                let node = self.tree.node(*self.tree.visible().get(at)?);
                node.pid.clone().map(|pid| (node.scheduler, pid))
            }
            View::Waits => {
                let wait = self.waits.as_ref()?.waits.get(at)?;
                wait.scheduler.map(|it| (it, wait.waiter.clone()))
            }
            View::Sockets => {
                let mut waits = self.sockets().get(at)?.waits.iter();
                waits.find_map(|it| Some((it.scheduler?, it.pid.clone()?)))
            }
            View::Alarms => {
                let pulse = self.pulse.as_ref()?;
                let step = || pulse.long_steps.iter().rev().nth(at - pulse.alarms.len());
                let pid = match pulse.alarms.get(at) {
                    Some(alarm) => alarm.pid.clone(),
                    None => step().map(|it| it.pid.clone()),
                };
                pid.map(|pid| (number, pid))
            }
            View::Letters => {
                let letters = self.letters();
                letters.get(at).map(|it| (number, it.target.clone()))
            }
            View::Groups | View::Nodes | View::One => None,
        };
        key.filter(is_pid)
    }

    /// Shows a single process.
    pub(super) fn open(&mut self, key: Key) {
        self.back = self.view;
        self.view = View::One;
        self.has_ended = false;
        let is_it = |it: &&Row| it.key() == key;
        let row = self.rows.all().iter().find(is_it);
        self.single = row.cloned();
        self.one = Some(key);
    }
}

/// Returns whether two lists have the same processes to choose from: another order keeps the
/// histories.
fn is_same_list(one: &Wish, other: &Wish) -> bool {
    match (one, other) {
        (Wish::Processes(one), Wish::Processes(other)) => {
            (&one.filter, one.scheduler) == (&other.filter, other.scheduler)
        }
        _ => false,
    }
}

fn group_id(group: &&Group) -> String {
    let Group {
        scheduler,
        type_name,
        method,
        label,
        state,
        waits_for,
        ..
    } = group;
    format!("{scheduler} {type_name} {method} {label:?} {state:?} {waits_for:?}")
}
