// The views of a whole scheduler: its last ten minutes, its workers, its long steps. They are drawn
// from the snapshots, and ask for nothing.

function overview() {
  const line = (name, colour, of) => ({ name, colour, of });
  const charts = [
    new LineChart("Steps a second", [line("steps", "first", (it) => it.stepRate)], rate),
    new LineChart("Messages, commands and timers a second", [
      line("messages", "third", (it) => it.messageRate),
      line("commands", "first", (it) => it.commandRate),
      line("timers", "second", (it) => it.timerRate),
    ], rate),
    new LineChart("Workers busy", [line("busy", "first", (it) => it.busyShare)], percent),
    new LineChart("Processes", [
      line("live", "first", (it) => it.live),
      line("ready", "second", (it) => it.queue),
    ], count),
    new LineChart("Ready to run, of the last 5 s", [
      line("p50", "first", (it) => it.ready50),
      line("p99", "second", (it) => it.ready99),
    ], duration, true),
    new LineChart("Length of steps, of the last 5 s", [
      line("p50", "first", (it) => it.step50),
      line("p99", "second", (it) => it.step99),
    ], duration, true),
  ];
  const histograms = [
    ["ready", new Histogram("Ready to run")],
    ["step", new Histogram("Length of steps")],
    ["mail", new Histogram("Time in the mailbox")],
    ["timer", new Histogram("Lateness of timers")],
  ];
  const quantiles = (name) => [0.5, 0.99].map((share) => ({
    title: `${name} p${share * 100}`,
    class: share === 0.5 ? "number wide" : "number",
    cell: (it) => duration(quantile(it[name].buckets, share)),
  }));
  const types = new Table([
    { title: "Type", class: "name", cell: typeCell },
    { title: "measured", class: "number wide", cell: (it) => count(it.step.count) },
    ...quantiles("step"),
    ...quantiles("ready"),
  ], { key: (it) => it.type_name, empty: "Types are measured where the scheduler observes histograms." });
  const choices = [["10", "10 s"], ["60", "1 min"], ["600", "10 min"], ["Infinity", "its life"]];
  let seconds = 60;
  const grid = (all, kind = "grid") => make("div", { class: kind }, ...all.map((it) => it.element));
  const choice = select(choices, "60", (value) => {
    seconds = Number(value);
    redraw();
  });
  const element = make("div", {},
    grid(charts),
    make("h2", {}, "Distributions"),
    make("div", { class: "tools" }, make("label", {}, "Of the last", choice)),
    grid(histograms.map((it) => it[1]), "grid four"),
    make("h2", {}, "Types, since the start"),
    types.element);
  return {
    element,
    draw(history) {
      charts.forEach((it) => it.draw(history));
      histograms.forEach(([name, chart]) => chart.draw(history.since(name, seconds)));
      types.draw(history.newest.distributions?.types ?? []);
    },
  };
}

function typeCell(value, cell) {
  cell.title = value.type_name;
  return shortType(value.type_name);
}

function workers() {
  const lanes = new Lanes();
  let history = null;
  const share = (part) => (it) => percent(history.shares(it.worker)?.[part]);
  const grown = (of) => (it) => rate(history.rate((at) => at.workers[it.worker] && of(at.workers[it.worker])));
  const number = (title, cell, isWide = false) => ({ title, class: isWide ? "number wide" : "number", cell });
  const table = new Table([
    number("Worker", (it) => String(it.worker)),
    number("busy", share(0)),
    number("searching", share(1), true),
    number("asleep", share(2)),
    number("turns/s", grown((it) => it.turns)),
    number("steps/s", grown((it) => it.steps)),
    number("steals/s", grown((it) => it.steals)),
    number("stolen/s", grown((it) => it.stolen), true),
    number("sleeps/s", grown((it) => it.sleeps), true),
    number("panics", (it) => count(it.panics), true),
  ], { key: (it) => String(it.worker), empty: "No worker is started." });
  const note = make("p", { class: "note" });
  return {
    element: make("div", {}, lanes.element, make("h2", {}, "Over the last second"), table.element, note),
    draw(of) {
      history = of;
      lanes.draw(history);
      const { threads, total } = history.newest;
      table.draw(history.newest.workers.map((it, worker) => ({ ...it, worker })));
      put(note, `Spares ${threads.spares}, stuck threads whose places they have taken ${threads.relieved}, `
        + `sleeping workers ${threads.sleeping}, searching ${threads.searching}. Steps that blocked while `
        + `processes waited ${count(total.blocked_steps)}, that computed for long ${count(total.long_steps)}.`);
    },
  };
}

function longSteps() {
  const list = make("div");
  const nothing = make("p", { class: "note" }, "No step has kept processes waiting.");
  const shown = new Map();
  return {
    element: make("div", {},
      make("p", { class: "note" }, "The last steps that kept processes waiting, at most 16. Where each is, says "
        + "its backtrace, if the builder takes backtraces."),
      nothing, list),
    draw({ newest }) {
      const seen = new Map();
      const keys = newest.long_steps.map((step) => {
        const name = `${newest.number} ${step.pid} ${step.worker} ${step.lasted_ns}`;
        seen.set(name, (seen.get(name) ?? 0) + 1);
        return `${name} ${seen.get(name)}`;
      });
      nothing.hidden = keys.length > 0;
      for (const [key, element] of shown) {
        if (!keys.includes(key)) {
          element.remove();
          shown.delete(key);
        }
      }
      newest.long_steps.forEach((step, at) => {
        if (shown.has(keys[at])) return;
        const element = longStep(step, newest.number);
        shown.set(keys[at], element);
        list.prepend(element);
      });
    },
  };
}

function longStep(step, scheduler) {
  const what = step.is_blocked ? "blocked" : "computed";
  const since = step.is_over ? `${what} for ${duration(step.lasted_ns)}` : `${what}, and went on after ${duration(step.lasted_ns)}`;
  const head = make("summary", {}, `${since} on thread ${step.worker}: `, pidLink(step.pid, scheduler),
    ` ${step.method ?? ""}${step.is_announced ? ", announced" : ""}`);
  return make("details", { class: "card", open: Boolean(step.backtrace) }, head,
    step.backtrace ? make("pre", {}, step.backtrace) : make("p", { class: "note" }, "No backtrace."));
}
