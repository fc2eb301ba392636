// Texts of values, and elements. Every text of the program becomes a text node: no text is read as
// HTML.

const SVG = "http://www.w3.org/2000/svg";

/** A duration in nanoseconds, in the unit that suits it. */
function duration(ns) {
  if (ns === null || ns === undefined) return "–";
  const units = [[1e3, 1, "ns"], [1e6, 1e3, "µs"], [1e9, 1e6, "ms"], [120e9, 1e9, "s"]];
  for (const [below, unit, name] of units) {
    if (ns < below) return `${digits(ns / unit)} ${name}`;
  }
  const seconds = Math.floor(ns / 1e9);
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = parts.findIndex(([length]) => seconds >= length);
  const [[long, longName], next] = [parts[first], parts[first + 1]];
  const rest = Math.floor((seconds % long) / next[0]);
  return `${Math.floor(seconds / long)} ${longName} ${rest} ${next[1]}`;
}

/** Three digits. */
function digits(value) {
  if (value === 0 || value >= 99.95) return String(Math.round(value));
  return value.toFixed(value >= 9.995 ? 1 : 2).replace(/\.?0+$/, "");
}

/** A count: whole up to 99,999, then in thousands, millions and so on. */
function count(value) {
  if (value === null || value === undefined) return "–";
  if (value < 1e5) return Math.round(value).toLocaleString("en");
  const units = [[1e6, 1e3, "k"], [1e9, 1e6, "M"], [1e12, 1e9, "G"], [Infinity, 1e12, "T"]];
  const [, unit, name] = units.find(([below]) => value < below);
  return `${digits(value / unit)} ${name}`;
}

/** A rate in events a second. */
function rate(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  return value < 100 ? digits(value) : count(value);
}

function percent(share) {
  return share === null || share === undefined ? "–" : `${digits(100 * share)} %`;
}

/** A type without the first parts of its paths. */
function shortType(name) {
  return name.replace(/(?:\w+::)+(?=\w+::[\w{<])/g, "");
}

/** An element with attributes, listeners (`onclick`) and children; a string is a text node. */
function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function makeSvg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children);
  return element;
}

/** Changes a text, if it is another. A selection of the same text stays. */
function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Puts children in the place of those that are there. */
function putChildren(element, ...children) {
  element.replaceChildren(...children);
}

function byId(id) {
  return document.getElementById(id);
}

function select(options, chosen, change) {
  const element = make("select", { onchange: () => change(element.value) });
  for (const [value, text] of options) {
    element.append(make("option", { value, selected: value === chosen }, text));
  }
  return element;
}

/** A link to the view of one process. */
function pidLink(pid, scheduler) {
  return make("a", { href: `#process?pid=${encodeURIComponent(pid)}&of=${scheduler ?? ""}` }, pid);
}
