// One question on its way: stages as they happen against the time, then the answer and what it rests on.

import { Problem, ask } from "./api.js";
import { badge, duration, fill, h, icon, percent, plural, say } from "./dom.js";
import { details } from "./why.js";

/** @typedef {import("./question.js").Question} Question */
/** @typedef {{start_ms: number, elapsed_ms: number, queue_ms: number, inference_ms: number}} Timing */
/** @typedef {{status: string, timing: Timing, detail: string, began: number}} Stage `timing` is of all its runs, `began` of the last */

const WORDS = { started: "running", done: "done", degraded: "failed", skipped: "left out" };
/** @type {Record<string, [string, any, string]>} kind of an answer to its word, shape and tone */
const KINDS = {
  answer: ["Answer", "done", "done"],
  unknown: ["No answer found", "unknown", "degraded"],
  invalid_question: ["The question’s premise is false", "false", "false"],
};
/** @type {Record<string, string>} */
const SOURCES = {
  kg: "from the knowledge graph",
  web: "from the pages",
  public_data: "from stable records",
  model: "from the model’s memory",
  none: "no source",
};
/** What the gateway says in a word, in words. @type {Record<string, string>} */
const DETAILS = { superseded: "not needed any more: the answer stood", timeout: "took longer than it was given" };
const TICK_MS = 100;

/** A stage that runs again counts for all that it took, as in the answer's timings. @param {Timing} earlier @param {Timing} timing */
const added = (earlier, timing) => ({
  start_ms: earlier.elapsed_ms ? earlier.start_ms : timing.start_ms,
  elapsed_ms: earlier.elapsed_ms + timing.elapsed_ms,
  queue_ms: earlier.queue_ms + timing.queue_ms,
  inference_ms: earlier.inference_ms + timing.inference_ms,
});

/** Asks once and shows it. */
export class Run {
  /**
   * @param {Question} question
   * @param {{title?: string}} [options]
   */
  constructor(question, { title = "" } = {}) {
    this.question = question;
    /** @type {Map<string, Stage>} */
    this.stages = new Map();
    this.began = 0;
    this.dueAt = 0;
    this.endedMs = 0;
    this.whole = false;
    /** @type {any} */
    this.response = null;
    this.controller = new AbortController();
    this.left = h("span", { class: "left" });
    this.clock = h("div", { class: "clock-fill" });
    this.answer = h("div", { class: "answer" });
    this.list = h("ol", { class: "stages", "aria-label": "Stages" });
    this.axis = h("div", { class: "axis", "aria-hidden": "true" });
    this.zoom = h("button", { type: "button", class: "quiet small", hidden: true, "aria-pressed": "false", text: "Against the whole budget", on: { click: () => this.setWhole(!this.whole) } });
    this.more = h("div", { class: "more" });
    this.element = h(
      "article",
      { class: "run", "aria-busy": "true", "aria-label": title || "Answer" },
      title ? h("h2", { class: "run-title", text: title }) : null,
      this.answer,
      h(
        "section",
        { class: "time", "aria-label": "Where the time went" },
        h("div", { class: "time-head" }, h("h3", { text: "Time" }), this.left, h("span", { class: "grow" }), this.zoom),
        h("div", { class: "clock", "aria-hidden": "true" }, this.clock),
        this.list,
        this.axis,
        h("p", { class: "legend" }, h("span", { class: "key queue", text: "waiting in a queue" }), h("span", { class: "key inference", text: "model at work" }), h("span", { class: "key rest", text: "everything else" })),
      ),
      this.more,
    );
    fill(this.answer, h("p", { class: "thinking" }, icon("skipped"), "Waiting for its turn"));
  }

