// The graph of waits: cycles in red, and which party the most wait for.

const MOST_DRAWN = 60;
const BOX = { width: 215, height: 38, across: 310, down: 56 };

function waits() {
  const note = make("p", { class: "note" });
  const cycles = make("div");
  const graph = makeSvg("svg", { class: "graph", role: "img" });
  const frame = make("div", { class: "scroll" }, graph);
  const heads = new Table([
    { title: "Party that waits for none", class: "name", cell: (it) => partyText(it.party, it.party_name) },
    { title: "Waiters", class: "number", cell: (it) => count(it.waiters) },
    { title: "the longest", class: "number", cell: (it) => duration(it.longest_ns) },
  ], { key: (it) => it.party, empty: "No process waits behind a party that is known." });
  const table = new Table([
    { title: "Waiter", class: "name", cell: (it) => partyText(it.waiter, it.waiter_name) },
    { title: "for", cell: (it) => it.kind },
    { title: "of", class: "name", cell: (it) => it.parties.join(", ") || "unknown" },
    { title: "since", class: "number", cell: (it) => duration(it.since_ns) },
  ], {
    key: (it) => `${it.scheduler} ${it.waiter} ${it.kind} ${it.parties.join(" ")}`,
    open: (it) => it.scheduler !== null && go("process", { pid: it.waiter, of: it.scheduler }),
    empty: "No process waits for another.",
  });
  let drawn = "";
  return {
    element: make("div", {}, note, cycles, frame,
      make("h2", {}, "Which party the most wait for"), heads.element,
      make("h2", {}, "Waits, those for a known party first"), table.element),
    enter() {
      drawn = "";
    },
    path: () => "/api/v1/waits",
    answer(answer) {
      const inCycle = new Set(answer.cycles.flat());
      tellCycles(cycles, answer);
      const shown = chosen(answer, inCycle);
      const key = shown.map((at) => `${at} ${answer.waits[at].waiter} ${answer.waits[at].parties}`).join("|");
      frame.hidden = shown.length === 0;
      if (key !== drawn) drawGraph(graph, answer, shown, inCycle);
      drawn = key;
      heads.draw(answer.heads.slice(0, 50));
      const rows = answer.waits.map((it, at) => ({ ...it, className: inCycle.has(at) ? "bad" : "" }));
      // A sleep has no party: it ends by itself.
      const [known, rest] = [true, false].map((has) => rows.filter((it) => (it.parties.length > 0) === has));
      table.draw([...known, ...rest].slice(0, 100));
      const left = answer.others ? ` ${count(answer.others)} more waits are left out.` : "";
      put(note, `${count(answer.waits.length)} waits of processes and threads for each other; `
        + `${answer.cycles.length ? `${count(answer.cycles.length)} in a circle, which end by no event` : "none in a circle"}.${left}`);
    },
    refused: (error) => put(note, error.message),
  };
}

function partyText(party, name) {
  return name ? `${shortType(name)} ${party}` : party;
}

function tellCycles(element, answer) {
  const texts = answer.cycles.map((cycle) => cycle.map((at) => {
    const wait = answer.waits[at];
    return `${partyText(wait.waiter, wait.waiter_name)} waits for ${wait.kind} of ${wait.parties.join(", ")}, for ${duration(wait.since_ns)}`;
  }));
  // A list that is as long as before changes its texts alone.
  const shape = texts.map((it) => it.length).join(" ");
  if (element.dataset.shape !== shape) {
    element.dataset.shape = shape;
    putChildren(element, ...texts.map((lines) => make("div", { class: "cycle-text" },
      make("b", {}, "These wait for each other"), make("ol", {}, ...lines.map(() => make("li"))))));
  }
  element.querySelectorAll("li").forEach((line, at) => put(line, texts.flat()[at]));
}

/** The waits that are drawn: cycles first, then the longest with known parties. */
function chosen(answer, inCycle) {
  const known = answer.waits.map((_, at) => at).filter((at) => !inCycle.has(at) && answer.waits[at].parties.length);
  return [...inCycle, ...known].slice(0, MOST_DRAWN);
}

