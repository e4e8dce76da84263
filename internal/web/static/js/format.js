// @ts-check
// Numbers and times as people read them. What is unknown is shown as such, and is
// never 0.

export const UNKNOWN = "–";
const THIN = " ";

/** @param {number | null | undefined} n */
export function count(n) {
  if (n === null || n === undefined) return UNKNOWN;
  return Math.round(n).toLocaleString("en-US").replaceAll(",", THIN);
}

/** A number in at most four characters: 950, 12.3k, 4.1M.
 * @param {number | null | undefined} n */
export function short(n) {
  if (n === null || n === undefined) return UNKNOWN;
  for (const [unit, size] of /** @type {[string, number][]} */ ([["G", 1e9], ["M", 1e6], ["k", 1e3]])) {
    if (n >= size * 0.9995) {
      const v = n / size;
      return (v < 99.95 ? v.toFixed(1) : v.toFixed(0)) + unit;
    }
  }
  return String(Math.round(n));
}

/** A sum of what was reported: "at least" where some reported nothing.
 * @param {number | null} n @param {boolean} incomplete */
export function sum(n, incomplete) {
  return n === null ? UNKNOWN : (incomplete ? "≥" + THIN : "") + short(n);
}

/** @param {number | null | undefined} share from 0 to 1 */
export function percent(share) {
  if (share === null || share === undefined) return UNKNOWN;
  const p = share * 100;
  // 99.96 is not all, and 0.04 is not nothing.
  if (p > 99.9 && p < 100) return "99.9" + THIN + "%";
  if (p === 100 || p === 0) return p + THIN + "%";
  return p.toFixed(1) + THIN + "%";
}

/** @param {number | null | undefined} ms */
export function latency(ms) {
  if (ms === null || ms === undefined) return UNKNOWN;
  if (ms < 1) return "<1" + THIN + "ms";
  if (ms < 999.5) return Math.round(ms) + THIN + "ms";
  if (ms < 99950) return (ms / 1000).toFixed(ms < 9995 ? 2 : 1) + THIN + "s";
  return span(ms / 1000);
}

/** A length of time: 7 s, 4:12, 2:03:10, 3 d 4 h.
 * @param {number} seconds */
export function span(seconds) {
  const t = Math.max(0, Math.ceil(seconds));
  if (t < 60) return t + THIN + "s";
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  if (t < 3600) return `${Math.floor(t / 60)}:${two(t % 60)}`;
  if (t < 86400) return `${Math.floor(t / 3600)}:${two(Math.floor((t % 3600) / 60))}:${two(t % 60)}`;
  return `${Math.floor(t / 86400)}${THIN}d ${Math.floor((t % 86400) / 3600)}${THIN}h`;
}

/** The same in words, for a sentence: 4 minutes, 2 hours.
 * @param {number} seconds */
export function words(seconds) {
  const t = Math.max(0, Math.round(seconds));
  const plural = (/** @type {number} */ n, /** @type {string} */ unit) => `${n}${THIN}${unit}${n === 1 ? "" : "s"}`;
  if (t < 60) return plural(t, "second");
  if (t < 5400) return plural(Math.round(t / 60), "minute");
  if (t < 129600) return plural(Math.round(t / 3600), "hour");
  return plural(Math.round(t / 86400), "day");
}

/** How long ago something was.
 * @param {number} seconds */
export function ago(seconds) {
  const t = Math.max(0, Math.floor(seconds));
  if (t < 2) return "just now";
  if (t < 60) return `${t}${THIN}s ago`;
  if (t < 3600) return `${Math.floor(t / 60)}${THIN}min ago`;
  if (t < 86400) return `${Math.floor(t / 3600)}${THIN}h ago`;
  return `${Math.floor(t / 86400)}${THIN}d ago`;
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const minute = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const dated = new Intl.DateTimeFormat("en-GB", { weekday: "short", hour: "2-digit", minute: "2-digit" });

/** The time of day.
 * @param {number | string | Date} at */
export function time(at) {
  return clock.format(new Date(at));
}

/** When something ends: with the day where it is not today.
 * @param {number} at ms since 1970 @param {number} now */
export function until(at, now) {
  const end = new Date(at);
  return (end.toDateString() === new Date(now).toDateString() ? minute : dated).format(end);
}

/** @param {number} n @param {string} one @param {string} [many] */
export function plural(n, one, many = one + "s") {
  return `${count(n)}${THIN}${n === 1 ? one : many}`;
}

/** @param {number} bytes */
export function size(bytes) {
  if (bytes < 1000) return `${bytes}${THIN}B`;
  if (bytes < 1e6) return `${(bytes / 1e3).toFixed(1)}${THIN}kB`;
  return `${(bytes / 1e6).toFixed(1)}${THIN}MB`;
}

/** A URL's host, for a line under a name.
 * @param {string} url */
export function host(url) {
  return url.replace(/^[a-z0-9+.-]+:\/\//i, "").replace(/\/$/, "");
}

/** Joins names: "a, b and c".
 * @param {string[]} names */
export function and(names) {
  return names.length < 2 ? names.join("") : names.slice(0, -1).join(", ") + " and " + names[names.length - 1];
}

/** A text from outside with its invisible characters shown: those that control a
 * terminal, hide, or turn the direction of what follows.
 * @param {string} text */
export function visible(text) {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}
