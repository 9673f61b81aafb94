// Files that a visitor brings: pages, and records of CRAG's benchmark.

import { titleOf } from "./page-text.js";

/** @typedef {{page_name: string, page_url: string, page_snippet?: string, page_result: string, page_last_modified?: string}} Page */
/** @typedef {{query?: string, query_time?: string, interaction_id?: string, search_results?: Page[]}} AnyRecord */

// The gateway's own limits; said here before anything is sent.
export const MAX_PAGES = 50;
const MAX_PAGE_CHARS = 4 * 1024 * 1024;
const MAX_RECORD_BYTES = 256 * 1024 * 1024;
const MAX_RECORDS = 500;

/** A file that cannot be used; the message says why. */
export class BadFile extends Error {}

/**
 * @param {File} file
 * @returns {Promise<{page: Page} | {records: AnyRecord[]}>}
 */
export async function read(file) {
  if (/\.jsonl?$/i.test(file.name)) return { records: await records(file) };
  if (!/\.(html?|txt)$/i.test(file.name)) throw new BadFile(`${file.name}: a page's name ends in .html, .htm or .txt`);
  if (file.size > 4 * MAX_PAGE_CHARS) throw new BadFile(`${file.name} is larger than a page may be`);
  const text = decode(await file.arrayBuffer());
  if (text.includes("\0")) throw new BadFile(`${file.name} is not text`);
  if (!text.trim()) throw new BadFile(`${file.name} is empty`);
  if (text.length > MAX_PAGE_CHARS) throw new BadFile(`${file.name} is larger than a page may be`);
  return { page: page(file.name, /\.txt$/i.test(file.name) ? asHtml(text) : text) };
}

/** @param {string} name a file's @param {string} html @returns {Page} */
export function page(name, html) {
  return { page_name: titleOf(html) || name, page_url: `file:${name}`, page_result: html };
}

/** @param {ArrayBuffer} content */
function decode(content) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(content);
  } catch {
    const start = new TextDecoder("latin1").decode(content.slice(0, 4096));
    const declared = /charset\s*=\s*["']?\s*([\w.:-]{1,40})/i.exec(start)?.[1] ?? "windows-1252";
    try {
      return new TextDecoder(declared).decode(content);
    } catch {
      return new TextDecoder("windows-1252").decode(content);
    }
  }
}

/** @param {string} text */
function asHtml(text) {
  const document_ = document.implementation.createHTMLDocument("");
  for (const part of text.split(/\n\s*\n/)) {
    if (part.trim()) document_.body.appendChild(document_.createElement("p")).textContent = part;
  }
  return document_.documentElement.outerHTML;
}

/** @param {File} file @returns {Promise<AnyRecord[]>} */
async function records(file) {
  if (file.size > MAX_RECORD_BYTES) throw new BadFile(`${file.name} is too large: take a few records out of it`);
  const text = await file.text();
  /** @type {unknown[]} */
  let found;
  try {
    const whole = JSON.parse(text);
    found = Array.isArray(whole) ? whole : [whole];
  } catch {
    const lines = text.split("\n").filter((line) => line.trim()).slice(0, MAX_RECORDS);
    try {
      found = lines.map((line) => JSON.parse(line));
    } catch {
      throw new BadFile(`${file.name} is not JSON`);
    }
  }
  const usable = /** @type {AnyRecord[]} */ (found.slice(0, MAX_RECORDS).filter((item) => typeof /** @type {any} */ (item)?.query === "string"));
  if (!usable.length) throw new BadFile(`${file.name} holds no record with a query`);
  return usable;
}

/** A record's pages, as far as they are pages. @param {AnyRecord} record @returns {Page[]} */
export function pagesOf(record) {
  const results = Array.isArray(record.search_results) ? record.search_results : [];
  const text = (/** @type {unknown} */ value) => (typeof value === "string" ? value : "");
  return results.slice(0, MAX_PAGES).map((result) => ({
    page_name: text(result?.page_name),
    page_url: text(result?.page_url),
    page_snippet: text(result?.page_snippet),
    page_result: text(result?.page_result),
    page_last_modified: text(result?.page_last_modified),
  }));
}
