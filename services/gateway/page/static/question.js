// The form: what is asked, of which pages, how, and within which time.

import { getJSON } from "./api.js";
import { $, fill, h, icon, plural } from "./dom.js";
import { BadFile, MAX_PAGES, page, pagesOf, read } from "./files.js";

/** @typedef {import("./files.js").Page} Page */
/** @typedef {{budget_s: number} & Record<string, any>} Body see `AnswerRequest` */
/** @typedef {{body: Body, pages: Page[], budgetMs: number}} Question */

// Of files that are left out; a folder may hold thousands.
const MAX_NAMED = 10;

/** @type {Page[]} */
let pages = [];
/** @type {import("./files.js").AnyRecord[]} */
let records = [];
let interaction = "";
let comparing = false;
/** @type {{name: string, summary: string, default: boolean}[]} */
let strategies = [];

/** @param {{submit: () => void, stop: () => void}} on */
export async function setUp(on) {
  $("form").addEventListener("submit", (/** @type {Event} */ event) => {
    event.preventDefault();
    on.submit();
  });
  $("stop").addEventListener("click", on.stop);
  $("query").addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    $("form").requestSubmit();
  });
  $("query").addEventListener("input", () => fault(""));
  disclose("pages");
  disclose("options");
  $("budget").addEventListener("input", () => ($("budget-out").textContent = `${Number($("budget").value)} s`));
  $("strategy").addEventListener("change", describe);
  $("files").addEventListener("change", async () => {
    await take([...$("files").files]);
    $("files").value = "";
  });
  $("record-select").addEventListener("change", () => fault(useRecord(records[Number($("record-select").value)])));
  const drop = $("drop");
  for (const name of ["dragover", "dragleave", "drop"]) {
    drop.addEventListener(name, (/** @type {DragEvent} */ event) => {
      event.preventDefault();
      drop.classList.toggle("over", name === "dragover");
      if (name === "drop") take([...(event.dataTransfer?.files ?? [])]);
    });
  }
  listPages();
  await Promise.all([loadStrategies(), loadExamples()]);
}

/** @param {boolean} compare */
export function setMode(compare) {
  comparing = compare;
  $("strategies").hidden = !compare;
  $("strategy-field").hidden = compare;
  $("submit").textContent = compare ? "Compare" : "Ask";
  $("asking-title").textContent = compare ? "One question, several strategies" : "What do you want to know?";
  $("asking-lead").hidden = compare;
}

/** @param {boolean} busy */
export function setBusy(busy) {
  $("submit").disabled = busy;
  $("stop").hidden = !busy;
  if (busy) {
    // What comes is what matters now.
    $("examples").open = false;
    $("asking-lead").hidden = true;
  }
  for (const button of $("examples").querySelectorAll("button")) button.disabled = busy;
}

/** Say what is wrong with the form; nothing hides it. @param {string} text */
export function fault(text) {
  $("form-error").hidden = !text;
  $("form-error").textContent = text;
  $("query").setAttribute("aria-invalid", String(Boolean(text)));
}

/** What the form asks; null where it asks nothing yet. @returns {Question | null} */
export function question() {
  const query = $("query").value.trim();
  if (!query) {
    fault("Write a question first.");
    $("query").focus();
    return null;
  }
  fault("");
  const budget = Number($("budget").value);
  /** @type {Body} */
  const body = { query, budget_s: budget, trace: $("trace").checked };
  if (pages.length) body.search_results = pages;
  if ($("query-time").value.trim()) body.query_time = $("query-time").value.trim();
  if ($("collection").value.trim()) body.collection = $("collection").value.trim();
  if ($("search").checked && !$("search-field").hidden) body.search = true;
  if (interaction) body.interaction_id = interaction;
  if (!comparing && $("strategy").value) body.strategy = $("strategy").value;
  return { body, pages: [...pages], budgetMs: budget * 1000 };
}

/** The strategies that are ticked. @returns {string[]} */
export function compared() {
  return [...$("strategies").querySelectorAll("input:checked")].map((input) => /** @type {HTMLInputElement} */ (input).value);
}

/** @param {"pages" | "options"} name @param {boolean} [open] */
function disclose(name, open) {
  const [button, panel] = [$(`${name}-button`), $(`${name}-panel`)];
  if (open === undefined) {
    button.addEventListener("click", () => disclose(name, panel.hidden));
    return;
  }
  panel.hidden = !open;
  button.setAttribute("aria-expanded", String(open));
}

