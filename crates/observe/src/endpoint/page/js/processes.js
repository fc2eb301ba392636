// The table of processes.

const ORDERS = [
  ["mailbox", "waiting events"], ["growth", "growth of the mailbox"], ["events", "events"],
  ["steps", "steps"], ["busy", "busy time"], ["quiet", "time without a turn"], ["age", "age"], ["pid", "PID"],
];
const WINDOWS = [["", "since the start"], ["1s", "1 s"], ["5s", "5 s"], ["30s", "30 s"]];
const WITH_WINDOW = ["steps", "events", "busy", "growth"];
const ENDED_SHOWN_MS = 4_000;

/** What has been seen of each process before: rates are made here. */
class Rates {
  constructor() {
    this.seen = new Map();
  }

  take(list) {
    const now = performance.now();
    for (const process of list) {
      const key = processKey(process);
      const old = this.seen.get(key) ?? { at: null, series: [], rates: null };
      const counts = process.counts;
      if (counts && old.counts && now > old.at) {
        const seconds = (now - old.at) / 1000;
        const of = (to, from) => Math.max(0, to - from) / seconds;
        old.rates = {
          events: of(counts.events, old.counts.events),
          steps: of(counts.steps, old.counts.steps),
          busy: of(counts.busy_ns, old.counts.busy_ns) / 1e9,
        };
        old.series = [...old.series.slice(-29), old.rates.events];
      }
      Object.assign(old, { at: now, counts, process });
      this.seen.set(key, old);
    }
    for (const [key, it] of this.seen) {
      if (now - it.at > 60_000) this.seen.delete(key);
    }
  }

  of(process) {
    return this.seen.get(processKey(process)) ?? { series: [], rates: null };
  }
}

function processKey(process) {
  return `${process.scheduler} ${process.pid}`;
}

function waiting(process) {
  // A task takes all events at once, and leaves those for which it has not asked.
  return Math.max(process.counts?.waiting ?? 0, process.left + (process.queued ?? 0));
}

function waitText(wait) {
  const name = wait.name ?? (wait.command === null ? "the step that takes an answer" : `command ${wait.command}`);
  return `${name} for ${duration(wait.since_ns)}`;
}

function nameCell(process, cell) {
  const names = process.names.join(", ");
  const type = shortType(process.type_name);
  const label = process.label ?? "";
  const key = `${names} ${type} ${label}`;
  if (cell.dataset.shown === key) return;
  cell.dataset.shown = key;
  cell.title = process.type_name;
  putChildren(cell, make("b", {}, names || type));
  if (label) cell.append(" ", make("span", { class: "label" }, label));
  if (names) cell.append(make("div", { class: "sub" }, type));
}

function stateCell(process, cell) {
  const state = process.is_terminating ? "ending" : process.is_cancelled ? `${process.state}, cancelled` : process.state;
  const wait = process.waits.length ? waitText(process.waits[0]) : "";
  if (!cell.firstChild) cell.append(make("span"), make("div", { class: "sub" }));
  cell.firstChild.className = process.state;
  put(cell.firstChild, state);
  put(cell.lastChild, wait);
}

