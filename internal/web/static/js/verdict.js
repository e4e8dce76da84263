// @ts-check
// What the first line of the dashboard says: one View in, a sentence out. Nothing
// here touches the page.

import { and, count, plural, span } from "./format.js";

/** @typedef {"ok" | "note" | "standin" | "trouble" | "down"} Level */
/** @typedef {{level: Level, text: string, model?: string, until?: number, view?: string}} Point */
/** @typedef {{level: Level, serving: any[], lead: any[], soonest: any | null, points: Point[]}} Standing */
/** @typedef {{level: Level, title: string, points: Point[]}} Verdict */

const RANK = { ok: 0, note: 1, standin: 2, trouble: 3, down: 4 };

/** @param {Level} a @param {Level} b @returns {Level} */
export const worse = (a, b) => (RANK[a] >= RANK[b] ? a : b);

/** Whether a candidate would be called now. @param {any} c */
export const usable = (c) => (c.state === "ready" || c.state === "probation") && c.missing_env.length === 0;

/** What people call a model. @param {any} m */
export const modelName = (m) => (m.pool ? "the pool" : m.name);

/** The window of a View by its span. @param {any} of @param {string} name */
export const windowOf = (of, name) => of.windows.find((/** @type {any} */ w) => w.span === name) ?? of.windows[0];

/**
 * Who serves a model now, and what is wrong with it.
 * @param {any} model
 * @returns {Standing}
 */
export function standing(model) {
  const enabled = model.candidates.filter((/** @type {any} */ c) => c.state !== "disabled");
  const tiers = [...new Set(enabled.map((/** @type {any} */ c) => c.tier))];
  const inTier = (/** @type {any} */ t) => enabled.filter((/** @type {any} */ c) => c.tier === t);
  const at = tiers.find((t) => inTier(t).some(usable));
  const lead = tiers.length ? inTier(tiers[0]) : [];
  const serving = at === undefined ? [] : inTier(at).filter(usable);
  /** @type {Standing} */
  const out = { level: "ok", serving, lead, soonest: null, points: [] };
  const name = modelName(model);
  const add = (/** @type {Level} */ level, /** @type {string} */ text) => {
    out.points.push({ level, text, model: model.name });
    out.level = worse(out.level, level);
  };
  const frozen = enabled.filter((/** @type {any} */ c) => c.state === "frozen");
  out.soonest = frozen.reduce((/** @type {any} */ a, /** @type {any} */ b) => (!a || b.seconds_left < a.seconds_left ? b : a), null);
  if (!serving.length) {
    add("down", out.soonest ? `Nobody is left for ${name}: ${out.soonest.name} is the first to be back, in ${span(out.soonest.seconds_left)}.` : `Nobody is left for ${name}.`);
  } else if (at !== tiers[0]) {
    const why = lead.every((c) => c.state === "frozen") ? "frozen" : "not available";
    add("standin", `${and(serving.map((c) => c.name))} ${serving.length > 1 ? "stand" : "stands"} in for ${and(lead.map((c) => c.name))} in ${name}: ${why}.`);
  } else if (serving.length < lead.length) {
    const out = lead.filter((c) => !usable(c));
    add("note", `${and(out.map((c) => c.name))} of ${name} ${out.length > 1 ? "are" : "is"} out; the others of the tier serve.`);
  }
  const recent = windowOf(model, "10m");
  if (recent.failures >= 3 && recent.success_rate !== null && recent.success_rate < 0.9) {
    add("trouble", `${count(recent.failures)} of ${plural(recent.requests, "request")} for ${name} failed in the last 10 minutes.`);
  } else if (model.consecutive_failures >= 3) {
    add("trouble", `The last ${plural(model.consecutive_failures, "request")} for ${name} failed.`);
  }
  for (const c of enabled) {
    if (c.missing_env.length) add("note", `${c.name} of ${name} is passed over: ${and(c.missing_env)} is not set.`);
  }
  return out;
}