  /** Ask, and resolve when all is shown, to the error where there was one: others wait for their turn. */
  async go() {
    this.began = performance.now();
    this.dueAt = this.began + this.question.budgetMs;
    fill(this.answer, h("p", { class: "thinking" }, icon("started"), "Working on it"));
    const timer = setInterval(() => this.draw(), TICK_MS);
    this.draw();
    try {
      for await (const [name, data] of ask(this.question.body, this.controller.signal)) {
        if (name === "stage") this.heard(data);
        else if (name === "answer") this.answered(data);
      }
    } catch (error) {
      this.failed(error);
      return error;
    } finally {
      clearInterval(timer);
      this.element.setAttribute("aria-busy", "false");
      this.draw();
    }
    return null;
  }

  stop() {
    this.controller.abort();
  }

  /** @param {any} event see `StageEvent` */
  heard(event) {
    const now = performance.now();
    this.dueAt = now + event.left_ms;
    const known = this.stages.get(event.stage);
    const began = event.status === "started" ? now - this.began : (known?.began ?? now - this.began);
    const timing = known ? added(known.timing, event.timing) : event.timing;
    this.stages.set(event.stage, { status: event.status, timing, detail: event.detail, began });
    this.ended(event.timing);
    if (event.status !== "started") say(`${event.stage}: ${WORDS[/** @type {keyof WORDS} */ (event.status)] ?? event.status}`);
    this.draw();
  }

  /** @param {any} response see `AnswerResponse` */
  answered(response) {
    this.response = response;
    for (const [name, timing] of Object.entries(response.timings)) {
      const known = this.stages.get(name);
      this.stages.set(name, { status: known?.status ?? "done", timing: /** @type {Timing} */ (timing), detail: known?.detail ?? "", began: 0 });
      if (!known) this.ended(/** @type {Timing} */ (timing));
    }
    const [word, shape, tone] = KINDS[response.kind] ?? [response.kind, "unknown", "skipped"];
    const usage = response.usage;
    const taken = response.classification;
    fill(
      this.answer,
      h("div", { class: "kind" }, badge(shape, word, tone)),
      h("p", { class: `answer-text tone-${tone}`, text: response.answer }),
      h(
        "ul",
        { class: "meta" },
        h(
          "li",
          { class: "confidence" },
          h("span", { class: "meter", role: "meter", "aria-label": "Confidence", "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": Math.round(response.confidence * 100) }, size(h("span", { class: "meter-fill" }), response.confidence)),
          `${percent(response.confidence)} sure`,
        ),
        h("li", { text: SOURCES[response.source] ?? response.source }),
        h("li", { text: `in ${duration(this.endedMs)}` }),
        h("li", { text: `by ${response.strategy}` }),
        taken ? h("li", { text: [taken.domain, taken.dynamism, taken.question_type].filter((label) => label !== "unknown").join(", ").replaceAll("_", " ") }) : null,
        h("li", { text: `${plural(usage.llm_calls, "model call")}, ${usage.prompt_tokens.toLocaleString("en")} + ${usage.completion_tokens.toLocaleString("en")} tokens` }),
      ),
    );
    fill(this.more, details(response, this.question.pages));
    this.zoom.hidden = false;
    say(`${word}: ${response.answer}`);
  }

  /** @param {unknown} error */
  failed(error) {
    for (const stage of this.stages.values()) if (stage.status === "started") stage.status = "skipped";
    if (/** @type {Error} */ (error).name === "AbortError") {
      fill(this.answer, h("div", { class: "kind" }, badge("skipped", "Stopped")), h("p", { class: "soft", text: "The gateway was told to stop as well." }));
      return;
    }
    if (!(error instanceof Problem)) reportError(error);
    const problem = error instanceof Problem ? error : new Problem({ title: "The answer cannot be shown", detail: "That is a fault of this page; its console says more." });
    fill(
      this.answer,
      h("div", { class: "kind" }, badge("bad", problem.status ? `${problem.status} ${problem.title}` : problem.title)),
      h("p", { text: problem.detail }),
      problem.errors.length ? h("ul", null, problem.errors.map((item) => h("li", null, h("code", { text: item.field || "body" }), ` ${item.message}${item.limit && !item.message.includes(item.limit) ? ` (${item.limit})` : ""}`))) : null,
      problem.requestId ? h("p", { class: "soft", text: `Request ${problem.requestId}` }) : null,
    );
    say(`${problem.title}. ${problem.detail}`);
  }

