// The page: its place, its views, the snapshots, and a loop that asks for what the open view shows,
// and for no other view. Both rest while the tab is hidden.

const MISSING_PAUSE_MS = 60_000;

const VIEWS = [
  ["overview", "Overview", overview], ["workers", "Workers", workers], ["processes", "Processes", processes],
  ["process", "One process", oneProcess], ["groups", "Groups", groups], ["tree", "Tree", tree],
  ["waits", "Waits", waits], ["sockets", "Sockets", sockets], ["nodes", "Nodes", nodes],
  ["letters", "Dead letters", letters], ["steps", "Long steps", longSteps],
].map(([name, title, build]) => ({ name, title, ...build() }));

/** The chosen scheduler's number; none while there is a single one. */
let scheduler = null;
const histories = new Map();
let view = VIEWS[0];
/** The parameters of the view, which the address has behind `#`. */
let place = new URLSearchParams();
let seenAt = null;
let looks = null;
let lookTimer = null;

function history() {
  return histories.get(scheduler) ?? histories.values().next().value ?? null;
}

/** Draws what the snapshots have. */
function redraw() {
  const shown = history();
  if (!shown?.newest) return;
  drawHead(shown);
  if (view.draw) view.draw(shown);
  const steps = VIEWS.find((it) => it.name === "steps");
  put(steps.tab, shown.newest.long_steps.length ? `${steps.title} (${shown.newest.long_steps.length})` : steps.title);
}

function take(snapshot) {
  const numbers = snapshot.schedulers.map((it) => it.number);
  for (const of of snapshot.schedulers) {
    if (!histories.has(of.number)) histories.set(of.number, new History());
    histories.get(of.number).take(of);
  }
  for (const number of histories.keys()) if (!numbers.includes(number)) histories.delete(number);
  // An older program names none.
  allowed = snapshot.actions ?? [];
  offerSchedulers(snapshot.schedulers);
  redraw();
}

function offerSchedulers(all) {
  byId("schedulers").hidden = all.length < 2;
  const wanted = Number(place.get("scheduler"));
  scheduler = all.length < 2 ? null : all.find((it) => it.number === wanted)?.number ?? all[0].number;
  const key = all.map((it) => `${it.number} ${it.host} ${it.node ?? ""}`).join("|");
  const list = byId("scheduler");
  if (list.dataset.key !== key) {
    list.dataset.key = key;
    putChildren(list, ...all.map((it) => make("option", { value: it.number }, `${it.number}: ${it.host} ${it.node ?? ""}`)));
  }
  if (scheduler !== null) list.value = String(scheduler);
}

const live = new Live((snapshot) => {
  const isBack = !byId("gone").hidden;
  seenAt = Date.now();
  tellLink(null);
  take(snapshot);
  // The view has waited for the program.
  if (isBack) look();
}, (error) => {
  if (!(error instanceof Refused)) console.info(`no snapshot: ${error.message}`);
  tellLink(error, seenAt);
});

/** Asks for what the view shows. A change of the place gives up a question under way. */
async function look() {
  clearTimeout(lookTimer);
  looks?.abort();
  if (document.hidden) return;
  const [asked, control] = [view, new AbortController()];
  looks = control;
  let pause = asked.period ?? PERIOD_MS;
  const path = asked.path?.();
  if (path && live.isHere) {
    try {
      const answer = await ask(path, asked.patience ?? 10_000, control.signal);
      if (looks === control) asked.answer(answer);
    } catch (error) {
      if (looks !== control) return;
      const isMissing = error.status === 404 && asked.name !== "process";
      if (isMissing) pause = MISSING_PAUSE_MS;
      // The head says that the program does not answer.
      if (error instanceof Refused) {
        asked.refused(isMissing
          ? new Refused(404, "This program's version of Ganger does not offer this view.") : error);
      }
    }
  }
  if (looks === control) lookTimer = setTimeout(look, pause);
}

function lookNow() {
  saveAddress();
  look();
}

/** Opens a view, with its parameters. */
function go(name, parameters) {
  place = new URLSearchParams(Object.entries(parameters));
  if (scheduler !== null) place.set("scheduler", scheduler);
  location.hash = `${name}?${place}`;
}

function saveAddress() {
  window.history.replaceState(null, "", `#${view.name}?${place}`);
}

/** Opens the view of the address. */
function enter() {
  const [name, query] = location.hash.slice(1).split("?");
  view = VIEWS.find((it) => it.name === name) ?? VIEWS[0];
  place = new URLSearchParams(query ?? "");
  for (const it of VIEWS) {
    it.tab.setAttribute("aria-selected", String(it === view));
    it.tab.tabIndex = it === view ? 0 : -1;
  }
  view.tab.scrollIntoView({ block: "nearest", inline: "nearest" });
  byId("main").setAttribute("aria-labelledby", view.tab.id);
  if (byId("main").firstChild !== view.element) putChildren(byId("main"), view.element);
  document.title = `${view.title} · Ganger`;
  view.enter?.();
  redraw();
  look();
}

function makeTabs() {
  const list = byId("tabs");
  VIEWS.forEach((it, at) => {
    it.tab = make("button", {
      role: "tab", id: `tab-${it.name}`, "aria-controls": "main", title: `Key ${(at + 1) % 10}`,
      onclick: () => go(it.name, {}),
    }, it.title);
    list.append(it.tab);
  });
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = VIEWS[(VIEWS.indexOf(view) + step + VIEWS.length) % VIEWS.length];
    go(next.name, {});
    next.tab.focus();
    event.preventDefault();
  });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input, select")) return;
  const at = event.key === "0" ? 10 : Number(event.key);
  if (at >= 1 && at <= VIEWS.length) go(VIEWS[at - 1].name, {});
  else if (event.key === "/") {
    if (view.name !== "processes") go("processes", {});
    setTimeout(() => byId("filter")?.focus(), 0);
    event.preventDefault();
  }
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) live.stop();
  else live.start();
  look();
});
window.addEventListener("hashchange", enter);
window.addEventListener("resize", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  readColours();
  redraw();
});
byId("scheduler").addEventListener("change", (event) => {
  place.set("scheduler", event.target.value);
  scheduler = Number(event.target.value);
  lookNow();
  redraw();
});
fileButton("trace", "/trace", "trace.pftrace");
fileButton("profile", "/profile", "profile.txt");
readColours();
makeTabs();
enter();
if (!document.hidden) live.start();
