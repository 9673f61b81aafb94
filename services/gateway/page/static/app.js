// The page: which view is shown, who asks, in which theme.

import { Problem, isKey, key } from "./api.js";
import { $, badge, duration, fill, h, icon, percent, say } from "./dom.js";
import * as collections from "./collections.js";
import * as health from "./health.js";
import { compared, fault, question, setBusy, setMode, setUp } from "./question.js";
import { Run } from "./run.js";
import * as runs from "./runs.js";

const VIEWS = ["ask", "compare", "collections", "runs", "health"];
const LOOK_MS = 5_000;
const UNAUTHORIZED = 401;

let view = "ask";
/** @type {Run | null} */
let current = null;
let stopped = false;

function route() {
  const [name, ...rest] = location.hash.slice(1).split("/");
  if (name && !VIEWS.includes(name)) return;
  view = name || "ask";
  const asking = view === "ask" || view === "compare";
  $("asking").hidden = !asking;
  for (const one of VIEWS) $(one).hidden = one !== view;
  for (const link of document.querySelectorAll("nav a")) {
    const here = link.getAttribute("href") === `#${view}`;
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = view === "ask" ? "Cragmesh" : `${view[0].toUpperCase()}${view.slice(1)} · Cragmesh`;
  if (asking) setMode(view === "compare");
  if (view === "runs") runs.show(rest[0] ?? "");
  if (view === "collections") collections.show(rest[0] ?? "").then(askForKey);
  if (view === "health") health.look();
  if (!rest.length) scrollTo(0, 0);
}

async function submit() {
  if (current) return;
  const asked = question();
  if (!asked) return;
  const names = compared();
  if (view === "compare" && !names.length) {
    fault("Tick at least one strategy.");
    return;
  }
  stopped = false;
  setBusy(true);
  try {
    await (view === "compare" ? compare(asked, names) : ask(asked));
  } finally {
    current = null;
    setBusy(false);
    health.look();
  }
}

/** @param {import("./question.js").Question} asked */
async function ask(asked) {
  current = new Run(asked);
  fill($("ask-run"), current.element);
  $("ask-run").scrollIntoView({ block: "nearest" });
  askForKey(await current.go());
}

/**
 * One after the other: side by side they would take each other's time.
 * @param {import("./question.js").Question} asked
 * @param {string[]} names
 */
async function compare(asked, names) {
  const all = names.map((name) => new Run({ ...asked, body: { ...asked.body, strategy: name } }, { title: name }));
  fill($("compare-summary"));
  fill($("compare-runs"), all.map((run) => run.element));
  for (const run of all) {
    if (stopped) {
      run.element.remove();
      continue;
    }
    current = run;
    const error = await run.go();
    fill($("compare-summary"), summary(asked.body.query, all));
    if (askForKey(error)) stopped = true;
  }
}

/** @param {string} query @param {Run[]} all */
function summary(query, all) {
  const rows = all.filter((run) => run.response).map((run) => {
    const response = run.response;
    const kinds = { answer: badge("done", "answer"), unknown: badge("unknown", "no answer", "degraded"), invalid_question: badge("false", "false premise") };
    return h(
      "tr",
      null,
      h("th", { scope: "row", text: response.strategy }),
      h("td", { class: "said", text: response.answer }),
      h("td", null, kinds[/** @type {keyof kinds} */ (response.kind)]),
      h("td", { class: "number", text: percent(response.confidence) }),
      h("td", { class: "number", text: duration(run.endedMs) }),
      h("td", { class: "number", text: response.usage.llm_calls }),
      h("td", { class: "number", text: (response.usage.prompt_tokens + response.usage.completion_tokens).toLocaleString("en") }),
      h("td", { class: "number", text: response.degraded.length }),
    );
  });
  if (!rows.length) return null;
  const heads = ["Strategy", "Answer", "Kind", "Sure", "Time", "Calls", "Tokens", "Missing"];
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": "Strategies side by side" },
    h("table", null, h("caption", { text: query }), h("thead", null, h("tr", null, heads.map((text, at) => h("th", { scope: "col", class: at > 2 ? "number" : null, text })))), h("tbody", null, rows)),
  );
}

/** @param {unknown} error @returns {boolean} whether a key is asked for */
function askForKey(error) {
  if (!(error instanceof Problem) || error.status !== UNAUTHORIZED) return false;
  $("key-button").hidden = false;
  $("key-dialog").showModal();
  return true;
}

function setUpKey() {
  const dialog = $("key-dialog");
  $("key-button").hidden = !key.get();
  $("key-button").addEventListener("click", () => dialog.showModal());
  $("key-cancel").addEventListener("click", () => dialog.close());
  $("key-forget").addEventListener("click", () => {
    key.set("");
    $("key").value = "";
    $("key").setCustomValidity("");
    dialog.close();
    say("The key is forgotten.");
  });
  $("key").addEventListener("input", () => {
    const value = $("key").value.trim();
    $("key").setCustomValidity(!value || isKey(value) ? "" : "A key has no spaces, and no letters or signs beyond ASCII: copy it again.");
  });
  $("key-form").addEventListener("submit", (/** @type {Event} */ event) => {
    event.preventDefault();
    key.set($("key").value.trim());
    $("key").value = "";
    dialog.close();
    if (view === "collections") route();
    else $("form").requestSubmit();
  });
}

function setUpTheme() {
  const root = document.documentElement;
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const draw = () => {
    $("theme-button").setAttribute("aria-pressed", String(dark()));
    fill($("theme-button"), icon(dark() ? "sun" : "moon"));
  };
  $("theme-button").addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try {
      localStorage.setItem("cragmesh.theme", root.dataset.theme);
    } catch {
      // Not kept then.
    }
    draw();
    if (view === "runs") route();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
}

$("page-close").addEventListener("click", () => $("page-dialog").close());
for (const dialog of document.querySelectorAll("dialog")) {
  dialog.addEventListener("click", (event) => {
    const box = dialog.getBoundingClientRect();
    const inside = event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top && event.clientY <= box.bottom;
    if (event.target === dialog && !inside) dialog.close();
  });
}
addEventListener("hashchange", route);
setUpTheme();
setUpKey();
collections.setUp();
route();
setUp({ submit, stop: () => { stopped = true; current?.stop(); } });
health.look();
setInterval(() => {
  if (document.visibilityState === "visible" && (view === "health" || !$("down").hidden)) health.look();
}, LOOK_MS);
