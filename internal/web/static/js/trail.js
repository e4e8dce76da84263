// @ts-check
// One request: what happened to it, attempt beside attempt on one axis of time.

import { api } from "./api.js";
import { h, icon } from "./dom.js";
import { latency, short, size, time, visible, words } from "./format.js";
import { ENDINGS, stoodIn } from "./requests.js";
import { live } from "./live.js";
import { ruleLine } from "./people.js";
import { sheet } from "./sheet.js";

/** @typedef {{from: number, until: number, kind: string, says: string}} Piece */
/** @typedef {{attempt: any, start: number, end: number, pieces: Piece[], wait: Piece | null}} Lane */

/** The phases of an attempt, each up to the moment of its name. @type {[string, string, string][]} */
const PHASES = [
  ["connected_ms", "connect", "connecting"],
  ["header_ms", "header", "waiting for the answer's head"],
  ["first_content_ms", "content", "waiting for the first content"],
  ["released_ms", "hold", "held back until it is surely good"],
];

/** A time in ms with what Date leaves out: an attempt may be over within one.
 * @param {string} iso */
function moment(iso) {
  const part = /\.(\d+)Z$/.exec(iso);
  return Math.floor(Date.parse(iso) / 1000) * 1000 + (part ? Number("0." + part[1]) * 1000 : 0);
}

/**
 * Lays attempts out on one axis: ms since the request began.
 * @param {any} r a request with its attempts
 * @returns {{lanes: Lane[], length: number, released: number | null}}
 */
export function lay(r) {
  const began = moment(r.start);
  let length = Math.max(r.duration_ms, 1);
  const lanes = r.attempts.map((/** @type {any} */ a) => {
    const start = Math.max(0, moment(a.start) - began);
    const end = start + a.duration_ms;
    /** @type {Piece[]} */
    const pieces = [];
    let at = 0;
    for (const [field, kind, says] of PHASES) {
      const until = a[field];
      if (until === null || until <= at) continue;
      // Without a first content of its own the answer is read whole.
      const whole = kind === "hold" && a.first_content_ms === null;
      pieces.push({ from: start + at, until: start + until, kind: whole ? "content" : kind, says: whole ? "reading the answer whole" : says });
      at = until;
    }
    if (a.duration_ms > at) {
      // What came after the last moment is the answer itself, or a wait in vain.
      const next = a.released_ms !== null ? ["body", "passing it on"] : PHASES.find(([f]) => a[f] === null)?.slice(1) ?? ["body", "reading it"];
      pieces.push({ from: start + at, until: end, kind: next[0], says: next[1] });
    }
    // What an attempt was at when it failed.
    if (a.verdict === "failed" && pieces.length) pieces[pieces.length - 1].kind += " tl-vain";
    const wait = a.wait_seconds > 0 ? { from: end, until: end + a.wait_seconds * 1000, kind: "wait", says: "waiting before the next attempt" } : null;
    length = Math.max(length, end);
    return { attempt: a, start, end, pieces, wait };
  });
  for (const l of lanes) if (l.wait) l.wait.until = Math.min(l.wait.until, length);
  return { lanes, length, released: r.released_ms };
}

/** Round numbers for an axis, at most so many. @param {number} length @param {number} most */
export function ticks(length, most = 5) {
  const rough = length / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => length / s <= most) ?? power * 10;
  const out = [];
  for (let t = 0; t <= length; t += step) out.push(t);
  return out;
}

/** @param {string} id @param {() => void} closed */
export async function trail(id, closed) {
  const body = h("div", {}, h("p.quiet", {}, "Looking…"));
  const title = h("h2", {}, "Request");
  const sub = h("p.sheet-sub.mono", {}, id);
  sheet({ label: "Request " + id, head: [title, sub], body, closed });
  try {
    const r = await api.request(id);
    r.attempts ??= []; // what is empty may be left out
    r.skips ??= [];
    title.textContent = headline(r);
    sub.textContent = `${r.method} ${r.path}`;
    body.replaceChildren(...page(r));
  } catch (err) {
    body.replaceChildren(h("div.empty", {}, h("h3.empty-title", {}, "It cannot be shown"), h("p", {}, /** @type {Error} */ (err).message)));
  }
}

