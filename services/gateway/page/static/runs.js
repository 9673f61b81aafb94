// The evaluator's reports.

import { getJSON, getText } from "./api.js";
import { $, fill, h, percent } from "./dom.js";
import { report } from "./markup.js";

/** @typedef {{value: number, low: number, high: number}} Interval */

// Who clicks again before the first report is there wants the second alone.
let turn = 0;

/** @param {string} chosen a report's id, or nothing */
export async function show(chosen) {
  const mine = ++turn;
  let listed;
  try {
    listed = await getJSON("page/reports");
  } catch (error) {
    if (mine === turn) fill($("runs-list"), h("p", { class: "error", text: /** @type {Error} */ (error).message }));
    return;
  }
  if (mine !== turn) return;
  if (!listed.length) {
    fill($("runs-list"), h("p", { class: "empty" }, "No report yet. ", h("code", { text: "cragmesh eval run questions.jsonl --out out/eval/mine" }), " makes one."));
  } else fill($("runs-list"), [...new Set(listed.map((/** @type {any} */ run) => run.group))].map((group) => table(String(group), listed.filter((/** @type {any} */ run) => run.group === group), chosen)));
  await open(listed.find((/** @type {any} */ run) => run.id === chosen), mine);
}

/** @param {string} group @param {any[]} runs @param {string} chosen */
function table(group, runs, chosen) {
  const head = ["Run", "Questions", "Score", "", "Right", "Wrong", "Missing", "Median"];
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": group },
    h(
      "table",
      { class: "runs-table" },
      h("caption", { text: group }),
      h("thead", null, h("tr", null, head.map((text, at) => (text ? h("th", { scope: "col", class: at && text !== "Score" ? "number" : null, colspan: text === "Score" ? 2 : null, text }) : null)))),
      h(
        "tbody",
        null,
        runs.map((run) =>
          h(
            "tr",
            { class: run.id === chosen ? "chosen" : null },
            h("th", { scope: "row" }, h("a", { href: `#runs/${run.id}`, "aria-current": run.id === chosen ? "true" : null, text: run.name }), run.finished ? null : h("span", { class: "tag", text: "unfinished" })),
            h("td", { class: "number", text: run.questions || "" }),
            h("td", { class: "number", text: run.score ? signed(run.score.value) : "" }),
            h("td", { class: "forest-cell" }, run.score ? forest(run.score) : null),
            ...[run.accuracy, run.hallucination, run.missing].map((/** @type {Interval | null} */ share) => h("td", { class: "number", text: share ? percent(share.value, 1) : "" })),
            h("td", { class: "number", text: run.median_s === null ? "" : `${run.median_s.toFixed(1)} s` }),
          ),
        ),
      ),
    ),
  );
}

/** @param {number} value */
const signed = (value) => (value < 0 ? `−${(-value).toFixed(3)}` : `+${value.toFixed(3)}`);

/** A score's interval from -1 to 1. @param {Interval} score */
function forest(score) {
  const place = (/** @type {number} */ value) => String((Math.max(-1, Math.min(1, value)) + 1) / 2);
  const line = h("span", { class: "forest", role: "img", "aria-label": `95 % interval from ${signed(score.low)} to ${signed(score.high)}`, title: `${signed(score.low)} to ${signed(score.high)}` });
  for (const [name, value] of Object.entries({ "--low": score.low, "--high": score.high, "--at": score.value })) line.style.setProperty(name, place(value));
  return line;
}

/** @param {any} run @param {number} mine whose turn it is */
async function open(run, mine) {
  const article = $("report");
  article.hidden = !run;
  article.replaceChildren();
  if (!run) return;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches ? document.documentElement.dataset.theme !== "light" : document.documentElement.dataset.theme === "dark";
  const picture = (/** @type {string} */ name, /** @type {string} */ alt) => {
    if (!run.pictures.includes(name)) return null;
    const other = name.replace(/\.png$/, "-dark.png");
    const shown = dark && run.pictures.includes(other) ? other : name;
    return h("figure", null, h("img", { src: `page/reports/${run.id}/${shown}`, alt: `Chart: ${alt.replaceAll("-", " ")}`, loading: "lazy" }), h("figcaption", { class: "soft", text: alt.replaceAll("-", " ") }));
  };
  let shown;
  try {
    shown = report(await getText(`page/reports/${run.id}/report.md`), picture);
  } catch (error) {
    shown = h("p", { class: "error", text: /** @type {Error} */ (error).message });
  }
  if (mine !== turn) return;
  article.append(shown);
  article.focus({ preventScroll: true });
  article.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}
