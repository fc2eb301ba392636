// The snapshots, as the program makes them: by server-sent events, or by questions where there is
// no stream.
//
// 1. An open tab has one stream, and each event is a snapshot. A hidden tab has none: a browser has
//    few connections for all tabs of a program.
// 2. A stream that ends or is silent says no reason. So the page closes it and asks for a snapshot:
//    the answer or the refusal has the reason.
// 3. After an answer the page tries a stream again, and asks meanwhile. Each stream in a row that
//    brings no event doubles the time to the next.
// 4. After a refusal the page asks again, and each refusal in a row doubles the pause.

const PERIOD_MS = 1_000;
const SILENCE_MS = 5_000;
const LONGEST_PAUSE_MS = 5_000;
const LONGEST_WITHOUT_STREAM_MS = 60_000;

class Live {
  /** `take` gets each snapshot, and `lose` the error while the program does not answer. */
  constructor(take, lose) {
    Object.assign(this, { take, lose, stream: null, timer: null, failures: 0, silences: 0, streamAt: 0, run: 0 });
  }

  get isHere() {
    return this.failures === 0;
  }

  start() {
    this.stop();
    if (window.EventSource && this.isHere && performance.now() >= this.streamAt) this.listen();
    else this.question();
  }

  stop() {
    this.run += 1;
    clearTimeout(this.timer);
    this.stream?.close();
    this.stream = null;
  }

  /** Begins again after a time. */
  later(time) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.start(), time);
  }

  listen() {
    const leave = () => {
      this.silences += 1;
      const wait = PERIOD_MS * 2 ** Math.min(this.silences - 1, 6);
      this.streamAt = performance.now() + Math.min(LONGEST_WITHOUT_STREAM_MS, wait);
      this.start();
    };
    this.stream = new EventSource("/api/v1/events");
    this.stream.addEventListener("error", leave);
    this.stream.addEventListener("snapshot", (event) => {
      this.silences = 0;
      clearTimeout(this.timer);
      this.timer = setTimeout(leave, SILENCE_MS);
      this.see(() => checked(JSON.parse(event.data)));
    });
    this.timer = setTimeout(leave, SILENCE_MS);
  }

  async question() {
    const { run } = this;
    let [answer, error] = [null, null];
    try {
      answer = await ask("/api/v1/snapshot", SILENCE_MS);
    } catch (refused) {
      error = refused;
    }
    // The tab is hidden now, or has begun again.
    if (run !== this.run) return;
    this.see(() => {
      if (error) throw error;
      return answer;
    });
    this.later(Math.min(LONGEST_PAUSE_MS, PERIOD_MS * 2 ** Math.max(0, this.failures - 1)));
  }

  /** Takes the snapshot that `read` returns, or the error that it throws. */
  see(read) {
    let snapshot;
    try {
      snapshot = read();
      this.failures = 0;
    } catch (error) {
      this.failures += 1;
      this.lose(error);
      return;
    }
    this.take(snapshot);
  }
}