  /** Noted run by run: the sum of a stage's runs says nothing of when the last one ended. @param {Timing} timing */
  ended(timing) {
    this.endedMs = Math.max(this.endedMs, timing.start_ms + timing.elapsed_ms);
  }

  /** @param {boolean} whole */
  setWhole(whole) {
    this.whole = whole;
    this.zoom.setAttribute("aria-pressed", String(whole));
    this.draw();
  }

  draw() {
    const now = performance.now();
    const running = this.element.getAttribute("aria-busy") === "true" && !this.response;
    const elapsed = running ? now - this.began : this.endedMs;
    const leftMs = running ? Math.max(0, this.dueAt - now) : Math.max(0, this.question.budgetMs - elapsed);
    const budget = this.question.budgetMs;
    this.left.textContent = running ? `${(leftMs / 1000).toFixed(1)} s left of ${budget / 1000} s` : `${duration(elapsed)} of ${budget / 1000} s`;
    size(this.clock, running ? leftMs / budget : elapsed / budget);
    this.clock.classList.toggle("low", leftMs < budget / 5);
    const scale = this.whole ? budget : running ? Math.min(budget, Math.max(1_000, elapsed * 1.25)) : Math.max(elapsed, 1);
    const rows = [...this.stages].map(([name, stage]) => this.row(name, stage, elapsed, scale));
    fill(this.list, rows);
    fill(this.axis, h("span", { text: "0" }), h("span", { text: duration(scale / 2) }), h("span", { text: duration(scale) }));
    this.axis.hidden = !rows.length;
  }

  /** @param {string} name @param {Stage} stage @param {number} elapsed @param {number} scale */
  row(name, stage, elapsed, scale) {
    const on = stage.status === "started";
    const earlier = stage.timing.elapsed_ms;
    const start = on && !earlier ? stage.began : stage.timing.start_ms;
    const took = earlier + (on ? Math.max(0, elapsed - stage.began) : 0);
    const queue = Math.min(took, stage.timing.queue_ms);
    const inference = Math.min(took - queue, stage.timing.inference_ms);
    const word = WORDS[/** @type {keyof WORDS} */ (stage.status)] ?? stage.status;
    const parts = [queue >= 1 ? `${duration(queue)} waiting` : "", inference >= 1 ? `${duration(inference)} model` : ""].filter(Boolean).join(", ");
    const bar = h("span", { class: "bar" }, size(h("span", { class: "part queue" }), took ? queue / took : 0), size(h("span", { class: "part inference" }), took ? inference / took : 0));
    bar.style.setProperty("--from", String(Math.min(1, start / scale)));
    bar.style.setProperty("--long", String(Math.min(1, took / scale)));
    return h(
      "li",
      { class: `stage is-${stage.status}`, "data-stage": name, "data-status": stage.status },
      h("span", { class: "stage-name" }, icon(/** @type {any} */ (stage.status)), h("span", { text: name.replaceAll("_", " ") }), h("span", { class: "hidden-text", text: `, ${word}` })),
      h("span", { class: "track", "aria-hidden": "true" }, took || on ? bar : null),
      h("span", { class: "took", text: took || on ? duration(took) : "" }),
      parts || stage.detail ? h("span", { class: "stage-detail", text: [parts, DETAILS[stage.detail] ?? stage.detail].filter(Boolean).join(" · ") }) : null,
    );
  }
}

/** @template {HTMLElement} E @param {E} element @param {number} share from 0 to 1 */
export function size(element, share) {
  element.style.setProperty("--share", String(Math.max(0, Math.min(1, share))));
  return element;
}