/** @param {any} r */
function headline(r) {
  const failed = r.attempts.filter((/** @type {any} */ a) => a.verdict === "failed").length;
  switch (r.ending) {
    case "success":
      if (!stoodIn(r)) return `${r.candidate} answered.`;
      return failed ? `${r.candidate} answered, after ${failed === 1 ? "one failure" : `${failed} failures`}.` : `${r.candidate} stood in and answered.`;
    case "passed_through": return "The upstream's error was passed on.";
    case "empty": return "An empty answer was passed on.";
    case "exhausted": return "Nobody was left to answer.";
    case "broken": return "The answer broke off after its release.";
    case "cancelled": return "The client left.";
  }
  return "It was refused.";
}

/** @param {any} r */
function page(r) {
  const [pic, tone, says] = ENDINGS[r.ending] ?? ENDINGS.refused;
  const out = [
    h("div.trail-facts", {},
      h("span", { class: `chip tone-${tone}` }, icon(pic), says), fact("Status", r.status || "nothing sent"), fact("Took", latency(r.duration_ms)),
      fact("Released", latency(r.released_ms)), fact("First content", latency(r.first_content_ms)),
      fact("Tokens", r.tokens.input_tokens === null && r.tokens.output_tokens === null ? "not reported" : `${short(r.tokens.input_tokens)} in, ${short(r.tokens.output_tokens)} out${r.tokens.cached_tokens ? `, ${short(r.tokens.cached_tokens)} cached` : ""}`),
      fact("Sent", size(r.bytes))),
  ];
  if (r.plan?.length > 1) out.push(h("h3", {}, "Plan"), plan(r));
  if (r.skips.length) {
    out.push(h("h3", {}, "Passed over"), h("ul.skips", {}, r.skips.map((/** @type {any} */ s) => h("li", {}, icon("ice", "icon ink-ice"), h("strong", {}, s.candidate), h("span.quiet", {}, s.reason)))));
  }
  if (r.attempts.length) out.push(h("h3", {}, "Attempts"), timeline(r), h("ol.attempts", {}, r.attempts.map((/** @type {any} */ a, /** @type {number} */ i) => card(a, i, r))));
  if (r.omitted_attempts) out.push(h("p.quiet", {}, `${r.omitted_attempts} attempts in the middle are not kept.`));
  out.push(h("h3", {}, "Request"), h("dl.facts", {}, [["Id", h("code", {}, r.id)], ["Began", new Date(r.start).toLocaleString("en-GB")], ["Virtual model", r.virtual_model === "*" ? "the pool" : r.virtual_model || "none"], ["Dialect", r.dialect], ["Asked for a stream", r.stream ? "yes" : "no"], ["Client", r.client || "no key"], ["Counted", r.ignored ? "no: an ignored endpoint" : "yes"]].map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, v)))));
  if (live.view?.archive?.state) out.push(bodies(r.id));
  return out;
}

/** How the order of a plan came about. @type {Record<string, string>} */
const STRATEGIES = { order: "in the file's order", rendezvous: "by session", "least load": "by load", owner: "by who made what the request names" };