async function loadStrategies() {
  try {
    strategies = (await getJSON("strategies")).strategies;
  } catch {
    return;
  }
  const chosen = strategies.find((strategy) => strategy.default)?.name ?? "";
  fill($("strategy"), strategies.map((item) => h("option", { value: item.name, selected: item.name === chosen, text: item.default ? `${item.name} (default)` : item.name })));
  describe();
  const ticked = new Set([chosen, strategies.find((item) => item.name === "naive-rag")?.name]);
  $("strategies").append(
    ...strategies.map((item) =>
      h("label", { class: "chip", title: item.summary }, h("input", { type: "checkbox", value: item.name, checked: ticked.has(item.name) }), h("span", { text: item.name })),
    ),
  );
}

function describe() {
  $("strategy-help").textContent = strategies.find((item) => item.name === $("strategy").value)?.summary ?? "";
}

async function loadExamples() {
  /** @type {string[]} */
  let questions;
  try {
    questions = await getJSON("page/examples.json");
  } catch {
    return;
  }
  const buttons = questions.map((text) => h("li", null, h("button", { type: "button", text, on: { click: () => useExample(text) } })));
  fill($("examples").querySelector("ul"), buttons);
  $("examples").hidden = !questions.length;
}

/** @param {string} text */
async function useExample(text) {
  try {
    const shipped = await getJSON("page/example-pages.json");
    pages = Object.entries(shipped).map(([name, html]) => page(name, String(html)));
  } catch (error) {
    fault(/** @type {Error} */ (error).message);
    return;
  }
  forgetRecords();
  $("query").value = text;
  $("query-time").value = "";
  listPages();
  $("form").requestSubmit();
}

/** @param {File[]} files */
async function take(files) {
  const refused = [];
  const over = [];
  for (const file of files) {
    try {
      const found = await read(file);
      if ("records" in found) refused.push(useRecords(found.records));
      else if (pages.length < MAX_PAGES) pages = [...pages, found.page];
      else over.push(file.name);
    } catch (error) {
      if (!(error instanceof BadFile)) throw error;
      refused.push(error.message);
    }
  }
  if (over.length) refused.push(`${over.slice(0, MAX_NAMED).join(", ")}${over.length > MAX_NAMED ? ` and ${over.length - MAX_NAMED} more` : ""}: left out, since a question takes ${MAX_PAGES} pages`);
  fault(refused.filter(Boolean).join("; "));
  disclose("pages", true);
  listPages();
}

/** @param {import("./files.js").AnyRecord[]} found @returns {string} see `useRecord` */
function useRecords(found) {
  records = found;
  $("record").hidden = found.length < 2;
  fill($("record-select"), found.map((record, at) => h("option", { value: at, text: `${at + 1}. ${record.query?.slice(0, 100)}` })));
  return useRecord(found[0]);
}

/** @param {import("./files.js").AnyRecord} record @returns {string} what of it is left out, where something is */
function useRecord(record) {
  pages = pagesOf(record);
  interaction = typeof record.interaction_id === "string" ? record.interaction_id : "";
  $("query").value = record.query ?? "";
  $("query-time").value = typeof record.query_time === "string" ? record.query_time : "";
  listPages();
  const over = (Array.isArray(record.search_results) ? record.search_results.length : 0) - pages.length;
  return over > 0 ? `${plural(over, "page")} of the record: left out, since a question takes ${MAX_PAGES}` : "";
}

function forgetRecords() {
  records = [];
  interaction = "";
  $("record").hidden = true;
}

function listPages() {
  $("pages-count").hidden = !pages.length;
  $("pages-count").textContent = pages.length ? String(pages.length) : "";
  $("pages-button").setAttribute("aria-label", pages.length ? `Pages: ${pages.length}` : "Pages");
  const remove = (/** @type {number} */ at) => {
    pages = pages.filter((_, index) => index !== at);
    listPages();
    ($("pages").querySelector("button") ?? $("files")).focus();
  };
  const rows = pages.map((item, at) =>
    h(
      "li",
      null,
      h("span", { class: "page-name", text: item.page_name || `Page ${at + 1}` }),
      h("span", { class: "soft", text: `${plural(Math.ceil(item.page_result.length / 1000), "kB").replace("kBs", "kB")}` }),
      h("button", { type: "button", class: "quiet square", "aria-label": `Remove ${item.page_name || `page ${at + 1}`}`, on: { click: () => remove(at) } }, icon("remove")),
    ),
  );
  fill($("pages"), rows);
  if (pages.length > 1) $("pages").append(h("li", null, h("button", { type: "button", class: "quiet", text: "Remove all", on: { click: () => { pages = []; forgetRecords(); listPages(); } } })));
}
