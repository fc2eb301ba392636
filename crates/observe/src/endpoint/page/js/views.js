// Groups, the tree, dead letters, sockets, and nodes.

function ofScheduler(list) {
  return scheduler === null ? list : list.filter((it) => it.scheduler === scheduler);
}

function groups() {
  let first = new Map();
  const key = (it) => [it.scheduler, it.type_name, it.method, it.label, it.state, it.waits_for].join(" ");
  const grown = (it) => it.count - (first.get(key(it)) ?? 0);
  const number = (title, cell) => ({ title, class: "number", cell });
  const table = new Table([
    { title: "Type", class: "name", cell: typeCell },
    number("Processes", (it) => count(it.count)),
    number("grown", (it) => (grown(it) > 0 ? `+${count(grown(it))}` : grown(it) < 0 ? `−${count(-grown(it))}` : "")),
    { title: "State", cell: (it) => it.state },
    { title: "Waits for", class: "plain", cell: (it) => it.waits_for ?? "" },
    { title: "Label", class: "plain", cell: (it) => it.label ?? "" },
    { title: "Method", class: "wide", cell: (it) => it.method },
    number("Events", (it) => count(it.waiting)),
  ], {
    key,
    open: (it) => go("processes", { filter: `type:${it.type_name.split(/\s/)[0]} state:${it.state}` }),
    empty: "No process is alive.",
  });
  const note = make("p", { class: "note" });
  return {
    element: make("div", {}, note, table.element),
    period: 2_000,
    enter() {
      first = new Map();
    },
    path: () => "/api/v1/groups",
    answer(answer) {
      const list = ofScheduler(answer.groups);
      if (!first.size) first = new Map(list.map((it) => [key(it), it.count]));
      table.draw(list.slice(0, 200));
      const left = answer.others ? ` ${count(answer.others)} processes are in smaller groups.` : "";
      put(note, `Processes that are alike. A leak is a group that only grows: "grown" is since this view is open.${left}`);
    },
    refused: (error) => put(note, error.message),
  };
}

const MOST_ROWS = 400;

function tree() {
  const folded = new Map();
  let last = null;
  const key = (it) => `${it.scheduler} ${it.pid ?? ""} ${it.path}`;
  const fold = (it) => {
    folded.set(key(it), !it.isFolded);
    show();
  };
  const table = new Table([
    { title: "Process", class: "name", cell: (it, cell) => treeCell(it, cell, fold) },
    { title: "State", cell: (it, cell) => {
      cell.className = `plain ${it.state ?? "refused"}`;
      return it.state ?? "not running";
    } },
    { title: "Restarts", class: "number", cell: (it) => (it.restarts ? count(it.restarts) : "") },
    { title: "Last cause", class: "name wide", cell: (it) => it.last_cause ?? "" },
    { title: "PID", class: "pid wide", cell: (it) => it.pid ?? "" },
  ], {
    key,
    open: (it) => it.pid && go("process", { pid: it.pid, of: it.scheduler }),
    empty: "No process is alive.",
  });
  table.body.addEventListener("keydown", (event) => {
    const row = table.rows.get(event.target.closest("tr")?.dataset.key)?.value;
    if (!row?.below || !["ArrowLeft", "ArrowRight"].includes(event.key)) return;
    if (row.isFolded === (event.key === "ArrowRight")) fold(row);
    event.preventDefault();
  });
  const note = make("p", { class: "note" });
  const show = () => {
    const rows = treeRows(last.nodes, folded, key);
    table.draw(rows.slice(0, MOST_ROWS));
    const left = Math.max(0, rows.length - MOST_ROWS) + last.others;
    put(note, `Supervisors with their children, and below each process those that it has started.${left ? ` ${count(left)} more are not shown.` : ""}`);
  };
  return {
    element: make("div", {}, note, table.element),
    period: 2_000,
    path: () => "/api/v1/tree",
    answer(answer) {
      last = answer;
      show();
    },
    refused: (error) => put(note, error.message),
  };
}

/** The rows of the tree that no folded process hides, in the order of the tree. */
function treeRows(nodes, folded, key) {
  const below = new Map();
  nodes.forEach((node, at) => {
    const list = below.get(node.parent) ?? [];
    list.push(at);
    below.set(node.parent, list);
  });
  const rows = [];
  const add = (parent, depth, path) => {
    for (const at of below.get(parent) ?? []) {
      const node = nodes[at];
      if (depth === 0 && scheduler !== null && node.scheduler !== scheduler) continue;
      const row = { ...node, depth, path: `${path}/${node.name ?? node.kind}`, below: below.get(at)?.length ?? 0 };
      // Children of a supervisor are shown, and others where they are few.
      row.isFolded = row.below > 0 && (folded.get(key(row)) ?? (!node.is_supervisor && row.below > 8));
      rows.push(row);
      if (row.below && !row.isFolded) add(at, depth + 1, row.path);
    }
  };
  add(null, 0, "");
  return rows;
}