/** The candidates in the order of the plan, and what became of each. @param {any} r */
function plan(r) {
  const fate = (/** @type {any} */ p) => {
    const own = r.attempts.filter((/** @type {any} */ a) => a.identity === p.identity && a.candidate === p.candidate);
    if (own.some((/** @type {any} */ a) => a.verdict === "ok")) return ["ok", "ok", "answered"];
    if (own.length) return own.some((/** @type {any} */ a) => a.verdict === "failed") ? ["cross", "bad", "failed"] : ["left", "off", "abandoned"];
    if (r.skips.some((/** @type {any} */ s) => s.identity === p.identity)) return ["ice", "ice", "passed over"];
    return ["empty", "off", "not needed"];
  };
  return h("div.plan", {}, h("ol", {}, r.plan.map((/** @type {any} */ p) => {
    const [pic, tone, says] = fate(p);
    return h("li", { title: `${p.model || "the client's model"}, tier ${p.tier}: ${says}` }, h("span", { class: `chip tone-${tone}` }, icon(/** @type {any} */ (pic)), p.candidate, h("span.offscreen", {}, `, ${says}`)));
  })), h("span.quiet", {}, STRATEGIES[r.strategy] ?? r.strategy));
}

/** The bodies that the request log keeps, where it keeps any. @param {string} id */
function bodies(id) {
  const box = h("div.bodies");
  const button = h("button.button.small", { type: "button", on: { click: async () => {
    button.disabled = true;
    try {
      const kept = (await api.bodies(id)).bodies;
      box.replaceChildren(...kept.map((/** @type {any} */ b) => h("details.body", { open: kept.length === 1 }, h("summary", {}, b.attempt ? `Answer of attempt ${b.attempt}` : "The request", h("span.quiet", {}, ` ${size(b.size)}${b.cut ? ", not kept whole" : ""}`)), h("pre", {}, visible(b.text ?? b.base64 ?? "")))));
    } catch (err) {
      box.replaceChildren(h("p.quiet", {}, /** @type {any} */ (err).status === 404 ? "No bodies of it are kept: request_log.bodies says whose are." : /** @type {Error} */ (err).message));
    }
  } } }, "Look for its bodies");
  box.append(button);
  return h("div", {}, h("h3", {}, "Bodies"), box);
}

/** @param {string} name @param {any} value */
const fact = (name, value) => h("span.trail-fact", {}, h("span.quiet", {}, name), " ", h("b", {}, value));

/** @param {any} r */
function timeline(r) {
  const { lanes, length, released } = lay(r);
  const place = (/** @type {HTMLElement} */ el, /** @type {number} */ from, /** @type {number} */ until) => {
    el.style.left = `${(from / length) * 100}%`;
    el.style.width = `${Math.max(0.3, ((until - from) / length) * 100)}%`;
    return el;
  };
  const axis = h("div.tl-axis", {}, ticks(length).map((t) => {
    const el = h("span.tl-tick", {}, t === 0 ? "0" : latency(t));
    el.style.left = `${(t / length) * 100}%`;
    return el;
  }));
  const field = h("div.tl-field");
  for (const t of ticks(length)) {
    const line = h("i.tl-grid");
    line.style.left = `${(t / length) * 100}%`;
    field.append(line);
  }
  lanes.forEach(({ attempt: a, pieces, wait, start, end }) => {
    const track = h("div.tl-track", {},
      pieces.map((p) => place(h(`span.tl-piece.tl-${p.kind}`, { class: `tl-piece tl-${p.kind} is-${a.verdict}`, title: `${p.says}, ${latency(p.until - p.from)}` }), p.from, p.until)),
      wait && place(h("span.tl-piece.tl-wait", { title: `${wait.says}, ${latency(wait.until - wait.from)}` }), wait.from, wait.until));
    const end1 = h("span.tl-end", { class: `tl-end is-${a.verdict}` }, a.verdict === "ok" ? icon("ok") : a.verdict === "abandoned" ? icon("left") : icon("cross"));
    end1.style.left = `${(end / length) * 100}%`;
    track.append(end1);
    field.append(h("div.tl-lane", {}, h("div.tl-name", {}, a.candidate, h("span.quiet", {}, ` ${latency(a.duration_ms)}${start > 0 ? ` from ${latency(start)}` : ""}`)), track));
  });
  if (released !== null) {
    const mark = h("div.tl-release", {}, h("span", {}, `released ${latency(released)}`));
    mark.style.left = `${(released / length) * 100}%`;
    if (released / length > 0.7) mark.classList.add("at-right");
    field.append(mark);
  }
  const label = lanes.map((l) => `${l.attempt.candidate}: ${l.attempt.verdict} after ${latency(l.attempt.duration_ms)}`).join("; ");
  return h("div.timeline", { role: "img", "aria-label": `Timeline. ${label}.${released !== null ? ` Released after ${latency(released)}.` : ""}` },
    field, axis, h("div.tl-key", {}, [["connect", "connect"], ["header", "answer's head"], ["content", "first content"], ["hold", "held back"], ["body", "passed on"], ["vain", "failed"], ["wait", "wait"]].map(([k, t]) => h("span", {}, h(`i.tl-piece.tl-${k}`, { class: `tl-piece tl-${k} is-ok` }), t))));
}

