//! All metrics: their names, kinds, units, labels and meanings.
//!
//! The table is the only source of names. The exporters take them from it, and `cargo xtask
//! metrics` writes `docs/METRICS.md` from it: so this file uses no other file of the crate.
//!
//! Names and units are in OpenTelemetry's form: `{process}` counts processes, `s` is seconds.

/// The kind of a metric's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A sum since the scheduler was built, which never falls.
    Counter,
    /// A value at the moment.
    Gauge,
    /// Durations since the scheduler was built, and how they are distributed.
    Histogram,
}

/// The schedulers with a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// All schedulers.
    All,
    /// Schedulers with a limit of processes.
    Limited,
    /// Schedulers built with `Observe::Counts` or more.
    Counts,
    /// Schedulers built with `Observe::Histograms`.
    Histograms,
    /// Schedulers with `Alarms`.
    Alarms,
    /// Schedulers that have joined a cluster, in programs with the feature `cluster`.
    Nodes,
    /// Nodes with a consistent store.
    Stores,
}

/// A metric.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Metric {
    /// The name, with dots.
    pub(crate) name: &'static str,
    /// The kind of its value.
    pub(crate) kind: Kind,
    /// The unit.
    pub(crate) unit: &'static str,
    /// The labels in addition to `scheduler` and `node`.
    pub(crate) labels: &'static [&'static str],
    /// The schedulers with the metric.
    #[allow(
        dead_code,
        reason = "the documentation says it, and the reader knows it"
    )]
    pub(crate) of: Of,
    /// The meaning, as a sentence.
    pub(crate) help: &'static str,
}

macro_rules! metrics {
    ($(
        $id:ident: $name:literal, $kind:ident, $unit:literal, $labels:tt, $of:ident,
            $help:literal;
    )+) => {
        $(
            #[doc = $help]
            pub(crate) static $id: Metric = Metric {
                name: $name,
                kind: Kind::$kind,
                unit: $unit,
                labels: &$labels,
                of: Of::$of,
                help: $help,
            };
        )+

        /// All metrics, in the order in which they are shown.
        pub(crate) static ALL: &[&Metric] = &[$(&$id),+];
    };
}

