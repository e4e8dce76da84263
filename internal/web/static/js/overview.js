// @ts-check
// The first screen: is everything well, who is frozen and until when, what failed
// last. It is to be read within a second.

import { h, icon, list, picture, put, attr, show, dress } from "./dom.js";
import { ago, and, count, latency, percent, short, span, sum, UNKNOWN, until } from "./format.js";
import { lastFailure, modelName, overall, standing, verdict } from "./verdict.js";
import { lift } from "./actions.js";
import { live } from "./live.js";

/** How a level looks. @type {Record<string, {icon: any, tone: string}>} */
export const LEVELS = {
  ok: { icon: "ok", tone: "ok" },
  note: { icon: "ok", tone: "ok" },
  standin: { icon: "swap", tone: "warn" },
  trouble: { icon: "warn", tone: "bad" },
  down: { icon: "down", tone: "bad" },
};

/** Most points that are listed before the rest is only counted. */
const MOST_POINTS = 4;

export function overview() {
  const mark = icon("ok", "icon verdict-icon");
  const badge = h("span.verdict-badge", {}, mark);
  const title = h("h1", { id: "verdict" });
  const points = h("ul.points");
  const more = h("li.quiet");
  const items = list(points, (p) => p.text, point);
  const figures = [
    figure("Answered", "of the last 10 min"),
    figure("Requests", "in the last 10 min"),
    figure("In flight", "now"),
    figure("Latency", "mean, 10 min"),
    figure("First content", "mean, 10 min"),
    figure("Tokens", "per minute"),
  ];
  const freezes = frozen();
  const failure = failed();
  const now = onStage();
  const stage = h("section.verdict", { "aria-labelledby": "verdict" },
    h("div.verdict-line", {}, badge, h("div", {}, title, points)), now.el,
    h("dl.figures", {}, figures.map((f) => f.el)));
  const el = h("div.hero", {}, stage, h("div.hero-side", {}, freezes.el, failure.el));

  return {
    el,
    /** @param {any} view */
    update(view) {
      const v = verdict(view);
      const look = LEVELS[v.level];
      dress(stage, `verdict panel is-${look.tone}`);
      dress(badge, `verdict-badge tone-${look.tone}`);
      picture(mark, look.icon);
      put(title, v.title);
      items.update(v.points.slice(0, MOST_POINTS));
      const rest = v.points.length - MOST_POINTS;
      if (rest > 0) {
        put(more, `and ${count(rest)} more`);
        points.append(more);
      } else more.remove();
      show(points, v.points.length > 0);
      now.update(view);
      const all = overall(view, "10m");
      const bad = all.rate !== null && all.rate < 0.9;
      figures[0].update(percent(all.rate), bad ? "bad" : "");
      figures[1].update(count(all.requests), "", all.failures ? `${count(all.failures)} failed` : "in the last 10 min");
      figures[2].update(count(all.in_flight), "");
      figures[3].update(latency(all.latency), "");
      figures[4].update(latency(all.first), "");
      figures[5].update(sum(all.tpm, all.incomplete && all.tpm !== null), "", all.tpm === null ? "nobody reports them" : "in the last minute");
      freezes.update(view);
      failure.update(view);
      this.tick();
    },
    tick() {
      freezes.tick();
      failure.tick();
    },
  };
}

/** Most models that are listed on the first screen. */
const MOST_MODELS = 8;

/** Who serves each model now. */
function onStage() {
  const rows = h("ul.stage");
  const more = h("li.quiet");
  const parts = list(rows, (m) => m.name, () => {
    const dot = h("span.stage-dot");
    const model = h("span.stage-model");
    const who = h("span.stage-who");
    const el = h("li", {}, dot, model, who);
    return {
      el,
      /** @param {any} m */
      update(m) {
        const st = standing(m);
        const tone = st.serving.length ? LEVELS[st.level].tone : "bad";
        dress(dot, `stage-dot is-${tone}`);
        put(model, modelName(m));
        put(who, st.serving.length ? and(st.serving.map((c) => c.name)) : "nobody");
        dress(who, tone === "ok" ? "stage-who" : `stage-who ink-${tone}`);
      },
    };
  });
  const el = h("div.stage-now", {}, h("h2.offscreen", {}, "Who serves now"), rows);
  return {
    el,
    /** @param {any} view */
    update(view) {
      parts.update(view.virtual_models.slice(0, MOST_MODELS));
      const rest = view.virtual_models.length - MOST_MODELS;
      put(more, `and ${count(rest)} more`);
      if (rest > 0) rows.append(more);
      else more.remove();
      show(el, view.virtual_models.length > 0);
    },
  };
}