function processes() {
  const rates = new Rates();
  let gone = new Map();
  let shown = new Map();
  // Of another list, no process has ended.
  const forget = () => {
    [gone, shown] = [new Map(), new Map()];
  };
  const choose = (name, value) => {
    place.set(name, value);
    forget();
    lookNow();
  };
  const ofRates = (name, text) => (it) => text(rates.of(it).rates?.[name]);
  const table = new Table([
    { title: "Process", class: "name", cell: nameCell },
    { title: "State", by: "quiet", cell: stateCell },
    { title: "Waiting", by: "mailbox", class: "number", cell: (it) => count(waiting(it)) },
    { title: "events/s", by: "events", class: "number", cell: ofRates("events", rate) },
    { title: "", class: "wide", cell: (it, cell) => spark(sparkOf(cell), rates.of(it).series) },
    { title: "steps/s", by: "steps", class: "number wide", cell: ofRates("steps", rate) },
    { title: "busy", by: "busy", class: "number", cell: ofRates("busy", percent) },
    { title: "age", by: "age", class: "number wide", cell: (it) => duration(it.counts?.age_ns) },
    { title: "in the window", class: "number wide", cell: (it) => windowText(it) },
    { title: "PID", by: "pid", class: "pid wide", cell: (it) => it.pid },
  ], {
    key: processKey,
    open: (it) => go("process", { pid: it.pid, of: it.scheduler }),
    sort: (by) => choose("by", by),
    empty: "No process passes the filter.",
  });
  const windowText = (it) => {
    if (it.value === null) return "–";
    return ["busy", "age", "quiet"].includes(place.get("by")) ? duration(it.value) : count(it.value);
  };
  const filter = make("input", {
    type: "search", id: "filter", placeholder: "till  type:shop::  state:ready  -name:clock", spellcheck: "false",
    autocomplete: "off", "aria-describedby": "refused",
    oninput: () => {
      clearTimeout(filter.timer);
      filter.timer = setTimeout(() => choose("filter", filter.value), 250);
    },
  });
  const controls = make("div", { class: "tools" });
  const refused = make("p", { class: "refused", id: "refused", role: "status" });
  const summary = make("p", { class: "note" });
  return {
    element: make("div", {}, controls, refused, summary, table.element),
    patience: 70_000,
    enter() {
      if (document.activeElement !== filter) filter.value = place.get("filter") ?? "";
      putChildren(controls,
        make("label", { class: "filter" }, "Filter: words, or field:word; - before a term", filter),
        make("label", {}, "Most", select(ORDERS, place.get("by") ?? "mailbox", (it) => choose("by", it))),
        make("label", {}, "Counted", select(WINDOWS, place.get("window") ?? "", (it) => choose("window", it))),
        make("label", {}, "First", select(["25", "50", "100"].map((it) => [it, it]), place.get("top") ?? "25", (it) => choose("top", it))));
      forget();
    },
    path() {
      const by = place.get("by") ?? "mailbox";
      const query = new URLSearchParams({ top: place.get("top") ?? "25", by });
      const span = place.get("window");
      if (span && WITH_WINDOW.includes(by)) query.set("window", span);
      if (place.get("filter")) query.set("filter", place.get("filter"));
      if (scheduler !== null) query.set("scheduler", scheduler);
      return `/api/v1/processes?${query}`;
    },
    answer(list) {
      put(refused, "");
      rates.take(list.processes);
      table.sortedBy(place.get("by") ?? "mailbox");
      const fresh = new Map(list.processes.map((it) => [processKey(it), it]));
      // A process that has ended is shown in grey for a moment. Where the list is full, others have
      // overtaken most of those that are missing.
      const now = performance.now();
      if (list.processes.length < Number(place.get("top") ?? "25")) {
        for (const [key, it] of shown) if (!fresh.has(key)) gone.set(key, { it, until: now + ENDED_SHOWN_MS });
      }
      for (const [key, { until }] of gone) if (fresh.has(key) || until < now) gone.delete(key);
      shown = fresh;
      const ended = [...gone.values()].map(({ it }) => ({ ...it, className: "ended" }));
      table.draw([...list.processes, ...ended]);
      const matched = list.matched === list.live ? "" : `, of which ${count(list.matched)} pass the filter`;
      put(summary, `${count(list.live)} live processes${matched}. Rates are of the time since the last look.`);
    },
    refused(error) {
      put(refused, error.message);
    },
  };
}

function sparkOf(cell) {
  return cell.firstChild ?? cell.appendChild(makeSvg("svg", {
    class: "spark", viewBox: "0 0 72 18", preserveAspectRatio: "none", "aria-hidden": "true",
  }));
}