metrics! {
    UPTIME: "ganger.scheduler.uptime", Gauge, "s", [], All,
        "Time since the scheduler was built.";
    PROCESS_COUNT: "ganger.process.count", Gauge, "{process}", ["state"], All,
        "Live processes, by state: ready, running, blocked, idle, suspended.";
    TYPE_COUNT: "ganger.process.type.count", Gauge, "{process}", ["type"], All,
        "Live processes, by type.";
    PROCESS_LIMIT: "ganger.process.limit", Gauge, "{process}", [], Limited,
        "The limit of live processes.";
    PROCESS_STARTED: "ganger.process.started", Counter, "{process}", [], All,
        "Processes started.";
    PROCESS_ENDED: "ganger.process.ended", Counter, "{process}", ["cause"], All,
        "Processes ended, by cause: done, cancelled, failed, panicked, terminated, upgrade_failed.";
    PROCESS_FORCED: "ganger.process.forced", Counter, "{process}", [], All,
        "Processes terminated by the deadline of a stop.";
    PROCESS_UPGRADED: "ganger.process.upgraded", Counter, "{upgrade}", [], All,
        "Upgrades that succeeded.";
    WORKER_LIMIT: "ganger.worker.limit", Gauge, "{thread}", [], All,
        "Worker threads.";
    WORKER_COUNT: "ganger.worker.count", Gauge, "{thread}", ["state"], All,
        "Worker threads, by state: busy, searching, asleep.";
    WORKER_SPARE: "ganger.worker.spare", Gauge, "{thread}", [], All,
        "Spare threads, in the places of workers whose steps block or last long.";
    WORKER_RELIEVED: "ganger.worker.relieved", Gauge, "{thread}", [], All,
        "Threads in a blocked or long step, replaced by spares.";
    WORKER_BUSY: "ganger.worker.busy", Counter, "s", ["worker"], Counts,
        "Time of a worker with processes.";
    WORKER_SEARCHING: "ganger.worker.searching", Counter, "s", ["worker"], Counts,
        "Time of a worker in search of a process.";
    WORKER_ASLEEP: "ganger.worker.asleep", Counter, "s", ["worker"], Counts,
        "Time of a worker asleep.";
    WORKER_TURNS: "ganger.worker.turns", Counter, "{turn}", [], All,
        "Turns: a worker has picked a process.";
    WORKER_STEPS: "ganger.worker.steps", Counter, "{step}", [], All,
        "Steps of processes.";
    WORKER_PICKS: "ganger.worker.picks", Counter, "{process}", ["source"], All,
        "Picks of processes, by queue: local, global, urgent, arrival.";
    WORKER_ROTATIONS: "ganger.worker.rotations", Counter, "{look}", [], All,
        "Looks at the global queue before the worker's own deque.";
    WORKER_STEALS: "ganger.worker.steals", Counter, "{steal}", [], All,
        "Successful steals.";
    WORKER_STOLEN: "ganger.worker.stolen", Counter, "{process}", [], All,
        "Processes moved by steals.";
    WORKER_SLEEPS: "ganger.worker.sleeps", Counter, "{sleep}", [], All,
        "Times a worker went to sleep.";
    QUEUE_GLOBAL: "ganger.queue.global", Gauge, "{process}", [], All,
        "Processes in the global queue.";
    QUEUE_READY: "ganger.queue.ready", Gauge, "{process}", [], All,
        "Processes in all ready queues together.";
    SCHEDULE_DURATION: "ganger.schedule.duration", Histogram, "s", ["type"], Histograms,
        "From a process being ready to its step.";
    STEP_DURATION: "ganger.step.duration", Histogram, "s", ["type"], Histograms,
        "Length of a step.";
    STEP_LONGEST: "ganger.step.longest", Gauge, "s", [], All,
        "The longest finished step with processes waiting behind it.";
    STEP_BLOCKED: "ganger.step.blocked", Counter, "{step}", [], All,
        "Steps that blocked while processes waited.";
    STEP_LONG: "ganger.step.long", Counter, "{step}", [], All,
        "Steps that computed long while processes waited.";
    MESSAGE_WAIT: "ganger.message.wait.duration", Histogram, "s", [], Histograms,
        "From an event's arrival in a mailbox to its step.";
    MESSAGE_TAKEN: "ganger.message.taken", Counter, "{message}", [], Counts,
        "Messages and events given to steps.";
    MESSAGE_WAITING: "ganger.message.waiting", Gauge, "{message}", [], Counts,
        "Messages and events in all mailboxes together.";
    MAILBOX_LONGEST: "ganger.mailbox.longest", Gauge, "{message}", [], Counts,
        "Messages and events in the longest mailbox.";
    MESSAGE_UNDELIVERED: "ganger.message.undelivered", Counter, "{message}", [], All,
        "Dead letters: accepted messages dropped by the end of their processes.";
    COMMAND_YIELDED: "ganger.command.yielded", Counter, "{command}", [], All,
        "Commands handed to handlers.";
    COMPLETION_STALE: "ganger.completion.stale", Counter, "{completion}", [], All,
        "Completions after the end or upgrade of their processes.";
    PANIC_CONTAINED: "ganger.panic.contained", Counter, "{panic}", [], All,
        "Contained panics in the program's code.";
    TIMER_PENDING: "ganger.timer.pending", Gauge, "{timer}", [], All,
        "Timers that wait.";
    TIMER_ARMED: "ganger.timer.armed", Counter, "{timer}", [], All,
        "Timers set.";
    TIMER_FIRED: "ganger.timer.fired", Counter, "{timer}", [], All,
        "Timers expired.";
    TIMER_CANCELLED: "ganger.timer.cancelled", Counter, "{timer}", [], All,
        "Timers taken back.";
    TIMER_REFUSED: "ganger.timer.refused", Counter, "{message}", [], All,
        "Delayed messages refused by their processes.";
    TIMER_LATENESS: "ganger.timer.lateness", Histogram, "s", [], Histograms,
        "Lateness of the earliest of the timers fired together.";
    ALARM_RAISED: "ganger.alarm.raised", Gauge, "{alarm}", ["kind"], Alarms,
        "Raised alarms, by kind.";
    ALARM_COUNT: "ganger.alarm.count", Counter, "{alarm}", ["kind"], Alarms,
        "Alarms raised so far, by kind.";
    SESSION_UP: "ganger.session.up", Gauge, "{session}", ["peer"], Nodes,
        "1 while a session is up, otherwise 0.";
    SESSION_ROUND_TRIP: "ganger.session.roundtrip", Gauge, "s", ["peer"], Nodes,
        "The smoothed round trip.";
    SESSION_QUEUED: "ganger.session.queued", Gauge, "By", ["peer", "lane"], Nodes,
        "Bytes queued, by lane: control, data.";
    SESSION_UNACKNOWLEDGED: "ganger.session.unacknowledged", Gauge, "By", ["peer", "lane"], Nodes,
        "Bytes sent and not acknowledged, by lane.";
    SESSION_RESENT: "ganger.session.resent", Counter, "{frame}", ["peer", "lane"], Nodes,
        "Frames sent again, by lane.";
    SESSION_ENDED: "ganger.session.ended", Counter, "{session}", ["peer"], Nodes,
        "Ended sessions.";
    SESSION_UNDELIVERED: "ganger.session.undelivered", Counter, "{message}", ["peer"], Nodes,
        "Messages lost by ended sessions.";
    SESSION_WAITING: "ganger.session.waiting", Gauge, "{sender}", ["peer"], Nodes,
        "Senders that wait for room.";
    SESSION_ASKED: "ganger.session.asked", Gauge, "{question}", ["peer"], Nodes,
        "Questions without an answer so far.";
    SESSION_WATCHING: "ganger.session.watching", Gauge, "{process}", ["peer"], Nodes,
        "The peer's processes that are monitored, watched or waited for.";
    NAME_COUNT: "ganger.name.count", Gauge, "{name}", ["kind"], Nodes,
        "Names that the node knows, by kind: eventual, strong.";
    LEASE_LEFT: "ganger.lease.left", Gauge, "s", [], Stores,
        "Time until strong names and locks end without a renewal; from the first claim on.";
    LEASE_HELD: "ganger.lease.held", Gauge, "{claim}", ["kind"], Stores,
        "Strong names and locks held, by kind: name, lock.";
    STORE_UP: "ganger.store.up", Gauge, "{store}", [], Stores,
        "1 while the node has news from its store, otherwise 0.";
    STORE_WAITING: "ganger.store.waiting", Gauge, "{operation}", [], Stores,
        "Operations without the store's answer so far.";
}