/** @param {import("./verdict.js").Point} p */
function point(p) {
  const text = h("span");
  const el = h("li", {}, icon(LEVELS[p.level].icon, `icon ink-${LEVELS[p.level].tone}`), text);
  return { el, update(/** @type {import("./verdict.js").Point} */ next) { put(text, next.text); } };
}

/** One number with its name. @param {string} name @param {string} of */
function figure(name, of) {
  const value = h("dd.figure-value", {}, UNKNOWN);
  const note = h("dd.figure-of", {}, of);
  const el = h("div.figure", {}, h("dt", {}, name), value, note);
  return {
    el,
    /** @param {string} text @param {string} tone @param {string} [says] */
    update(text, tone, says = of) {
      put(value, text);
      put(note, says);
      dress(value, tone ? `figure-value ink-${tone}` : "figure-value");
    },
  };
}

/** Who is frozen, and a way to lift it. */
function frozen() {
  const title = h("h2", {}, "Frozen");
  const tally = h("span.tally");
  const rows = h("ul.freezes");
  const none = h("p.calm", {}, icon("ok", "icon ink-ok"), "Nobody is frozen.");
  const parts = list(rows, (f) => f.identity, freeze);
  const el = h("section.panel.side", { "aria-label": "Frozen candidates" }, h("header", {}, icon("ice", "icon ink-ice"), title, tally), rows, none);
  return {
    el,
    /** @param {any} view */
    update(view) {
      // One freeze shows once, wherever its identity stands.
      /** @type {Map<string, any>} */
      const by = new Map();
      for (const f of view.freezes) {
        const known = by.get(f.identity);
        if (known) known.places.push(f);
        else by.set(f.identity, { ...f, places: [f] });
      }
      const all = [...by.values()].sort((a, b) => Date.parse(a.until) - Date.parse(b.until));
      parts.update(all);
      put(tally, all.length ? count(all.length) : "");
      show(rows, all.length > 0);
      show(none, all.length === 0);
    },
    tick() {
      for (const p of parts.parts.values()) p.tick();
    },
  };
}

/** @param {any} first */
function freeze(first) {
  const name = h("strong");
  const where = h("span.quiet");
  const left = h("span.countdown");
  const at = h("span.quiet.nowrap");
  const why = h("p.why");
  const meter = h("span.meter", { "aria-hidden": "true" }, h("span"));
  const button = h("button.button.small", { type: "button", on: { click: () => lift(f) } }, "Lift");
  let f = first;
  const el = h("li.freeze", {},
    h("div.freeze-who", {}, name, where), h("div.freeze-when", {}, left, at), button, why, meter);
  return {
    el,
    /** @param {any} next */
    update(next) {
      f = next;
      put(name, f.candidate);
      const names = f.places.map((/** @type {any} */ p) => (p.virtual_model === "*" ? "the pool" : p.virtual_model));
      put(where, names.join(", "));
      put(why, (f.by === "person" ? `By a person${f.from ? ` at ${f.from}` : ""}: ` : f.from ? `At ${f.from}: ` : "") + (f.reason || "no reason given"));
      attr(why, "title", f.reason);
      attr(button, "aria-label", `Lift the freeze of ${f.candidate}`);
      this.tick();
    },
    tick() {
      const now = live.now();
      const end = Date.parse(f.until);
      const whole = end - Date.parse(f.since);
      put(left, span((end - now) / 1000));
      put(at, `until ${until(end, now)}`);
      /** @type {HTMLElement} */ (meter.firstChild).style.width = `${Math.max(0, Math.min(100, ((end - now) / whole) * 100))}%`;
    },
  };
}

/** What failed last. */
function failed() {
  const when = h("span.tally");
  const who = h("strong");
  const where = h("span.quiet");
  const text = h("p.last-text");
  const what = h("div.last", {}, h("div", {}, who, " ", where), text);
  const none = h("p.calm", {}, icon("ok", "icon ink-ok"), "Nothing has failed yet.");
  const link = h("p.side-links", {}, h("a", { href: "#/requests?only=saved" }, "Saved requests"), h("a", { href: "#/requests?only=failed" }, "Failed requests"));
  const el = h("section.panel.side", { "aria-label": "Last failure" }, h("header", {}, icon("cross", "icon ink-bad"), h("h2", {}, "Failed last"), when), what, none, link);
  /** @type {number | null} */
  let at = null;
  return {
    el,
    /** @param {any} view */
    update(view) {
      const last = lastFailure(view);
      at = last && last.at;
      show(what, last !== null);
      show(none, last === null);
      show(link, last !== null);
      if (!last) return;
      put(who, last.candidate.name);
      put(where, `in ${modelName(last.model)}`);
      put(text, last.text);
      attr(text, "title", last.text);
      this.tick();
    },
    tick() {
      put(when, at === null ? "" : ago((live.now() - at) / 1000));
    },
  };
}
