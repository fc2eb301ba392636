// The answers of the program, and what is made of them: rates, quantiles, the last ten minutes.

const VERSION = 1;
const KEPT_SECONDS = 600;

/** An answer that is none: a status with a sentence, or no answer at all. */
class Refused extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

/** Asks for JSON. An answer is given up after some time, or by the signal. */
async function ask(path, patience = 10_000, signal = null, method = "GET") {
  const limits = [AbortSignal.timeout(patience)];
  if (signal) limits.push(signal);
  const answer = await fetch(path, { method, cache: "no-store", signal: AbortSignal.any(limits) });
  if (answer.status === 401) throw new Refused(401, "The login is over: open /login.");
  if (!answer.ok) throw new Refused(answer.status, (await answer.text()).trim());
  return checked(await answer.json());
}

/** An answer of this version of the API. */
function checked(value) {
  if (value.version !== VERSION) {
    throw new Refused(0, `The program speaks version ${value.version} of the API: load this page anew.`);
  }
  return value;
}

/** The durations of a distribution since an earlier one. */
function bucketsSince(later, earlier) {
  const before = new Map(earlier ? earlier.buckets : []);
  const fresh = later.buckets.map(([bound, number]) => [bound, number - (before.get(bound) ?? 0)]);
  return fresh.filter(([, number]) => number > 0);
}

/** The bound of the bucket below which that share of the durations is; null without durations. */
function quantile(buckets, share) {
  const total = buckets.reduce((sum, [, number]) => sum + number, 0);
  let left = Math.max(1, Math.ceil(total * share));
  for (const [bound, number] of buckets) {
    left -= number;
    if (left <= 0) return bound;
  }
  return null;
}

/** The last ten minutes of a scheduler. */
class History {
  constructor() {
    this.points = [];
    this.kept = [];
    this.newest = null;
    this.previous = null;
  }

  /** Takes a snapshot of the scheduler. A scheduler that is younger than before is another one. */
  take(scheduler) {
    if (this.newest && scheduler.uptime_ns < this.newest.uptime_ns) {
      this.points = [];
      this.kept = [];
      this.newest = null;
    }
    if (this.newest && scheduler.uptime_ns === this.newest.uptime_ns) return;
    this.previous = this.newest;
    this.newest = scheduler;
    this.keep(scheduler);
    if (!this.previous) return;
    this.points.push(this.point());
    const oldest = this.now() - KEPT_SECONDS;
    while (this.points[0].at < oldest) this.points.shift();
  }

  now() {
    return this.newest.uptime_ns / 1e9;
  }

  /** How fast a count has grown between the last two snapshots, a second. */
  rate(read) {
    if (!this.previous) return null;
    const seconds = (this.newest.uptime_ns - this.previous.uptime_ns) / 1e9;
    const [to, from] = [read(this.newest), read(this.previous)];
    if (to === undefined || from === undefined) return null;
    return Math.max(0, to - from) / seconds;
  }

  /** The shares of a worker's time between the last two snapshots: busy, searching, asleep. */
  shares(worker) {
    const [to, from] = [this.newest.worker_times[worker], this.previous?.worker_times[worker]];
    if (!to || !from) return null;
    const parts = [
      to.busy_ns - from.busy_ns,
      to.searching_ns - from.searching_ns,
      to.asleep_ns - from.asleep_ns,
    ].map((it) => Math.max(0, it));
    const whole = parts.reduce((sum, it) => sum + it, 0);
    return whole > 0 ? parts.map((it) => it / whole) : null;
  }

  point() {
    const workers = this.newest.worker_times.map((_, worker) => this.shares(worker));
    const busy = workers.filter((it) => it).map((it) => it[0]);
    const of = (name) => this.since(name, 5);
    const [ready, step] = [of("ready"), of("step")];
    return {
      at: this.now(),
      workers: workers.map((it) => (it ? it[0] : null)),
      busyShare: busy.length ? busy.reduce((sum, it) => sum + it, 0) / busy.length : null,
      stepRate: this.rate((it) => it.total.steps),
      messageRate: this.rate((it) => it.events ?? undefined),
      commandRate: this.rate((it) => it.total.yields),
      timerRate: this.rate((it) => it.timers.fired),
      live: this.newest.live,
      queue: this.newest.ready,
      ready50: ready && quantile(ready, 0.5),
      ready99: ready && quantile(ready, 0.99),
      step50: step && quantile(step, 0.5),
      step99: step && quantile(step, 0.99),
    };
  }

  /** Keeps the distributions of each second for a while, and of each ten seconds for longer. */
  keep(scheduler) {
    const all = scheduler.distributions;
    if (!all) return;
    const now = this.now();
    const { ready, step, mail, timer } = all;
    this.kept.push({ at: now, ready, step, mail, timer });
    let last = -Infinity;
    this.kept = this.kept.filter((it) => {
      const isWanted = now - it.at < 12 || (it.at - last >= 10 && now - it.at <= KEPT_SECONDS);
      if (isWanted) last = it.at;
      return isWanted;
    });
  }

  /** What was measured in the last seconds; null where nothing is measured. */
  since(name, seconds) {
    const later = this.newest.distributions?.[name];
    if (!later) return null;
    if (seconds === Infinity) return bucketsSince(later, null);
    const old = this.kept.filter((it) => this.now() - it.at >= seconds);
    const from = old.length ? old[old.length - 1] : this.kept[0];
    return bucketsSince(later, from && from.at < this.now() ? from[name] : null);
  }
}
