// A table that keeps its rows: a redraw changes the cells that differ, so that focus, selection and
// place stay.

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
    const seen = new Set();
    let next = this.body.firstChild;
    for (const value of values) {
      const key = this.key(value);
      if (seen.has(key)) continue;
      seen.add(key);
      const row = this.rows.get(key) ?? this.add(key);
      row.value = value;
      row.element.className = value.className ?? "";
      this.columns.forEach((column, at) => {
        const cell = row.element.children[at];
        const text = column.cell(value, cell);
        if (typeof text === "string") put(cell, text);
      });
      if (row.element === next) next = next.nextSibling;
      else this.body.insertBefore(row.element, next);
    }
    for (const [key, row] of this.rows) {
      if (!seen.has(key)) {
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

  add(key) {
    const row = { element: make("tr", { tabindex: this.open ? "0" : null }), value: null };
    for (const column of this.columns) row.element.append(make("td", { class: column.class }));
    if (this.open) {
      row.element.addEventListener("click", (event) => {
        if (!event.target.closest("a, button") && !String(getSelection())) this.open(row.value);
      });
    }
    row.element.dataset.key = key;
    this.rows.set(key, row);
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