function treeCell(row, cell, fold) {
  if (!cell.firstChild) {
    const button = make("button", { onclick: () => fold(button.row) });
    cell.append(make("div", { class: "tree-name" }, button, make("span"), make("span", { class: "sub" })));
  }
  const [button, name, kind] = cell.firstChild.children;
  button.row = row;
  button.style.visibility = row.below ? "visible" : "hidden";
  button.setAttribute("aria-label", row.isFolded ? "Unfold" : "Fold");
  button.setAttribute("aria-expanded", String(!row.isFolded));
  put(button, row.isFolded ? "▸" : "▾");
  cell.firstChild.style.paddingLeft = `${Math.min(row.depth, 12) * 1.1}rem`;
  put(name, row.name ?? shortType(row.kind));
  put(kind, `${row.name ? shortType(row.kind) : ""}${row.isFolded ? ` (${count(row.below)} below)` : ""}`);
}

const REASONS = {
  ended: "the process had ended",
  late_ended: "late, and the process had ended",
  late_full: "late, and the mailbox was full",
  late_refused: "late, and refused",
};

function letters() {
  const note = make("p", { class: "note" });
  const table = new Table([
    { title: "Ago", class: "number", cell: (it) => it.ago },
    { title: "Why", class: "name", cell: (it) => REASONS[it.reason] ?? it.reason },
    { title: "For", class: "pid", cell: (it) => it.target },
    { title: "From", class: "pid wide", cell: (it) => it.source ?? "unknown" },
    { title: "Topic", class: "wide", cell: (it) => it.topic },
    { title: "Message", class: "name", cell: messageCell },
  ], { key: (it) => it.key, empty: "No dead letter is kept." });
  return {
    element: make("div", {}, note, table.element),
    path: () => "/api/v1/letters",
    answer(answer) {
      const all = ofScheduler(answer.schedulers);
      const texts = all.map((it) => `${it.host}: ${count(it.undelivered)} messages were dropped by ends of their `
        + `processes, ${count(it.refused)} late ones refused.${it.last ? "" : " None is kept: see observe::keep_letters."}`);
      put(note, texts.join(" "));
      table.draw(all.flatMap((of) => {
        const uptime = histories.get(of.scheduler)?.newest.uptime_ns;
        const seen = new Map();
        const rows = (of.last ?? []).map((letter) => {
          const name = `${of.scheduler} ${letter.at_ns} ${letter.target}`;
          seen.set(name, (seen.get(name) ?? 0) + 1);
          return { ...letter, key: `${name} ${seen.get(name)}`, ago: uptime ? duration(Math.max(0, uptime - letter.at_ns)) : "" };
        });
        return rows.reverse();
      }));
    },
    refused: (error) => put(note, error.message),
  };
}

function messageCell(letter, cell) {
  cell.title = letter.message ?? "";
  return letter.text ?? (letter.message ? shortType(letter.message) : "");
}

const SOCKETS = {
  tcp_listener: "TCP listener",
  tcp: "TCP",
  unix_listener: "Unix listener",
  unix: "Unix",
  udp: "UDP",
  pipe: "pipe",
  child: "child process",
  signal: "signals",
  call: "blocking call",
};

/** The orders of sockets: texts from the first one up, and the longest wait first. */
const SOCKET_ORDERS = {
  kind: (it) => SOCKETS[it.kind] ?? it.kind,
  local: (it) => it.local ?? "",
  peer: (it) => it.peer ?? "",
  since: (it) => Math.max(-1, ...it.waits.map((wait) => wait.since_ns ?? -1)),
};

function sockets() {
  let last = null;
  const since = (it) => (SOCKET_ORDERS.since(it) < 0 ? "" : duration(SOCKET_ORDERS.since(it)));
  const table = new Table([
    { title: "Socket", by: "kind", class: "name", cell: SOCKET_ORDERS.kind },
    { title: "Here", by: "local", class: "name", cell: SOCKET_ORDERS.local },
    { title: "Peer", by: "peer", class: "name", cell: SOCKET_ORDERS.peer },
    { title: "Waits on it", class: "name", cell: socketCell },
    { title: "since", by: "since", class: "number", cell: since },
    { title: "Id", by: "id", class: "number wide", cell: (it) => String(it.id) },
  ], {
    key: (it) => `${it.scheduler} ${it.id}`,
    open: (it) => {
      const known = it.waits.find((wait) => wait.pid && wait.scheduler !== null);
      if (known) go("process", { pid: known.pid, of: known.scheduler });
    },
    sort: (by) => {
      place.set("by", by);
      if (last) show();
      lookNow();
    },
    empty: "No socket is open.",
  });
  const note = make("p", { class: "note" });
  const show = () => {
    const by = place.get("by") ?? "id";
    table.sortedBy(by, by === "since" ? "descending" : "ascending");
    table.draw(SOCKET_ORDERS[by] ? [...last.sockets].sort(inOrder(SOCKET_ORDERS[by])) : last.sockets);
    const left = last.open - last.sockets.length;
    put(note, last.driven.length
      ? `${count(last.open)} open sockets.${left > 0 ? ` ${count(left)} younger ones are not shown.` : ""}`
      : "ganger-net drives no scheduler that is shown here: see Builder::driver.");
  };
  return {
    element: make("div", {}, note, table.element),
    period: 2_000,
    path: () => `/api/v1/sockets?top=${MOST_ROWS}${scheduler === null ? "" : `&scheduler=${scheduler}`}`,
    answer(answer) {
      last = answer;
      show();
    },
    refused: (error) => put(note, error.message),
  };
}

