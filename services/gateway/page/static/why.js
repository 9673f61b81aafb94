// What an answer rests on: passages, the knowledge graph's program, calculations, what was missing, prompts and replies.

import { $, badge, duration, fill, h, icon, percent, plural } from "./dom.js";
import { grid, program, prose } from "./markup.js";
import { marked } from "./page-text.js";

/** @typedef {import("./files.js").Page} Page */

/** @type {Record<string, string>} */
const SOURCES = { web: "page", kg: "knowledge graph", public_data: "stable record", calculator: "calculation", model: "the model’s memory" };
/** @type {Record<string, [any, string, string]>} status of a statement to shape, tone and words */
const STATUSES = {
  ok: ["done", "done", "facts found"],
  empty: ["skipped", "skipped", "nothing known of that"],
  no_entity: ["unknown", "degraded", "no such name"],
  ambiguous: ["unknown", "degraded", "several names alike"],
  no_event: ["skipped", "skipped", "none in that time"],
  unknown_key: ["bad", "bad", "no such key"],
  stale: ["degraded", "degraded", "data ends before"],
  parse_error: ["bad", "bad", "not the language"],
  timeout: ["bad", "bad", "too slow"],
  no_program: ["skipped", "skipped", "no function fits"],
};
const MODES = { rules: "written by rules", program: "written by the model", "function-calling": "written by the model as calls", auto: "" };
const MAX_FACT_ROWS = 100;
// Longer passages are folded.
const CLAMPED_CHARS = 420;
const CLAMPED_LINES = 5;

/**
 * @param {any} response see `AnswerResponse`
 * @param {Page[]} pages as they were sent
 */
export function details(response, pages) {
  const calculations = response.citations.filter((/** @type {any} */ citation) => citation.source === "calculator");
  const citations = response.citations.filter((/** @type {any} */ citation) => citation.source !== "calculator");
  return [
    response.candidates?.length ? candidates(response) : null,
    citations.length ? panel("It rests on", h("ol", { class: "citations" }, citations.map((/** @type {any} */ citation) => cited(citation, pages)))) : null,
    calculations.length ? panel("Calculated", h("ul", { class: "calculations" }, calculations.map((/** @type {any} */ item) => h("li", null, program(item.text))))) : null,
    response.kg ? graph(response.kg) : null,
    response.degraded.length ? panel("What was missing", missing(response.degraded)) : null,
    response.trace ? trace(response.trace) : null,
    h("p", { class: "soft request", text: `Request ${response.request_id}` }),
  ];
}

/** @param {string} title @param {...any} children */
function panel(title, ...children) {
  return h("section", { class: "why", "aria-label": title }, h("h3", { text: title }), children);
}

/** What passages say that was not sure enough to be the answer. @param {any} response */
function candidates(response) {
  const several = response.candidates.length > 1;
  return panel(
    several ? "Not sure enough to answer; these passages say" : "Not sure enough to answer; this passage says",
    h(
      "ol",
      { class: "citations candidates" },
      response.candidates.map((/** @type {any} */ item) => {
        const citation = response.citations[item.citation];
        // Offsets count characters, and a script's strings do not.
        const letters = [...item.passage];
        const [before, words, after] = [letters.slice(0, item.start), letters.slice(item.start, item.end), letters.slice(item.end)].map((part) => part.join(""));
        return h(
          "li",
          { class: "citation" },
          h("div", { class: "citation-head" }, h("h4", { text: item.span }), h("span", { class: "soft", text: `${percent(item.probability)} likely` }), citation?.page_name ? h("span", { class: "soft", text: citation.page_name }) : null),
          h("div", { class: "excerpt" }, h("p", null, before, h("mark", { text: words }), after)),
        );
      }),
    ),
  );
}

/** @param {string} title @param {...any} children */
function folded(title, ...children) {
  return h("details", { class: "why" }, h("summary", null, h("h3", { text: title })), children);
}

