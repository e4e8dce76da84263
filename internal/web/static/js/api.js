// @ts-check
// Everything the dashboard asks of its server.

/** An answer that is no success. */
export class Refusal extends Error {
  /** @param {number} status @param {string} text @param {any} body */
  constructor(status, text, body) {
    super(text);
    this.status = status;
    this.body = body;
  }
}

/** How long an answer may take, in ms. */
const PATIENCE = 15000;

/**
 * @param {string} path
 * @param {RequestInit} [init]
 * @returns {Promise<any>} the answer's JSON
 * @throws {Refusal | TypeError | DOMException}
 */
async function ask(path, init = {}) {
  const answer = await fetch(path, { cache: "no-store", redirect: "error", signal: AbortSignal.timeout(PATIENCE), ...init });
  if (answer.status === 401) {
    location.assign("/login");
    return new Promise(() => {}); // the page is about to go
  }
  const body = await answer.json().catch(() => null);
  if (body && answer.headers.get("X-Understudy-Login")) body.login = true;
  if (!answer.ok) throw new Refusal(answer.status, body?.error ?? `The server answered ${answer.status}.`, body);
  return body;
}

/** @param {string} method @param {any} body @param {Record<string, string>} [headers] @returns {RequestInit} */
const json = (method, body, headers = {}) => ({ method, headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(body) });

export const api = {
  state: () => ask("/api/state"),
  /** @param {{limit?: number, model?: string, failed?: boolean | null, after?: number}} q */
  requests(q) {
    const form = new URLSearchParams();
    if (q.limit) form.set("limit", String(q.limit));
    if (q.model) form.set("model", q.model);
    if (q.failed !== null && q.failed !== undefined) form.set("failed", String(q.failed));
    if (q.after) form.set("after", String(q.after));
    return ask("/api/requests?" + form);
  },
  /** @param {string} id */
  request: (id) => ask("/api/requests/" + encodeURIComponent(id)),
  /** @param {string} id */
  bodies: (id) => ask(`/api/requests/${encodeURIComponent(id)}/bodies`),
  /** @param {string} model @param {string} span */
  curves: (model, span) => ask("/api/curves?" + new URLSearchParams({ model, span })),
  /** Runs a command of the console. @param {...string} words */
  command: (...words) => ask("/api/command", json("POST", { line: words.map(quote).join(" ") })),
  config: () => ask("/api/config"),
  /** @param {string} hash @param {string} text */
  check: (hash, text) => ask("/api/config/check", json("POST", { text }, { "If-Match": `"${hash}"` })),
  /** @param {string} hash @param {string} text */
  write: (hash, text) => ask("/api/config", json("PUT", { text }, { "If-Match": `"${hash}"` })),
  logout: () => fetch("/logout", { method: "POST" }).then(() => location.assign("/login")),
};

/** A word of a command, in quotes where it must be.
 * @param {string} word */
export function quote(word) {
  return /^[A-Za-z0-9_.:/*-]+$/.test(word) ? word : `"${word.replace(/["\\]/g, "\\$&")}"`;
}
