// Charts on canvases: lines over the last ten minutes, histograms, lanes. A chart is drawn from
// numbers alone, and its text is beside it, for readers of screens too.

let colours = {};

/** Reads the colours of the style: they change with the mode of the system. */
function readColours() {
  const style = getComputedStyle(document.documentElement);
  const names = ["ink", "dim", "line", "first", "second", "third", "bad", "idle", "search"];
  colours = Object.fromEntries(names.map((it) => [it, style.getPropertyValue(`--${it}`).trim()]));
}

/** A context with the size of the element, sharp on every screen. */
function prepare(canvas, height) {
  const [width, scale] = [canvas.clientWidth, window.devicePixelRatio || 1];
  const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
    canvas.style.height = `${height}px`;
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "11px system-ui, sans-serif";
  return [pen, width];
}

/** A round number that is not below the value. */
function roundUp(value) {
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((it) => it * unit).find((it) => it >= value * 0.999) ?? 10 * unit;
}

/** The seconds that a chart shows: as many as there are, rounded up. */
function spanOf(history) {
  const length = history.points.length ? history.now() - history.points[0].at : 0;
  return [60, 120, 300].find((it) => it >= length) ?? KEPT_SECONDS;
}

function agoText(seconds) {
  if (seconds === 0) return "now";
  return seconds < 60 ? `−${seconds} s` : `−${digits(seconds / 60)} min`;
}

/** A chart of lines over time. A line has a name, a colour and the value of a point. */
class LineChart {
  constructor(title, lines, format, isLog = false) {
    Object.assign(this, { title, lines, format, isLog, hover: null, history: null });
    this.canvas = make("canvas", {
      role: "img",
      onpointermove: (event) => this.point(event.offsetX),
      onpointerleave: () => this.point(null),
    });
    this.legend = make("div", { class: "legend" });
    this.element = make("div", { class: "card" }, make("h3", {}, title), this.canvas, this.legend);
    this.texts = lines.map((line) => {
      const swatch = make("span", { class: "swatch" });
      const text = make("b");
      this.legend.append(make("span", {}, swatch, `${line.name} `, text));
      return { swatch, text };
    });
    this.when = make("span");
    this.legend.append(this.when);
  }

  point(x) {
    this.hover = x;
    if (this.history) this.draw(this.history);
  }

  draw(history) {
    this.history = history;
    const height = 120;
    const [pen, width] = prepare(this.canvas, height);
    const [left, right, top, bottom] = [46, 4, 6, 18];
    const points = history.points;
    const values = points.flatMap((it) => this.lines.map((line) => line.of(it)));
    const most = Math.max(0, ...values.filter((it) => it !== null));
    const [low, high] = this.isLog ? this.decades(values, most) : [0, roundUp(most || 1)];
    const now = history.newest ? history.now() : 0;
    const span = spanOf(history);
    const atX = (at) => width - right - ((now - at) / span) * (width - left - right);
    const part = (value) => this.isLog
      ? Math.log(Math.max(value, low) / low) / Math.log(high / low)
      : value / high;
    const atY = (value) => height - bottom - part(value) * (height - top - bottom);
    this.axes(pen, { width, height, left, right, bottom, low, high, atX, atY, now, span });
    this.lines.forEach((line) => this.line(pen, points, line, atX, atY));
    this.tell(pen, points, atX, height - bottom, top);
  }

  decades(values, most) {
    const least = Math.min(...values.filter((it) => it), most || 1e3);
    const low = 10 ** Math.floor(Math.log10(least || 1));
    return [low, Math.max(low * 10, 10 ** Math.ceil(Math.log10(most || 10)))];
  }

  axes(pen, { width, height, left, right, bottom, low, high, atX, atY, now, span }) {
    pen.strokeStyle = colours.line;
    pen.fillStyle = colours.dim;
    pen.lineWidth = 1;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    const marks = this.isLog ? [low, Math.sqrt(low * high), high] : [0, high / 2, high];
    for (const mark of marks) {
      const y = Math.round(atY(mark)) + 0.5;
      pen.beginPath();
      pen.moveTo(left, y);
      pen.lineTo(width - right, y);
      pen.stroke();
      pen.fillText(this.format(mark), left - 5, y);
    }
    pen.textBaseline = "alphabetic";
    for (const [ago, align] of [[span, "left"], [span / 2, "center"], [0, "right"]]) {
      pen.textAlign = align;
      pen.fillText(agoText(ago), atX(now - ago), height - 4);
    }
  }

  line(pen, points, line, atX, atY) {
    pen.strokeStyle = colours[line.colour];
    pen.lineWidth = 1.5;
    pen.lineJoin = "round";
    pen.beginPath();
    let before = null;
    for (const point of points) {
      const value = line.of(point);
      if (value === null) {
        before = null;
        continue;
      }
      const [x, y] = [atX(point.at), atY(value)];
      // After a pause of the page there is a gap.
      if (before !== null && point.at - before < 15) pen.lineTo(x, y);
      else pen.moveTo(x, y);
      before = point.at;
    }
    pen.stroke();
  }

