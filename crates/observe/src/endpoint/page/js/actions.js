// What a viewer may do to a process, where the program allows it: the snapshots name the actions.
// The program takes an action and does it later, so the page says what was asked for, and the next
// look at the process shows the rest. An action that ends the process is asked about first.

const ACTIONS = [
  ["suspend", "Suspend", null],
  ["resume", "Resume", null],
  ["restart", "Restart", "Its supervisor stops it, and starts another one in its place."],
  ["cancel", "Cancel", "The process is asked to finish, and chooses how. If it ends as cancelled, its supervisor "
    + "does not start it again; after another end, such as a failure, its supervisor does as always."],
  ["terminate", "Terminate", "The process takes no further step, and the messages in its mailbox are lost. "
    + "A supervisor starts it again, unless it is a temporary child."],
];

/** The names of the actions that the program allows. */
let allowed = [];

class Actions {
  /** `done` is called behind each action. */
  constructor(done) {
    Object.assign(this, { done, process: null, isBusy: false });
    this.buttons = new Map(ACTIONS.map(([name, title, question]) => [name, make("button", {
      onclick: () => (question ? this.confirm(name, title, question) : this.act(name, title)),
    }, question ? `${title} …` : title)]));
    this.row = make("div", { class: "actions", role: "group", "aria-label": "Actions" }, ...this.buttons.values());
    this.said = make("p", { class: "note", role: "status" });
    this.question = make("dialog", { "aria-labelledby": "question" });
    this.element = make("div", {}, this.row, this.said, this.question);
  }

  /** Another process is to come. */
  clear() {
    this.process = null;
    this.end();
    put(this.said, "");
  }

  /** The process has ended. What was asked of it may have been that. */
  end() {
    this.row.hidden = true;
    this.question.close();
  }

  draw(process) {
    if (!this.process) put(this.said, allowed.length ? "" : "This endpoint only reads: the program allows actions by Serve::allow_actions.");
    this.process = process;
    this.row.hidden = allowed.length === 0;
    const isSuspended = process.state === "suspended";
    for (const [name, button] of this.buttons) {
      const isOut = (name === "suspend" && isSuspended) || (name === "resume" && !isSuspended);
      button.hidden = isOut || !allowed.includes(name);
      button.disabled = this.isBusy || process.is_terminating;
    }
  }

  confirm(name, title, about) {
    const process = this.process;
    const names = process.names.length ? `${process.names.join(", ")} ` : "";
    const yes = make("button", { class: "danger", onclick: () => {
      this.question.close();
      this.act(name, title, process);
    } }, title);
    const no = make("button", { onclick: () => this.question.close() }, "Leave it");
    putChildren(this.question, make("h3", { id: "question" }, `${title} ${names}${process.pid}?`),
      make("p", {}, about), make("div", { class: "actions" }, no, yes));
    this.question.showModal();
  }

  async act(name, title, process = this.process) {
    this.isBusy = true;
    this.draw(process);
    put(this.said, `${title}: asks …`);
    try {
      const acted = await ask(processPath(process.pid, process.scheduler, name), 10_000, null, "POST");
      this.tell(title, acted);
    } catch (error) {
      put(this.said, `${title}: ${error.message}`);
    }
    this.isBusy = false;
    this.done();
  }

  tell(title, acted) {
    if (acted.successor) {
      putChildren(this.said, `${title}: `, pidLink(acted.successor, acted.scheduler), " is in its place.");
      return;
    }
    put(this.said, acted.stands === false
      ? `${title}: the process stands still when its turn is over.` : `${title}: asked of ${acted.pid}.`);
  }
}

/** The path of a process, or of an action on it. */
function processPath(pid, of, action = null) {
  const path = `/api/v1/process/${encodeURIComponent(pid.replace(/^\{|\}$/g, ""))}`;
  const query = of ? `?${new URLSearchParams({ scheduler: of })}` : "";
  return `${path}${action ? `/${action}` : ""}${query}`;
}