function nodes() {
  const sum = (pair) => pair[0] + pair[1];
  const number = (title, cell) => ({ title, class: "number", cell: (it) => count(cell(it)) });
  const table = new Table([
    { title: "Node", class: "name", cell: (it) => it.node },
    { title: "Peer", class: "name", cell: (it) => it.name },
    { title: "Session", cell: (it) => it.state },
    { title: "Run", class: "wide", cell: (it) => it.incarnation ?? "" },
    { title: "Round trip", class: "number", cell: (it) => (it.round_trip_ns === null ? "" : duration(it.round_trip_ns)) },
    { title: "Queue", class: "number", cell: (it) => `${count(sum(it.queued))} B` },
    { title: "In flight", class: "number", cell: (it) => `${count(sum(it.unacknowledged))} B` },
    number("Senders wait", (it) => it.waiting),
    number("Sent again", (it) => sum(it.resent)),
    number("Watching", (it) => it.watching),
    number("Watched", (it) => it.watched),
    number("Links", (it) => it.links),
    number("Asked", (it) => it.asked),
    number("Ended", (it) => it.ended),
    number("Lost", (it) => it.undelivered),
    { title: "Last end", class: "wide", cell: (it) => it.last_end ?? "" },
  ], { key: (it) => `${it.scheduler} ${it.name}`, empty: "No other node is known." });
  const owners = new Table([
    { title: "Name", class: "name", cell: (it) => it.name },
    { title: "Owner", class: "wide", cell: (it) => it.pid },
    { title: "Of node", class: "name", cell: (it) => it.node },
    { title: "Kind", cell: (it) => (it.token === null ? "eventual" : it.is_given_up ? "strong, given up" : "strong") },
    { title: "Token", class: "number", cell: (it) => (it.token === null ? "" : `${it.token}`) },
    { title: "Seen by", class: "name", cell: (it) => it.of },
  ], { key: (it) => `${it.scheduler} ${it.token === null} ${it.name}`, empty: "No name of the cluster is known." });
  const note = make("p", { class: "note" });
  const agreed = make("p", { class: "note" });
  return {
    element: make("div", {}, note, table.element, agreed, owners.element),
    path: () => "/api/v1/nodes",
    answer(answer) {
      const all = ofScheduler(answer.nodes);
      put(note, all.map((it) => `${it.name}, run ${it.incarnation} of the cluster ${it.cluster}.`).join(" ")
        || "No scheduler here is a node of a cluster: see ganger::cluster.");
      table.draw(all.flatMap((of) => of.peers.map((it) => ({ ...it, scheduler: of.scheduler, node: of.name }))));
      put(agreed, all.map(agreement).join(" "));
      owners.draw(all.flatMap((of) => of.names.first.map((it) => ({ ...it, scheduler: of.scheduler, of: of.name }))));
    },
    refused: (error) => put(note, error.message),
  };
}

/** The store, the lease and the number of the names of a node, as sentences. */
function agreement({ name, names, lease, store }) {
  const all = names.eventual + names.strong;
  const some = all > names.first.length ? `, the first ${count(names.first.length)} below` : "";
  const told = [`${name} knows ${count(names.strong)} strong and ${count(names.eventual)} eventual names${some}.`];
  if (store) {
    const reached = store.lost_ns === null ? "reachable" : `not reachable for ${duration(store.lost_ns)}`;
    told.push(`Its store: ${store.what}; ${reached}, ${count(store.waiting)} operations wait.`);
  }
  if (lease) {
    told.push(`Its lease: ${duration(lease.left_ns)} of ${duration(lease.whole_ns)} left, for ${count(lease.names)} names and ${count(lease.locks)} locks; ${count(lease.waiting)} wait.`);
  }
  return told.join(" ");
}

/** Numbers from the largest down, and texts from the first up, with none at the end. */
function inOrder(read) {
  return (one, other) => {
    const [a, b] = [read(one), read(other)];
    if (typeof a === "number") return b - a;
    return a && b ? a.localeCompare(b, "en", { numeric: true }) : Number(!a) - Number(!b);
  };
}

function socketCell(socket, cell) {
  const key = socket.waits.map((it) => `${it.scheduler} ${it.pid} ${it.name} ${it.is_write}`).join("|");
  if (cell.dataset.shown === key) return;
  cell.dataset.shown = key;
  const read = socket.kind.includes("listener") ? "to accept" : "to read";
  putChildren(cell, ...socket.waits.map((it) => {
    const name = it.name ? `${shortType(it.name)} ` : "";
    const process = it.pid && it.scheduler !== null ? pidLink(it.pid, it.scheduler) : it.pid ?? "unknown";
    return make("div", {}, name, process, make("span", { class: "dim" }, ` ${it.is_write ? "to write" : read}`));
  }));
}
