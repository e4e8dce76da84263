// @ts-check
// The View, kept fresh: the server says that something has changed, and the page
// fetches the newest when it has time, at most once a second. While nobody looks at
// the tab nothing is asked and no stream is open.

import { api } from "./api.js";

const PACE = 1000; // ms between two fetches, at least
const STALE = 10000; // ms after which ages and windows are fetched anew
const PATIENCE = 8; // at most so many times PACE between two tries while it is lost

/** @typedef {"loading" | "live" | "lost"} Connection */

class Live {
  constructor() {
    /** @type {any} */
    this.view = null;
    /** @type {Connection} */
    this.connection = "loading";
    /** When the last View came, by performance.now(). */
    this.received = 0;
    /** @type {Set<(live: Live) => void>} */
    this.readers = new Set();
    /** @type {Set<(live: Live) => void>} */
    this.tickers = new Set();
    /** @type {EventSource | null} */
    this.events = null;
    this.began = -PACE;
    this.failures = 0;
    this.fetching = false;
    this.again = false;
    /** @type {number | undefined} */
    this.timer = undefined;
    /** @type {number | undefined} */
    this.ticking = undefined;
    this.round = 0;
  }

  /** The server's time now, in ms since 1970. */
  now() {
    return this.view ? Date.parse(this.view.time) + performance.now() - this.received : Date.now();
  }

  /** Calls f with every View, and now where there is one. @param {(live: Live) => void} f */
  read(f) {
    this.readers.add(f);
    if (this.view) f(this);
  }

  /** Calls f every second, for what counts down. @param {(live: Live) => void} f */
  tick(f) {
    this.tickers.add(f);
  }

  start() {
    document.addEventListener("visibilitychange", () => this.wakeOrSleep());
    this.wakeOrSleep();
  }

  wakeOrSleep() {
    if (document.visibilityState === "hidden") this.sleep();
    else this.wake();
  }

  sleep() {
    this.round++; // what is under way is nobody's any more
    this.events?.close();
    this.events = null;
    clearTimeout(this.timer);
    clearInterval(this.ticking);
    this.ticking = undefined;
    this.fetching = false;
  }

  wake() {
    if (this.ticking !== undefined) return;
    this.ticking = setInterval(() => this.eachSecond(), 1000);
    this.listen();
    this.fetch();
  }

  listen() {
    const events = new EventSource("/api/events");
    events.addEventListener("change", () => this.soon());
    // The browser tries again by itself after a broken stream, not after a refusal.
    events.addEventListener("error", () => {
      this.soon();
      if (events.readyState === EventSource.CLOSED) this.events = null;
    });
    this.events = events;
  }

  eachSecond() {
    if (!this.events) this.listen();
    if (performance.now() - this.began > STALE) this.soon();
    for (const f of this.tickers) f(this);
  }

  /** Fetches as soon as the pace allows. */
  soon() {
    if (document.visibilityState === "hidden") return;
    if (this.fetching) {
      this.again = true;
      return;
    }
    clearTimeout(this.timer);
    const pace = PACE * Math.min(2 ** this.failures, PATIENCE);
    this.timer = setTimeout(() => this.fetch(), Math.max(0, this.began + pace - performance.now()));
  }

  async fetch() {
    if (this.fetching) return;
    const round = this.round;
    this.fetching = true;
    this.again = false;
    this.began = performance.now();
    try {
      const view = await api.state();
      if (round !== this.round) return;
      this.view = view;
      this.received = performance.now();
      this.connection = "live";
      this.failures = 0;
    } catch {
      if (round !== this.round) return;
      this.connection = "lost";
      this.failures++;
    }
    this.fetching = false;
    for (const f of this.readers) f(this);
    if (this.again || this.connection === "lost") this.soon();
  }

  /** Fetches now and waits for it: after a change of one's own. */
  async refresh() {
    if (this.fetching) {
      this.again = true;
      return;
    }
    clearTimeout(this.timer);
    await this.fetch();
  }
}

export const live = new Live();
