// A table that keeps its rows: a redraw changes the cells that differ, so that focus, selection and
// place stay.
//
// 1. A row of a value that has gone becomes the row of a new one, unless it has the focus: where all
//    values of a list change, no element is made.
// 2. A row far from the screen keeps its value, and is drawn when it comes near. The first draw of a
//    row is of all its cells, so that its height is right.

/**
 * A column has a title, a class, whether it sorts (`by`), and `cell(value, cell)`, which returns a
 * text or changes the cell itself.
 */
class Table {
  constructor(columns, { key, open = null, sort = null, empty = "Nothing is here." }) {
    Object.assign(this, { columns, key, open, sort, rows: new Map() });
    this.head = make("tr");
    for (const column of columns) {
      const cell = make("th", { class: column.class, scope: "col" });
      if (column.by) cell.append(make("button", { onclick: () => sort(column.by) }, column.title));
      else put(cell, column.title);
      this.head.append(cell);
    }
    this.body = make("tbody", { onkeydown: (event) => this.move(event) });
    this.nothing = make("p", { class: "note" }, empty);
    const table = make("table", {}, make("thead", {}, this.head), this.body);
    this.frame = make("div", { class: "scroll" }, table);
    this.element = make("div", {}, this.frame, this.nothing);
    const near = (changes) => changes.forEach((it) => this.near(it.target, it.isIntersecting));
    this.watch = new IntersectionObserver(near, { rootMargin: "50%" });
  }

  /** A row comes near the screen, or leaves it. */
  near(element, isNear) {
    const row = this.rows.get(element.dataset.key);
    if (!row) return;
    row.isNear = isNear;
    if (isNear && row.isStale) this.fill(row);
  }

  /** Draws the value of a row. */
  fill(row) {
    row.isStale = false;
    const { element, value } = row;
    const shown = value.className ?? "";
    if (element.className !== shown) element.className = shown;
    this.columns.forEach((column, at) => {
      const cell = row.cells[at];
      const text = column.cell(value, cell);
      if (typeof text === "string") put(cell, text);
    });
  }

  /** Shows by which column the values are sorted, and how. */
  sortedBy(by, order = "descending") {
    this.columns.forEach((column, at) => {
      const cell = this.head.children[at];
      if (column.by === by) cell.setAttribute("aria-sort", order);
      else cell.removeAttribute("aria-sort");
    });
  }

  draw(values) {
    const focused = this.body.contains(document.activeElement) ? document.activeElement : null;
    const seen = new Map(values.map((it) => [this.key(it), it]));
    const free = [...this.rows.values()].filter((row) => !seen.has(row.element.dataset.key)
      && !row.element.contains(focused)).reverse();
    let next = this.body.firstChild;
    for (const [key, value] of seen) {
      const row = this.rows.get(key) ?? this.add(key, free.pop());
      row.value = value;
      if (row.isNear) this.fill(row);
      else row.isStale = true;
      if (row.element === next) next = next.nextSibling;
      else this.body.insertBefore(row.element, next);
    }
    for (const [key, row] of this.rows) {
      if (!seen.has(key)) {
        this.watch.unobserve(row.element);
        row.element.remove();
        this.rows.delete(key);
      }
    }
    this.frame.hidden = seen.size === 0;
    this.nothing.hidden = seen.size > 0;
    // A row that has moved has lost the focus.
    if (focused && focused !== document.activeElement && this.body.contains(focused)) {
      focused.focus({ preventScroll: true });
    }
  }

  /** The row of a new value: another's that has gone, or a new one. */
  add(key, free) {
    const row = free ?? this.make();
    this.rows.delete(row.element.dataset.key);
    row.element.dataset.key = key;
    this.rows.set(key, row);
    return row;
  }

  make() {
    const element = make("tr", { tabindex: this.open ? "0" : null });
    const cells = this.columns.map((column) => make("td", { class: column.class }));
    element.append(...cells);
    const row = { element, cells, value: null, isNear: true, isStale: false };
    if (this.open) {
      element.addEventListener("click", (event) => {
        if (!event.target.closest("a, button") && !String(getSelection())) this.open(row.value);
      });
    }
    this.watch.observe(element);
    return row;
  }

  /** Arrows go from row to row, and the enter key opens one. */
  move(event) {
    const row = event.target.closest("tr");
    if (!row || !this.open) return;
    const to = { ArrowDown: row.nextElementSibling, ArrowUp: row.previousElementSibling }[event.key];
    if (to) to.focus();
    else if (event.key === "Enter" && event.target === row) this.open(this.rows.get(row.dataset.key).value);
    else return;
    event.preventDefault();
  }
}
