// Small languages as elements: Markdown's tables, the evaluator's reports, programs of the knowledge graph, expressions.

import { h } from "./dom.js";

const RULE = /^\s*\|?(\s*:?-{2,}:?\s*\|)+\s*(:?-{2,}:?\s*)?\|?\s*$/;
const MAX_ROWS = 500;

/**
 * A text in which Markdown tables become tables and the rest paragraphs.
 * @param {string} text
 * @returns {HTMLElement[]}
 */
export function prose(text) {
  const lines = text.split("\n");
  const blocks = [];
  /** @type {string[]} */
  let paragraph = [];
  const flush = () => {
    const joined = paragraph.join("\n").trim();
    if (joined) blocks.push(h("p", { class: "prose", text: joined }));
    paragraph = [];
  };
  for (let at = 0; at < lines.length; at += 1) {
    if (isRow(lines[at]) && at + 1 < lines.length && RULE.test(lines[at + 1])) {
      flush();
      let end = at + 2;
      while (end < lines.length && isRow(lines[end])) end += 1;
      blocks.push(grid(cells(lines[at]), lines.slice(at + 2, end).map(cells)));
      at = end - 1;
    } else if (lines[at].trim() === "") flush();
    else paragraph.push(lines[at]);
  }
  flush();
  return blocks;
}

/** @param {string} line */
const isRow = (line) => line.trim().startsWith("|") || (line.match(/(?<!\\)\|/g) ?? []).length > 1;

/** @param {string} line */
function cells(line) {
  const inner = line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
  return inner.split(/(?<!\\)\|/).map((cell) => unescape(cell.trim()));
}

/** @param {string} text */
const unescape = (text) => text.replace(/\\([\\`*<>|\]])/g, "$1");

/**
 * A table of texts.
 * @param {string[]} head
 * @param {string[][]} rows
 * @param {string} [caption]
 */
export function grid(head, rows, caption) {
  const shown = rows.slice(0, MAX_ROWS);
  const numeric = head.map((_, at) => at > 0 && shown.length > 0 && shown.every((row) => /^$|^[-+$€£]?\d/.test(row[at] ?? "")));
  const side = (/** @type {number} */ at) => (numeric[at] ? "number" : null);
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": caption ?? "Table" },
    h(
      "table",
      null,
      caption ? h("caption", { class: "hidden-text", text: caption }) : null,
      h("thead", null, h("tr", null, head.map((cell, at) => h(cell ? "th" : "td", { scope: cell ? "col" : null, class: side(at), text: cell })))),
      h("tbody", null, shown.map((row) => h("tr", null, head.map((_, at) => h("td", { class: side(at), text: row[at] ?? "" }))))),
    ),
    rows.length > shown.length ? h("p", { class: "soft", text: `${rows.length - shown.length} more rows` }) : null,
  );
}

/**
 * A report of the evaluator: headings, lists, tables, pictures of its own, paragraphs.
 * @param {string} text
 * @param {(name: string, alt: string) => HTMLElement | null} picture makes a picture of a file's name, or nothing
 */
export function report(text, picture) {
  const body = h("div", { class: "report-body" });
  /** @type {HTMLElement | null} */
  let pictures = null;
  for (const block of text.split(/\n{2,}/)) {
    const lines = block.trim().split("\n");
    const image = /^!\[([^\]]*)\]\(([^()\s]+)\)$/.exec(lines[0]);
    const heading = /^(#{1,3}) (.*)$/.exec(lines[0]);
    if (image) {
      pictures ??= body.appendChild(h("div", { class: "pictures" }));
      const made = picture(image[2], image[1]);
      if (made) pictures.append(made);
      continue;
    }
    if (heading) {
      // Its place on the page is below a heading of the second level.
      body.append(h(heading[1] === "#" ? "h2" : "h3", { text: unescape(heading[2]) }));
      lines.shift();
    }
    if (lines.every((line) => line.startsWith("- ")) && lines.length) {
      body.append(h("ul", { class: "facts" }, lines.map((line) => h("li", null, inline(line.slice(2))))));
    } else body.append(...prose(lines.map((line) => (isRow(line) ? line : unescape(line))).join("\n")));
  }
  return body;
}

/** Bold and code. @param {string} text */
function inline(text) {
  return text.split(/(\*\*.+?\*\*|`+ ?.+? ?`+)/).map((part) => {
    if (part.startsWith("**")) return h("strong", { text: unescape(part.slice(2, -2)) });
    if (part.startsWith("`")) return h("code", { text: part.replace(/^`+ ?| ?`+$/g, "") });
    return unescape(part);
  });
}

const TOKEN =
  /(?<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?<call>\bget_\w+)|(?<word>\b(?:sort|where|group|diff|ratio|avg|average|mean|sum|total|min|max|count|len|all|median|abs|round|pct_change|days_between|years_between|and|or)\b(?=\s*[(\s]))|(?<operator>\b(?:neq|ne|eq|ge|le|gt|lt|in|like|between|isnull|notnull)\b(?=\s*\())|(?<none>\b(?:none|null|true|false)\b)|(?<number>-?\b\d[\d,.]*%?)|(?<reference>\*\d*)/gi;

/**
 * A statement of the regularized language, or an expression, in colours.
 * @param {string} source
 */
export function program(source) {
  const code = h("code", { class: "program" });
  let from = 0;
  for (const match of source.matchAll(TOKEN)) {
    const kind = Object.entries(match.groups ?? {}).find(([, value]) => value !== undefined)?.[0];
    code.append(source.slice(from, match.index), h("span", { class: `t-${kind}`, text: match[0] }));
    from = (match.index ?? 0) + match[0].length;
  }
  code.append(source.slice(from));
  return code;
}
