// The head: what is true of a whole scheduler at a glance, alarms, and whether the program answers.

const TILES = [
  ["Uptime", (it) => duration(it.newest.uptime_ns)],
  ["Processes", (it) => count(it.newest.live)],
  ["Workers busy", (it) => percent(lastOf(it, "busyShare"))],
  ["Ready now", (it) => count(it.newest.ready)],
  ["Steps/s", (it) => rate(lastOf(it, "stepRate"))],
  ["Messages/s", (it) => rate(lastOf(it, "messageRate"))],
  ["Timers/s", (it) => rate(lastOf(it, "timerRate"))],
  ["Ready p50", (it) => duration(lastOf(it, "ready50"))],
  ["Ready p99", (it) => duration(lastOf(it, "ready99"))],
  ["Step p50", (it) => duration(lastOf(it, "step50"))],
  ["Step p99", (it) => duration(lastOf(it, "step99"))],
  ["Alarms", (it) => count(it.newest.alarms.length), (it) => it.newest.alarms.length > 0],
];

function lastOf(history, name) {
  const points = history.points;
  return points.length ? points[points.length - 1][name] : null;
}

const tiles = TILES.map(([title, text, isBad]) => {
  const value = make("dd", {}, "–");
  const element = make("div", {}, make("dt", {}, title), value);
  byId("tiles").append(element);
  return { element, value, text, isBad };
});

function drawHead(history) {
  const { newest } = history;
  for (const { element, value, text, isBad } of tiles) {
    put(value, text(history));
    element.classList.toggle("bad", Boolean(isBad?.(history)));
  }
  const threads = newest.threads;
  const parts = [newest.node ? `${newest.host} on ${newest.node}` : newest.host];
  parts.push(`${threads.workers} workers`);
  if (threads.spares) parts.push(`${threads.spares} spares`);
  if (threads.relieved) parts.push(`${threads.relieved} stuck`);
  parts.push(newest.is_stopping ? "stopping" : newest.is_started ? `observes ${newest.observes}` : "not started");
  put(byId("host"), parts.join(" · "));
  drawAlarms(newest);
}

const alarms = new Map();

function drawAlarms(scheduler) {
  const list = byId("alarms");
  const raised = new Set(scheduler.alarms.map((it) => `${scheduler.number}/${it.number}`));
  for (const [key, row] of alarms) {
    if (!raised.has(key)) {
      row.element.remove();
      alarms.delete(key);
    }
  }
  for (const alarm of scheduler.alarms) {
    const key = `${scheduler.number}/${alarm.number}`;
    let row = alarms.get(key);
    if (!row) {
      const since = make("span", { class: "dim" });
      const element = make("li", { class: alarm.is_severe ? "severe" : null }, make("b", {}, alarm.kind), ` ${alarm.text} `);
      if (alarm.pid) element.append(pidLink(alarm.pid, scheduler.number), " ");
      element.append(since);
      row = { element, since };
      alarms.set(key, row);
      list.append(element);
    }
    put(row.since, `for ${duration(alarm.since_ns)}`);
  }
}

/** Says whether the program answers. */
function tellLink(error, seenAt) {
  const gone = byId("gone");
  byId("link").classList.toggle("lost", Boolean(error));
  put(byId("link"), error ? "no answer" : "live");
  gone.hidden = !error;
  if (!error) return;
  const ago = seenAt ? `; its last answer is ${duration((Date.now() - seenAt) * 1e6)} old` : "";
  const why = error.status === 401 || error.status === 0 ? ` ${error.message}` : "";
  put(gone, `The program does not answer${ago}.${why} This page asks again by itself.`);
}

/** A button that has a file made, and saves it. */
function fileButton(id, path, name) {
  const button = byId(id);
  button.addEventListener("click", async () => {
    const seconds = Number(byId("seconds").value);
    button.disabled = true;
    put(byId("saved"), `${id}: ${seconds} s …`);
    try {
      const query = new URLSearchParams({ seconds: String(seconds) });
      const answer = await fetch(`${path}?${query}`, { signal: AbortSignal.timeout((seconds + 30) * 1000) });
      if (!answer.ok) throw new Refused(answer.status, (await answer.text()).trim());
      const address = URL.createObjectURL(await answer.blob());
      const said = /filename="([^"]+)"/.exec(answer.headers.get("content-disposition") ?? "");
      make("a", { href: address, download: said ? said[1] : name }).click();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
      put(byId("saved"), `${id}: saved`);
    } catch (error) {
      put(byId("saved"), `${id}: ${error.status === 404 ? "this program does not offer it" : error.message}`);
    }
    button.disabled = false;
  });
}
