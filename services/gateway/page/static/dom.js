// Elements made of data. Every text goes in as a text node: there is no way here for one to become markup.

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * Make an element. `class`, `text` and `on` (listeners) are special; other props are attributes, left out when null,
 * undefined or false.
 * @param {string} tag
 * @param {Record<string, any> | null} [props]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElement}
 */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") element.className = value;
    else if (name === "text") element.textContent = String(value);
    else if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  return put(element, ...children);
}

/**
 * Append children.
 * @template {Element} E
 * @param {E} element
 * @param {...(Child | Child[])} children
 * @returns {E}
 */
export function put(element, ...children) {
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

/**
 * Replace what an element holds.
 * @template {Element} E
 * @param {E} element
 * @param {...(Child | Child[])} children
 */
export function fill(element, ...children) {
  element.replaceChildren();
  return put(element, ...children);
}

/** @param {string} id @returns {any} */
export const $ = (id) => document.getElementById(id);

// 16 x 16, drawn with the text's colour. Statuses differ in shape, so that colour is never the only sign.
const ICONS = {
  done: ["M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13Z", "m5 8.2 2.1 2.1L11 6"],
  degraded: ["M8 2 15 14H1Z", "M8 6.5v3.6m0 1.4v.6"],
  bad: ["M5.2 1.5h5.6l3.7 3.7v5.6l-3.7 3.7H5.2l-3.7-3.7V5.2Z", "m5.8 5.8 4.4 4.4m0-4.4-4.4 4.4"],
  skipped: ["M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13Z", "M5 8h6"],
  started: ["M8 1.5A6.5 6.5 0 0 1 14.5 8"],
  unknown: ["M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13Z", "M6.2 6.2a1.8 1.8 0 1 1 2.6 1.7c-.6.3-.8.6-.8 1.3m0 1.7v.5"],
  false: ["M8 1.5 14.5 8 8 14.5 1.5 8Z", "m6 6 4 4m0-4-4 4"],
  sun: ["M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6Z", "M8 1v1.5M8 13.5v1.5M1 8h1.5M13.5 8H15M3 3l1 1m8 8 1 1m0-10-1 1m-8 8-1 1"],
  moon: ["M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7Z"],
  remove: ["m4 4 8 8m0-8-8 8"],
};

/**
 * An icon, hidden from readers: a text beside it says the same.
 * @param {keyof typeof ICONS} name
 */
export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", `icon icon-${name}`);
  svg.setAttribute("aria-hidden", "true");
  for (const d of ICONS[name] ?? ICONS.unknown) {
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", d);
    svg.append(path);
  }
  return svg;
}

/** A status as shape, colour and word. @param {keyof typeof ICONS} shape @param {string} word @param {string} [tone] */
export function badge(shape, word, tone = shape) {
  return h("span", { class: `badge tone-${tone}` }, icon(shape), word);
}

/** @param {string} text */
export function say(text) {
  $("announcer").textContent = text;
}

/** @param {number} ms */
export function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return `${(ms / 1000).toFixed(ms < 10000 ? 2 : 1)} s`;
}

/** @param {number} value from 0 to 1 @param {number} [digits] */
export const percent = (value, digits = 0) => `${(100 * value).toFixed(digits)} %`;

/** @param {number} count @param {string} one */
export const plural = (count, one) => `${count.toLocaleString("en")} ${one}${count === 1 ? "" : "s"}`;
