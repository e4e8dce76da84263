// @ts-check
// Colours for a line of a configuration. Nothing here touches the page.

/** @typedef {{text: string, kind: "" | "key" | "text" | "value" | "comment" | "mask" | "head"}} Token */

const QUOTED = /^("(?:[^"\\]|\\.)*"?|'(?:[^']|'')*'?)/;
const YAML_KEY = /^("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#:,[\]{}"'&*!|>%@`-][^:#,[\]{}]*?|-[^\s:][^:,]*?)(?=\s*:(\s|$))/;
const TOML_KEY = /^([A-Za-z0-9_-]+|"[^"]*"|'[^']*')(\s*\.\s*([A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*(?=\s*=)/;
const VALUE = /^(true|false|null|on|off|~|[-+]?\d[\d_]*(\.\d+)?([eE][-+]?\d+)?)(?=$|[\s,\]}#])/;

/**
 * @param {string} line @param {"yaml" | "toml" | string} format @param {string[]} masks
 * @returns {Token[]}
 */
export function tokens(line, format, masks) {
  /** @type {Token[]} */
  const out = [];
  const key = format === "toml" ? TOML_KEY : YAML_KEY;
  const push = (/** @type {string} */ text, /** @type {Token["kind"]} */ kind) => {
    const last = out[out.length - 1];
    if (last && last.kind === kind) last.text += text;
    else out.push({ text, kind });
  };
  if (format === "toml" && /^\s*\[[^=]*\]\s*(#|$)/.test(line) && !/^\s*\[\s*["'{]/.test(line)) {
    const end = line.lastIndexOf("]", line.includes("#") ? line.indexOf("#") : undefined) + 1;
    push(line.slice(0, end), "head");
    line = line.slice(end);
  }
  let start = true; // a key may stand here
  for (let rest = line; rest; ) {
    const blank = /^[\s]+|^-(?=\s|$)/.exec(rest);
    const take = (/** @type {number} */ n, /** @type {Token["kind"]} */ kind) => {
      masked(rest.slice(0, n), kind, masks, push);
      rest = rest.slice(n);
    };
    if (blank) {
      take(blank[0].length, "");
      continue;
    }
    if (rest[0] === "#") {
      take(rest.length, "comment");
      break;
    }
    const k = start && key.exec(rest);
    if (k) {
      take(k[0].length, "key");
      start = false;
      continue;
    }
    const q = QUOTED.exec(rest);
    if (q) {
      take(q[0].length, "text");
      start = false;
      continue;
    }
    const v = VALUE.exec(rest);
    if (v) {
      take(v[0].length, "value");
      start = false;
      continue;
    }
    if (/[{[,]/.test(rest[0])) {
      take(1, "");
      start = true;
      continue;
    }
    if (/[}\]:=]/.test(rest[0])) {
      take(1, "");
      continue;
    }
    const word = /** @type {RegExpExecArray} */ (/^(?:(?!\s#)[^,[\]{}"'])+|^./.exec(rest));
    take(word[0].length, "");
    start = false;
  }
  return out;
}

/** Cuts the masks out of a text.
 * @param {string} text @param {Token["kind"]} kind @param {string[]} masks @param {(text: string, kind: Token["kind"]) => void} push */
function masked(text, kind, masks, push) {
  if (!text.includes("***")) return push(text, kind);
  for (let at = 0; at < text.length; ) {
    let found = "";
    let where = text.length;
    for (const m of masks) {
      const i = text.indexOf(m, at);
      if (i >= 0 && (i < where || (i === where && m.length > found.length))) {
        found = m;
        where = i;
      }
    }
    if (where > at) push(text.slice(at, where), kind);
    if (found) push(found, "mask");
    at = where + found.length;
  }
}