/** @param {any} citation @param {Page[]} pages */
function cited(citation, pages) {
  const page = citation.source === "web" ? pages[citation.page] : undefined;
  const name = citation.page_name || citation.document || (page ? `Page ${citation.page + 1}` : (SOURCES[citation.source] ?? citation.source));
  const kind = citation.document ? "document of the collection" : (SOURCES[citation.source] ?? citation.source);
  const opens = page?.page_result ? () => openPage(page, citation) : citation.document ? () => openDocument(citation) : null;
  const long = citation.text.length > CLAMPED_CHARS || citation.text.split("\n").length > CLAMPED_LINES;
  const text = h("div", { class: long ? "excerpt clamp" : "excerpt" }, prose(citation.text));
  const toggle = h("button", { type: "button", class: "quiet small", "aria-expanded": "false", text: "Show all of it" });
  toggle.addEventListener("click", () => {
    const open = text.classList.toggle("clamp");
    toggle.textContent = open ? "Show all of it" : "Show less";
    toggle.setAttribute("aria-expanded", String(!open));
  });
  return h(
    "li",
    { class: "citation" },
    h("div", { class: "citation-head" }, h("h4", { text: citation.page_number ? `${name}, p. ${citation.page_number}` : name }), name === kind ? null : h("span", { class: "tag", text: kind }), citation.score ? h("span", { class: "soft", text: `relevance ${citation.score.toFixed(2)}` }) : null),
    citation.page_url ? h("p", { class: "url soft", text: citation.page_url }) : null,
    text,
    h("div", { class: "buttons" }, opens ? h("button", { type: "button", class: "small open-page", text: page?.page_result ? "Read it in the page" : "Read the passage", on: { click: opens } }) : null, long ? toggle : null),
  );
}

/** @param {Page} page @param {any} citation */
function openPage(page, citation) {
  const { elements, found } = marked(page.page_result, citation.text);
  const title = page.page_name || citation.page_name || `Page ${citation.page + 1}`;
  const note = found ? "What the model was shown is marked." : "The passage is not to be found word for word in the page’s text; it stands first, as the model was shown it.";
  read(title, note, [...(found ? [] : [passage(citation)]), ...elements]);
}

/** Only the collection has the whole document, and the gateway hands out no more than it cites. @param {any} citation */
function openDocument(citation) {
  const named = citation.page_name && citation.page_name !== citation.document;
  const title = named ? `${citation.page_name} (${citation.document})` : citation.document;
  read(title, "This is the passage that the model was shown; the collection holds the rest of the document.", [passage(citation)]);
}

/** @param {any} citation */
const passage = (citation) => h("blockquote", { class: "prose" }, h("mark", { text: citation.text }));

/** @param {string} title @param {string} note @param {HTMLElement[]} elements */
function read(title, note, elements) {
  $("page-title").textContent = title;
  $("page-note").textContent = note;
  fill($("page-text"), elements);
  $("page-dialog").showModal();
  $("page-text").scrollTop = 0;
  $("page-text").querySelector("mark")?.scrollIntoView({ block: "center" });
  $("page-text").focus();
}

/** @param {any} kg see `KgResponse` */
function graph(kg) {
  const about = [MODES[/** @type {keyof MODES} */ (kg.mode)], kg.repaired ? "at the second attempt" : "", kg.as_of ? `knows up to ${kg.as_of}` : ""];
  const lacking = kg.degraded.length ? missing(kg.degraded) : null;
  return panel(
    "Knowledge graph",
    h("p", { class: "kg-head" }, status(kg.status), h("span", { class: "soft", text: about.filter(Boolean).join(", ") })),
    kg.statements.length ? h("ol", { class: "statements" }, kg.statements.map(statement)) : kg.program ? h("pre", null, program(kg.program)) : null,
    lacking,
  );
}

/** @param {string} name */
function status(name) {
  const [shape, tone, words] = STATUSES[name] ?? ["unknown", "skipped", name];
  return badge(shape, words, tone);
}

