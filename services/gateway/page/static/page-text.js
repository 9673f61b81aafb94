// A page's text with the place of a passage in it. The page is parsed as a document of its own that is never shown, runs
// nothing and loads nothing; only its texts come out.

import { h } from "./dom.js";

/** @typedef {{kind: string, text: string, rows: string[][] | null}} Block */

const NOT_READ = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "SVG", "IFRAME", "OBJECT", "HEAD", "NAV", "BUTTON", "SELECT"]);
const INLINE = new Set("A ABBR B BDI BDO BR CITE CODE DATA DEL DFN EM FONT I INS KBD MARK Q S SAMP SMALL SPAN STRONG SUB SUP TIME TT U VAR WBR LABEL".split(" "));
const APART = new Set(["A", "SPAN", "TIME"]);
const HEADINGS = new Set(["H1", "H2", "H3", "H4", "H5", "H6"]);
const MAX_BLOCKS = 20_000;
const MAX_DEPTH = 400;
// Nobody's title comes later, and every page is searched.
const TITLE_WITHIN = 256 * 1024;
// A shorter piece is found in too many places.
const MIN_CHARS = 12;

/** @type {{createHTML: (text: string) => any}} */
const inert = /** @type {any} */ (window).trustedTypes?.createPolicy("inert", { createHTML: (/** @type {string} */ text) => text }) ?? {
  createHTML: (text) => text,
};

/** @param {string} html @returns {Document} */
const parsed = (html) => new DOMParser().parseFromString(inert.createHTML(html), "text/html");

/** A page's title; empty where it has none. @param {string} html */
export function titleOf(html) {
  // Bounded, and held up by the next tag: a page of nothing but tags that are never closed takes no longer than another.
  const match = /<title(?:\s[^<>]{0,500})?>([^<]{0,2000})/i.exec(html.slice(0, TITLE_WITHIN));
  return match ? (parsed(`<title>${match[1]}</title>`).title ?? "").trim().slice(0, 500) : "";
}

/** @param {string} html @returns {Block[]} */
export function blocksOf(html) {
  /** @type {Block[]} */
  const blocks = [];
  let text = "";
  const flush = (kind = "p") => {
    const trimmed = text.replace(/\s+/g, " ").trim();
    if (trimmed && blocks.length < MAX_BLOCKS) blocks.push({ kind, text: trimmed, rows: null });
    text = "";
  };
  /** @param {Node} node @param {number} depth */
  const read = (node, depth) => {
    for (const child of node.childNodes) {
      if (child.nodeType === Node.TEXT_NODE) text += child.nodeValue;
      if (!(child.nodeType === Node.ELEMENT_NODE) || depth > MAX_DEPTH) continue;
      const element = /** @type {Element} */ (child);
      const tag = element.tagName.toUpperCase();
      if (NOT_READ.has(tag)) continue;
      if (INLINE.has(tag)) {
        // Neighbours that only a style keeps apart.
        if (tag === "BR" || (APART.has(tag) && child.previousSibling?.nodeType === Node.ELEMENT_NODE)) text += " ";
        read(element, depth + 1);
      } else if (tag === "TABLE" && isData(element)) {
        flush();
        blocks.push({ kind: "table", text: "", rows: rowsOf(element) });
      } else {
        flush();
        read(element, depth + 1);
        flush(HEADINGS.has(tag) ? "h" : tag === "LI" ? "li" : "p");
      }
    }
  };
  read(parsed(html).body, 0);
  flush();
  return blocks;
}

/** Whether a table holds data, and not a page's layout. @param {Element} table */
function isData(table) {
  if (table.querySelector("table")) return false;
  const cells = [...table.querySelectorAll("td, th")];
  return cells.length > 1 && cells.every((cell) => (cell.textContent ?? "").length < 1_000);
}

/** @param {Element} table */
function rowsOf(table) {
  return [...table.querySelectorAll("tr")].map((row) =>
    [...row.querySelectorAll("td, th")].map((cell) => (cell.textContent ?? "").replace(/\s+/g, " ").trim()),
  );
}

/** Letters and digits alone, since extraction changes everything else. @param {string} text */
const letters = (text) => text.toLowerCase().normalize("NFKC").replace(/[^\p{L}\p{N}]+/gu, "");

/**
 * The page, with what of the passage was found in it as `mark`s.
 * @param {string} html
 * @param {string} passage
 * @returns {{elements: HTMLElement[], found: number}} `found` counts the marks
 */
export function marked(html, passage) {
  const wanted = letters(passage);
  let found = 0;
  const mark = (/** @type {string} */ text) => {
    found += 1;
    return h("mark", { text });
  };
  const sure = (/** @type {string} */ text) => letters(text).length >= Math.min(MIN_CHARS, wanted.length) && wanted.includes(letters(text));
  const line = (/** @type {string} */ text) => {
    if (sure(text)) return [mark(text)];
    const sentences = text.split(/(?<=[.!?…]["”’)]?)\s+/);
    return sentences.flatMap((sentence, at) => [at ? " " : "", sure(sentence) ? mark(sentence) : sentence]);
  };
  const elements = blocksOf(html).map((block) => {
    if (!block.rows) return h(block.kind === "h" ? "h3" : block.kind === "li" ? "div" : "p", { class: block.kind === "li" ? "item" : null }, line(block.text));
    const rows = block.rows.map((row, at) => {
      const used = sure(row.join(" "));
      if (used) found += 1;
      return h("tr", { class: used ? "marked" : null }, row.map((cell) => h(at ? "td" : "th", null, used ? h("mark", { text: cell }) : cell)));
    });
    return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table" }, h("table", null, h("tbody", null, rows)));
  });
  return { elements, found };
}