  /** The values of the last moment, or of the moment under the pointer. */
  tell(pen, points, atX, bottom, top) {
    let shown = points[points.length - 1];
    if (this.hover !== null && shown) {
      const far = (it) => Math.abs(atX(it.at) - this.hover);
      shown = points.reduce((best, it) => (far(it) < far(best) ? it : best), shown);
      pen.strokeStyle = colours.dim;
      pen.beginPath();
      pen.moveTo(atX(shown.at), top);
      pen.lineTo(atX(shown.at), bottom);
      pen.stroke();
    }
    const texts = this.lines.map((line) => {
      const value = shown ? line.of(shown) : null;
      return value === null ? "–" : this.format(value);
    });
    this.texts.forEach(({ swatch, text }, index) => {
      swatch.style.background = colours[this.lines[index].colour];
      put(text, texts[index]);
    });
    const ago = shown && this.history.newest ? this.history.now() - shown.at : 0;
    put(this.when, this.hover !== null && shown ? `${Math.round(ago)} s ago` : "");
    const named = this.lines.map((line, index) => `${line.name} ${texts[index]}`);
    this.canvas.setAttribute("aria-label", `${this.title}: ${named.join(", ")}`);
  }
}

/** A histogram of durations, in powers of two. */
class Histogram {
  constructor(title) {
    this.title = title;
    this.canvas = make("canvas", { role: "img" });
    this.legend = make("div", { class: "legend" });
    this.element = make("div", { class: "card" }, make("h3", {}, title), this.canvas, this.legend);
  }

  draw(buckets) {
    const height = 110;
    const [pen, width] = prepare(this.canvas, height);
    const bars = new Map();
    for (const [bound, number] of buckets ?? []) {
      const place = Math.ceil(Math.log2(Math.max(1, bound)));
      bars.set(place, (bars.get(place) ?? 0) + number);
    }
    const places = [...bars.keys()];
    const total = [...bars.values()].reduce((sum, it) => sum + it, 0);
    const parts = [["p50", 0.5], ["p90", 0.9], ["p99", 0.99], ["most", 1]];
    const text = total
      ? parts.map(([name, share]) => `${name} ${duration(quantile(buckets, share))}`).join(" · ")
      : buckets ? "nothing was measured in this time" : "not measured: see Builder::observe";
    put(this.legend, text);
    this.canvas.setAttribute("aria-label", `${this.title}: ${text}`);
    if (!total) return;
    const [first, last] = [Math.min(...places) - 1, Math.max(...places, Math.min(...places) + 7)];
    const most = Math.max(...bars.values());
    const wide = width / (last - first);
    pen.fillStyle = colours.first;
    for (const [place, number] of bars) {
      const high = Math.max(1.5, (number / most) * (height - 24));
      pen.fillRect((place - first - 1) * wide + 1, height - 18 - high, wide - 2, high);
    }
    pen.fillStyle = colours.dim;
    pen.textAlign = "center";
    const each = Math.ceil(52 / wide);
    for (let place = first + 1; place < last; place += each) {
      const x = Math.min(width - 22, Math.max(22, (place - first) * wide));
      pen.fillText(duration(2 ** place), x, height - 4);
    }
  }
}

/** A lane for each worker: how busy it was over the last ten minutes. */
class Lanes {
  constructor() {
    this.canvas = make("canvas", { role: "img" });
    this.element = make("div", { class: "card" }, make("h3", {}, "Busy: the darker, the more of the time"), this.canvas);
  }

  draw(history) {
    const number = history.newest.worker_times.length;
    const [high, left] = [18, 34];
    const [pen, width] = prepare(this.canvas, number * (high + 3) + 16);
    const now = history.now();
    const span = spanOf(history);
    const second = (width - left) / span;
    const texts = [];
    for (let worker = 0; worker < number; worker += 1) {
      const y = worker * (high + 3);
      pen.globalAlpha = 1;
      pen.fillStyle = colours.dim;
      pen.textAlign = "right";
      pen.fillText(String(worker), left - 6, y + 13);
      pen.fillStyle = colours.idle;
      pen.fillRect(left, y, width - left, high);
      pen.fillStyle = colours.first;
      let before = null;
      for (const point of history.points) {
        const share = point.workers[worker] ?? 0;
        const length = before === null ? 1 : Math.min(point.at - before, 10);
        before = point.at;
        pen.globalAlpha = share > 0 ? 0.12 + 0.88 * share : 0;
        const from = Math.round(width - (now - point.at + length) * second);
        pen.fillRect(from, y, Math.round(width - (now - point.at) * second) - from, high);
      }
      const last = history.points[history.points.length - 1];
      texts.push(`worker ${worker} ${percent(last?.workers[worker])}`);
    }
    pen.globalAlpha = 1;
    pen.fillStyle = colours.dim;
    pen.textAlign = "left";
    pen.fillText(agoText(span), left, number * (high + 3) + 12);
    pen.textAlign = "right";
    pen.fillText("now", width, number * (high + 3) + 12);
    this.canvas.setAttribute("aria-label", `Busy: ${texts.join(", ")}`);
  }
}

/** A small line of a row, of the last values. */
function spark(element, values) {
  const most = Math.max(1, ...values);
  const line = element.firstChild ?? element.appendChild(makeSvg("polyline"));
  const step = 72 / Math.max(1, values.length - 1);
  const points = values.map((it, at) => `${(at * step).toFixed(1)},${(17 - (it / most) * 15).toFixed(1)}`);
  line.setAttribute("points", points.join(" "));
}