/** What one attempt came to. @param {any} a @param {number} i @param {any} r */
function card(a, i, r) {
  const verdict = { ok: ["ok", "ok", "healthy"], failed: ["cross", "bad", a.class && a.class !== String(a.status) ? a.class : a.status || "failed"], empty: ["empty", "warn", "empty"], abandoned: ["left", "off", "abandoned"] }[/** @type {string} */ (a.verdict)] ?? ["off", "off", a.verdict];
  const rule = a.rule && ruleNamed(a.rule, r.virtual_model);
  const then = [a.action && `${a.rule || "no rule"} → ${a.action}`, a.froze_seconds > 0 && `frozen for ${words(a.froze_seconds)}${a.hedged ? " by auto-hedge" : ""}`, a.wait_seconds > 0 && `waited ${latency(a.wait_seconds * 1000)}`].filter(Boolean).join(", ");
  const tokens = a.tokens.output_tokens !== null || a.tokens.input_tokens !== null ? `${short(a.tokens.input_tokens)} in, ${short(a.tokens.output_tokens)} out` : "";
  return h("li.attempt", {},
    h("div.attempt-head", {}, h("span.attempt-no", {}, i + 1), h("strong", {}, a.candidate), h("span.quiet.mono.clip", {}, a.model), h("span", { class: `chip tone-${verdict[1]}` }, icon(/** @type {any} */ (verdict[0])), verdict[2])),
    a.text ? h("p.attempt-text", {}, a.text) : "",
    then ? h("p.attempt-then", { title: rule ? ruleLine(rule) : null }, icon("next"), h("span", {}, then, a.fault ? h("span.quiet", {}, ` (fault: ${a.fault})`) : "")) : "",
    rule ? h("p.attempt-rule", {}, ruleLine(rule)) : "",
    a.evidence?.body ? h("details.body", {}, h("summary", {}, "What it said", a.evidence.retry_after_seconds ? h("span.quiet", {}, ` it asked for ${words(a.evidence.retry_after_seconds)}`) : ""), h("pre", {}, visible(a.evidence.body) + (a.evidence.body_cut ? " …" : ""))) : "",
    h("p.attempt-facts", {}, [time(a.start), a.status ? `status ${a.status}` : a.header_ms !== null ? "no whole answer" : "no answer", a.header_ms !== null ? `head after ${latency(a.header_ms)}` : "", a.first_content_ms !== null ? `first content after ${latency(a.first_content_ms)}` : "", a.bytes ? size(a.bytes) : "", tokens].filter(Boolean).join(" · ")));
}

/** The rule of that name, as it stands in the configuration now. @param {string} name @param {string} model */
function ruleNamed(name, model) {
  const m = live.view?.virtual_models.find((/** @type {any} */ x) => x.name === model);
  return [...(m?.rules ?? []), ...(live.view?.rules ?? [])].find((/** @type {any} */ r) => r.name === name);
}
