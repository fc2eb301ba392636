// The view of one process: what is known of it, what it waits for, and what a viewer may do to it.

function oneProcess() {
  const rates = new Rates();
  // No other process ever has the PID of one that has ended.
  let isOver = false;
  const title = make("h2");
  const facts = make("dl", { class: "facts" });
  const ended = make("p", { class: "refused", role: "status" });
  const actions = new Actions(() => lookNow());
  const line = makeSvg("svg", { class: "spark", viewBox: "0 0 72 18", preserveAspectRatio: "none", "aria-hidden": "true" });
  const rows = new Map();
  const waits = new Table([
    { title: "Waits for", class: "name", cell: (it) => it.name ?? (it.command === null ? "the step that takes the answer" : `command ${it.command}`) },
    { title: "since", class: "number", cell: (it) => duration(it.since_ns) },
    { title: "tag", class: "number", cell: (it) => String(it.tag) },
  ], { key: (it) => `${it.tag} ${it.command}`, empty: "It waits for no command." });
  const fact = (name, value) => {
    if (!rows.has(name)) {
      const cell = make("dd");
      rows.set(name, cell);
      facts.append(make("dt", {}, name), cell);
    }
    const cell = rows.get(name);
    if (typeof value === "string") put(cell, value);
    else if (cell.dataset.shown !== value.key) {
      cell.dataset.shown = value.key;
      putChildren(cell, ...value.children);
    }
  };
  const watching = (number, all, of) => ({
    key: `${number} ${all.join(" ")}`,
    children: [`${count(number)} `, ...all.flatMap((pid) => [pidLink(pid, of), " "])],
  });
  const pids = (all, of) => ({
    key: all.join(" ") || "none",
    children: all.length ? all.flatMap((pid) => [pidLink(pid, of), " "]) : ["none"],
  });
  return {
    element: make("div", {}, title, ended, actions.element,
      make("div", { class: "card" }, facts, line), make("h2", {}, "Waits"), waits.element),
    enter() {
      isOver = false;
      rows.clear();
      putChildren(facts);
      put(title, place.get("pid") ?? "");
      put(ended, place.get("pid") ? "" : "Choose a process in the list of processes.");
      waits.draw([]);
      actions.clear();
    },
    path() {
      const pid = place.get("pid");
      return pid && !isOver ? processPath(pid, place.get("of")) : null;
    },
    answer(list) {
      const it = list.processes[0];
      put(ended, "");
      rates.take([it]);
      const { rates: now, series } = rates.of(it);
      const counts = it.counts;
      put(title, it.names.length ? `${it.names.join(", ")} ${it.pid}` : it.pid);
      fact("Type", it.type_name);
      fact("Method", it.method);
      fact("Label", it.label ?? "none");
      fact("State", `${it.state}${it.is_cancelled ? ", asked to finish" : ""}${it.is_terminating ? ", takes no further step" : ""}`);
      fact("Last turn began", it.quiet_ns === null ? "never" : `${duration(it.quiet_ns)} ago`);
      fact("Waiting in its mailbox", `${count(waiting(it))}, of which ${count(it.left)} are left by its steps`);
      if (counts) {
        fact("Events", `${count(counts.events)}, ${rate(now?.events)} a second`);
        fact("Steps", `${count(counts.steps)} in ${count(counts.turns)} turns, ${rate(now?.steps)} a second`);
        fact("Busy", `${duration(counts.busy_ns)}, ${percent(now?.busy)} of a worker`);
        fact("Longest measured step", duration(counts.longest_step_ns));
        fact("Age", duration(counts.age_ns));
      }
      fact("Upgrades and restarts in place", count(it.incarnation));
      const children = make("a", { href: `#processes?${new URLSearchParams({ filter: `parent:${it.pid.replace(/^\{|\}$/g, "")}` })}` }, "its children");
      const parent = it.parent ? [pidLink(it.parent, it.scheduler), " · "] : ["none · "];
      fact("Parent", { key: it.parent ?? "none", children: [...parent, children] });
      fact("Links", pids(it.links, it.scheduler));
      fact("Monitors", watching(it.monitors, it.monitored ?? [], it.scheduler));
      fact("Watched by", watching(it.watched_by, it.watchers ?? [], it.scheduler));
      if (it.restarts !== null && it.restarts !== undefined) {
        fact("Restarts by its supervisor", `${count(it.restarts)}${it.last_cause ? `, the last time: ${it.last_cause}` : ""}`);
      }
      fact("Bytes, without what it points to", count(it.bytes));
      spark(line, series);
      waits.draw(it.waits);
      actions.draw(it);
    },
    refused(error) {
      isOver = error.status === 404;
      put(ended, error.status === 404 ? "This process is not alive. Below is what was seen of it last." : error.message);
      if (isOver) actions.end();
    },
  };
}