/** Each party has a box, in a column by how many waits lead from it to a head or a cycle. */
function drawGraph(graph, answer, shown, inCycle) {
  const names = new Map();
  const edges = [];
  for (const at of shown) {
    const wait = answer.waits[at];
    names.set(wait.waiter, wait.waiter_name);
    for (const party of wait.parties) edges.push({ from: wait.waiter, to: party, kind: wait.kind, isBad: inCycle.has(at) });
  }
  for (const { to } of edges) if (!names.has(to)) names.set(to, answer.heads.find((it) => it.party === to)?.party_name ?? null);
  const places = layout([...names.keys()], edges);
  const columns = Math.max(...[...places.values()].map((it) => it.column)) + 1;
  const rows = Math.max(...[...places.values()].map((it) => it.row)) + 1;
  const width = columns * BOX.across + 120;
  const height = rows * BOX.down + 12;
  graph.setAttribute("viewBox", `0 0 ${width} ${height}`);
  graph.style.maxWidth = `${width}px`;
  graph.style.minWidth = `${width * 0.8}px`;
  graph.setAttribute("aria-label", "Waits as a graph; the tables below have the same as text");
  const corner = (party) => {
    const { column, row } = places.get(party);
    return [column * BOX.across + 80, row * BOX.down + 10];
  };
  const parts = edges.map((it) => drawEdge(it, corner(it.from), corner(it.to)));
  for (const [party, name] of names) parts.push(drawBox(party, name, corner(party)));
  putChildren(graph, ...parts);
}

function layout(parties, edges) {
  const column = new Map(parties.map((it) => [it, null]));
  const waitersOf = (party) => edges.filter((it) => it.to === party && column.get(it.from) === null);
  const isHead = (party) => !edges.some((it) => it.from === party);
  let front = parties.filter((it) => isHead(it) || edges.some((edge) => edge.isBad && edge.from === it));
  front.forEach((it) => column.set(it, 0));
  for (let depth = 1; front.length; depth += 1) {
    const next = new Set(front.flatMap((it) => waitersOf(it).map((edge) => edge.from)));
    next.forEach((it) => column.set(it, depth));
    front = [...next];
  }
  const used = new Map();
  return new Map(parties.map((it) => {
    const place = { column: column.get(it) ?? 0, row: used.get(column.get(it) ?? 0) ?? 0 };
    used.set(place.column, place.row + 1);
    return [it, place];
  }));
}

function drawEdge({ kind, isBad }, [x1, y1], [x2, y2]) {
  const middle = BOX.height / 2;
  // An edge leads to the left. Between boxes of a column, it leads down on the left side, and up on
  // the right side.
  const isBeside = x1 === x2;
  const isUp = isBeside && y2 <= y1;
  const [fromX, fromY] = [x1 + (isUp ? BOX.width : 0), y1 + middle];
  const [toX, toY] = [x2 + (isBeside && !isUp ? 0 : BOX.width), y2 + middle];
  const out = isUp ? 34 : -34;
  const [bendFrom, bendTo] = isBeside ? [out, out] : [(toX - fromX) / 2, (fromX - toX) / 2];
  const tip = isBeside && !isUp ? -8 : 8;
  const group = makeSvg("g", {},
    makeSvg("path", {
      d: `M${fromX} ${fromY} C${fromX + bendFrom} ${fromY} ${toX + bendTo} ${toY} ${toX + tip} ${toY}`,
      class: isBad ? "cycle" : null,
    }),
    makeSvg("path", { d: `M${toX} ${toY} l${tip} -4 v8 z`, class: isBad ? "arrow cycle" : "arrow" }));
  const text = isBeside
    ? { x: fromX + out * 0.8, y: (fromY + toY) / 2 + 4, "text-anchor": isUp ? "start" : "end" }
    : { x: fromX - 8, y: fromY - 5, "text-anchor": "end" };
  group.append(makeSvg("text", { ...text, class: "dim" }, kind));
  return group;
}

function drawBox(party, name, [x, y]) {
  const cut = (text) => (text.length > 30 ? `${text.slice(0, 29)}…` : text);
  const title = makeSvg("title", {}, `${name ?? ""} ${party}`);
  return makeSvg("g", {}, title,
    makeSvg("rect", { x, y, width: BOX.width, height: BOX.height, rx: 6 }),
    makeSvg("text", { x: x + 8, y: y + 16 }, cut(name ? shortType(name) : party)),
    makeSvg("text", { x: x + 8, y: y + 31, class: "dim" }, name ? cut(party) : ""));
}
