// @ts-check
// The dashboard's beginning: the bar, the views and which of them is shown, the
// shortcuts.

import { api } from "./api.js";
import { attr, dress, h, icon, picture, put, show } from "./dom.js";
import { cast } from "./cast.js";
import { charts } from "./charts.js";
import { configView } from "./config.js";
import { live } from "./live.js";
import { overview } from "./overview.js";
import { requestsView } from "./requests.js";
import { closeSheet } from "./sheet.js";
import { shortcuts, showShortcuts } from "./shortcuts.js";
import { target } from "./actions.js";
import { ago, plural, words } from "./format.js";
import { nextTheme, theme } from "./theme.js";

const el = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** The bar's tools: what the connection does, target mode, the theme, help. */
function tools() {
  const text = h("span.pulse-text", {}, "connecting");
  const pulse = h("span.pulse", { "data-state": "loading", title: "" }, h("span.pulse-dot"), text);
  const toggle = h("button.switch", {
    type: "button", role: "switch", "aria-checked": "false", title: "While it is on, a request that nobody can answer is tried again until somebody can",
    on: { click: () => target(toggle.getAttribute("aria-checked") !== "true") },
  }, h("span.switch-track"), h("span", {}, "Target", h("span.switch-rest", {}, " mode")));
  const themeIcon = icon("half");
  const themes = h("button.button.bare.square", { type: "button", on: { click: () => { nextTheme(); dressTheme(); } } }, themeIcon);
  const help = h("button.button.bare.square", { type: "button", "aria-label": "Keyboard shortcuts", title: "Keyboard shortcuts (?)", on: { click: showShortcuts } }, icon("keys"));
  function dressTheme() {
    const t = theme();
    picture(themeIcon, t === "light" ? "sun" : t === "dark" ? "moon" : "half");
    attr(themes, "aria-label", `Theme: ${t}`);
    attr(themes, "title", `Theme: ${t}`);
  }
  dressTheme();
  el("tools").append(pulse, toggle, themes, help);
  return {
    /** @param {import("./live.js").live} l */
    update(l) {
      attr(pulse, "data-state", l.connection);
      put(text, l.connection === "live" ? "live" : l.connection === "lost" ? "no connection" : "connecting");
      if (l.view) attr(toggle, "aria-checked", String(l.view.target_mode));
      attr(toggle, "disabled", !l.view);
    },
  };
}

/** The strip below the bar: what is wrong with the connection or the file. */
function notice() {
  const text = h("span");
  const link = h("a", { href: "#/config" }, "Show it");
  el("notice").append(icon("warn"), text, link);
  return {
    /** @param {any} l */
    update(l) {
      const lost = l.connection === "lost";
      const broken = l.view?.config.error;
      show(el("notice"), lost || Boolean(broken));
      show(link, !lost);
      if (lost) put(text, l.view ? `No connection to understudy. What you see is from ${ago((performance.now() - l.received) / 1000)}; it is tried again.` : "No connection to understudy. It is tried again.");
      else if (broken) put(text, "The configuration file has errors; the former one is in force.");
    },
  };
}

function foot() {
  const says = h("span");
  const out = h("button.link", { type: "button", on: { click: api.logout } }, "Log out");
  el("foot").append(says, h("span.spacer"), h("a", { href: "/plain" }, "Plain page"), h("a", { href: "/metrics" }, "Metrics"), h("a", { href: "/api/state" }, "State as JSON"), out);
  return {
    /** @param {any} view */
    update(view) {
      put(says, `understudy ${view.version} · up ${words(view.uptime_seconds + (live.now() - Date.parse(view.time)) / 1000)} · ${plural(view.totals.requests, "request")} answered for · clients call ${view.proxy || "nobody"}`);
      show(out, view.login === true);
    },
  };
}

/** The first view: everything at once. */
function home() {
  const top = overview();
  const people = cast();
  const curves = charts();
  const empty = h("section.panel.empty", {});
  const root = h("div", { id: "view-overview" }, top.el, empty, people.el, curves.el);
  return {
    el: root, title: "Overview",
    /** @param {any} view */
    update(view) {
      top.update(view);
      people.update(view);
      curves.update(view);
      welcome(empty, view);
    },
    tick() {
      top.tick();
      people.tick();
    },
    shown: () => curves.shown(true),
    hidden: () => curves.shown(false),
  };
}

/** What to do where nobody has called yet. @param {HTMLElement} box @param {any} view */
function welcome(box, view) {
  const first = view.virtual_models[0];
  const fresh = view.totals.requests === 0 && view.totals.in_flight === 0;
  show(box, fresh && Boolean(first));
  if (!fresh || !first || box.childElementCount) return;
  const name = first.pool ? "gpt-5.1" : first.name;
  const at = view.proxy.replace(/^(0\.0\.0\.0|\[::\])/, location.hostname);
  box.append(h("h2", {}, "Nobody has called yet"), h("p", {}, "Point a client at this address, or try it from here:"),
    h("pre", {}, `curl http://${at}/v1/chat/completions \\\n  -H 'Content-Type: application/json' \\\n  -d '{"model": "${name}", "messages": [{"role": "user", "content": "Hello"}]}'`));
}

function main() {
  const bar = tools();
  const strip = notice();
  const bottom = foot();
  /** @type {Record<string, any>} */
  const views = { overview: home(), requests: requestsView(), config: configView() };
  /** @type {string | null} */
  let current = null;

  function route() {
    closeSheet(); // what it showed belongs to where one was
    const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
    const name = path.split("/")[0] in views ? path.split("/")[0] : "overview";
    if (current === "config" && name !== "config" && !views.config.mayLeave()) {
      history.replaceState(null, "", "#/config");
      return;
    }
    if (name !== current) {
      if (current) views[current].hidden?.();
      current = name;
      if (live.view) mount();
      for (const a of document.querySelectorAll(".tabs a")) attr(a, "aria-current", /** @type {HTMLElement} */ (a).dataset.view === name ? "page" : null);
      scrollTo(0, 0);
    }
    views[name].route?.(path.split("/").slice(1), new URLSearchParams(query ?? ""));
  }

  function mount() {
    const view = views[/** @type {string} */ (current)];
    if (view.el.parentNode !== el("main") || el("main").childElementCount > 1) el("main").replaceChildren(view.el);
    document.title = current === "overview" ? "understudy" : `${view.title} · understudy`;
    view.shown?.();
    view.update(live.view, live);
  }

  addEventListener("hashchange", route);
  route();
  live.read((l) => {
    bar.update(l);
    strip.update(l);
    dress(el("main"), l.connection === "lost" && l.view ? "lost" : "");
    if (!l.view) {
      const loading = el("loading");
      if (loading && l.connection === "lost") put(/** @type {Node} */ (loading.lastElementChild), "No connection to understudy. It is tried again.");
      return;
    }
    bottom.update(l.view);
    if (el("loading")) mount();
    else views[/** @type {string} */ (current)].update(l.view, l);
  });
  live.tick((l) => {
    if (!l.view) return;
    strip.update(l);
    views[/** @type {string} */ (current)].tick?.();
  });
  shortcuts({ go: (/** @type {string} */ hash) => (location.hash = hash), view: () => views[/** @type {string} */ (current)] });
  live.start();
}

main();