/** @param {any} item see `KgStatement` */
function statement(item) {
  const rows = json(item.rows_json);
  const value = item.value_json ? json(item.value_json) : null;
  const notes = [...item.notes, ...item.windows.map((/** @type {string} */ text) => `time: ${text}`)];
  for (const entity of item.entities) {
    if (entity.surface) notes.push(`“${entity.name}” was taken for ${entity.surface}${entity.kind ? ` (${entity.kind})` : ""}: ${entity.how}, ${percent(entity.score)}`);
  }
  return h(
    "li",
    { class: "statement", "data-status": item.status },
    h("div", { class: "statement-head" }, h("pre", { tabindex: "0", role: "group", "aria-label": "Statement" }, program(item.source)), status(item.status)),
    item.text ? h("p", { class: "prose", text: item.text }) : null,
    value !== null ? h("p", null, "Value: ", h("code", { text: typeof value === "string" ? value : JSON.stringify(value) })) : null,
    item.error ? h("p", { class: "error", text: item.error }) : null,
    item.expected.length ? h("p", { class: "soft", text: `Would have been right: ${item.expected.join(", ")}` }) : null,
    notes.length ? h("ul", { class: "notes soft" }, notes.map((text) => h("li", { text }))) : null,
    Array.isArray(rows) && rows.length ? h("details", null, h("summary", { text: plural(item.row_count || rows.length, "row") }), facts(rows)) : null,
  );
}

/** @param {any[]} rows */
function facts(rows) {
  const shown = rows.slice(0, MAX_FACT_ROWS).filter((row) => row && typeof row === "object");
  const head = [...new Set(shown.flatMap((row) => Object.keys(row)))];
  const cell = (/** @type {any} */ value) => (value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value));
  return grid(head, shown.map((row) => head.map((name) => cell(row[name]))), "Facts");
}

/** @param {string} text @returns {any} */
function json(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** @param {any[]} degraded */
function missing(degraded) {
  return h(
    "ul",
    { class: "missing" },
    degraded.map((item) => h("li", null, icon(item.reason === "skipped" ? "skipped" : "degraded"), h("strong", { text: item.stage.replace(":", " ") }), ` ${item.reason.replaceAll("_", " ")}`, item.detail ? h("span", { class: "soft", text: ` ${item.detail}` }) : null)),
  );
}

/** @param {any} recorded see `Trace` */
function trace(recorded) {
  const cut = recorded.omitted_chars || recorded.omitted_events ? `${plural(recorded.omitted_events, "event")} and ${plural(recorded.omitted_chars, "character")} were left out.` : "";
  return folded("How it came about", h("ol", { class: "trace" }, recorded.events.map(event)), cut ? h("p", { class: "soft", text: cut }) : null);
}

/** @param {any} item see `TraceEvent` */
function event(item) {
  const tokens = item.prompt_tokens ? `${item.prompt_tokens} + ${item.completion_tokens} tokens` : "";
  const took = item.elapsed_ms ? duration(item.elapsed_ms) : "";
  const text = (/** @type {string} */ label, /** @type {string} */ content) => h("div", { class: "message" }, h("span", { class: "tag", text: label }), h("pre", { tabindex: "0", role: "group", "aria-label": label, text: content }));
  const body = item.messages.length
    ? h("details", null, h("summary", { text: "Prompt and reply" }), item.messages.map((/** @type {any} */ message) => text(message.role, message.content)), item.constraint ? text("constraint", item.constraint) : null, text("reply", item.reply || "(none)"))
    : null;
  return h(
    "li",
    { class: `event kind-${item.kind}` },
    h("div", { class: "event-head" }, h("span", { class: "at", text: duration(item.at_ms) }), h("strong", { text: item.step }), h("span", { class: "tag", text: item.kind }), h("span", { class: "soft", text: [took, tokens].filter(Boolean).join(", ") })),
    item.detail ? h("p", { class: "prose", text: item.detail }) : null,
    body,
  );
}