/**
 * The verdict over everything.
 * @param {any} view
 * @returns {Verdict}
 */
export function verdict(view) {
  /** @type {Point[]} */
  const points = [];
  if (view.config.error) points.push({ level: "trouble", text: "The configuration file has errors; the former one is in force.", view: "config" });
  const all = view.virtual_models.map(standing);
  for (const st of all) points.push(...st.points);
  if (view.config.needs_restart.length) points.push({ level: "note", text: `${and(view.config.needs_restart)} will be in force after a restart.` });
  const log = view.archive;
  if (log?.problem) points.push({ level: "note", text: `The request log ${log.state === "ended" ? "is written by another process" : "cannot be written"}: ${log.problem}` });
  const store = view.store;
  if (store?.state === "away" && store.problem) points.push({ level: "note", text: `The store is away, so this instance goes by what it knows: ${store.problem}` });
  points.sort((a, b) => RANK[b.level] - RANK[a.level]);
  const level = points.reduce((/** @type {Level} */ l, p) => worse(l, p.level), "ok");
  return { level, title: title(view, level, all), points };
}

/** @param {any} view @param {Level} level @param {Standing[]} all */
function title(view, level, all) {
  const at = (/** @type {Level} */ l) => view.virtual_models.filter((/** @type {any} */ _, /** @type {number} */ i) => all[i].level === l);
  const named = (/** @type {any[]} */ models) => (models.length > 2 ? `${models.length} virtual models` : and(models.map(modelName)));
  switch (level) {
    case "down":
      return `Nobody is left for ${named(at("down"))}.`;
    case "trouble":
      return at("trouble").length ? `Requests for ${named(at("trouble"))} fail.` : "The configuration file has errors.";
    case "standin":
      return at("standin").length > 1 ? "Understudies are on." : "An understudy is on.";
  }
  if (!view.virtual_models.length) return "Nobody is cast yet.";
  return view.totals.requests === 0 && view.totals.in_flight === 0 ? "Ready when you are." : "All is well.";
}

/**
 * The figures of all models together over a window.
 * @param {any} view @param {string} name
 */
export function overall(view, name) {
  const out = { requests: 0, successes: 0, failures: 0, abandoned: 0, empty: 0, rpm: 0, tpm: /** @type {number | null} */ (null), incomplete: false, latency: /** @type {number | null} */ (null), first: /** @type {number | null} */ (null), rate: /** @type {number | null} */ (null), in_flight: view.totals.in_flight };
  let latency = 0;
  let first = 0;
  let firsts = 0;
  for (const m of view.virtual_models) {
    const w = windowOf(m, name);
    for (const k of /** @type {const} */ (["requests", "successes", "failures", "abandoned", "empty"])) out[k] += w[k];
    if (w.latency_ms.avg !== null) latency += w.latency_ms.avg * w.successes;
    if (w.first_content_ms.avg !== null) {
      first += w.first_content_ms.avg * w.successes;
      firsts += w.successes;
    }
    out.rpm += m.rpm;
    if (m.tpm !== null) out.tpm = (out.tpm ?? 0) + m.tpm;
    out.incomplete ||= m.tpm_incomplete || (m.tpm === null && m.rpm > 0);
  }
  const judged = out.successes + out.failures + out.empty;
  if (judged) out.rate = out.successes / judged;
  if (out.successes) out.latency = latency / out.successes;
  if (firsts) out.first = first / firsts;
  return out;
}

/** The last failure of any candidate, and whose it was.
 * @param {any} view
 * @returns {{model: any, candidate: any, text: string, at: number} | null} */
export function lastFailure(view) {
  let last = null;
  for (const model of view.virtual_models) {
    for (const candidate of model.candidates) {
      if (!candidate.last_error_at) continue;
      const at = Date.parse(candidate.last_error_at);
      if (!last || at > last.at) last = { model, candidate, text: candidate.last_error, at };
    }
  }
  return last;
}

