// How the services are, and a word on the front page about those that are not there.

import { getJSON } from "./api.js";
import { $, badge, duration, fill, h } from "./dom.js";

/** @type {Record<string, string>} */
const WITHOUT = {
  retriever: "pages cannot be read",
  reranker: "passages keep the retriever’s order",
  classifier: "questions are taken as open and of unknown kind",
  kg: "the knowledge graph is not asked",
  searcher: "the web is not searched",
  generator: "nearly every answer will be “i don’t know”",
};
const BREAKERS = { open: "open: left alone for a moment", "half-open": "half-open: the next call decides", closed: "closed" };

/** Ask how the services are, and say so. */
export async function look() {
  let services;
  try {
    ({ services } = await getJSON("services"));
  } catch (error) {
    warn([h("strong", { text: "The gateway cannot be reached. " }), "This page goes on when it is back."]);
    fill($("services"), h("li", { class: "service" }, h("h2", { text: "gateway" }), badge("bad", "cannot be reached")));
    return;
  }
  // A mesh without a searcher has no switch for it.
  $("search-field").hidden = !services.some((/** @type {any} */ service) => service.name === "searcher");
  const down = services.filter((/** @type {any} */ service) => !service.ready && service.name !== "gateway");
  warn(down.length ? down.map((/** @type {any} */ service) => h("span", { class: "down" }, badge(service.reachable ? "degraded" : "bad", `${service.name} is ${service.reachable ? "not ready" : "down"}`), ` ${WITHOUT[service.name] ?? ""}`)) : []);
  fill($("services"), services.map(card));
}

/** @param {(Node | string)[]} children */
function warn(children) {
  $("down").hidden = !children.length;
  $("health-dot").hidden = !children.length;
  // Said once, not at every look.
  const text = children.map((child) => (child instanceof Node ? child.textContent : child)).join("");
  if ($("down").textContent !== text) fill($("down"), children);
}

/** @param {any} service see `ServiceHealth` */
function card(service) {
  const state = service.ready ? badge("done", "ready") : service.reachable ? badge("degraded", "not ready") : badge("bad", "down");
  const number = (/** @type {number | null} */ value) => (value === null || value === undefined ? "" : String(value));
  const busy = [number(service.in_flight) && `${service.in_flight} in flight`, number(service.waiting) && `${service.waiting} waiting`, number(service.limit) && `${service.limit} at most`];
  /** @type {[string, string][]} */
  const facts = [
    ["Model", service.model],
    ["Device", [service.device, service.precision].filter(Boolean).join(", ")],
    ["Queue", busy.filter(Boolean).join(", ")],
    ["Breaker", BREAKERS[/** @type {keyof BREAKERS} */ (service.breaker)] ?? service.breaker],
    ["Answered", service.answered_ms ? `in ${duration(service.answered_ms)}` : ""],
    ["Says", service.detail],
  ];
  return h(
    "li",
    { class: `service ${service.ready ? "" : "is-down"}`, "data-service": service.name, "data-ready": String(service.ready) },
    h("div", { class: "service-head" }, h("h2", { text: service.name }), state),
    h("dl", null, facts.filter(([, text]) => text).map(([name, text]) => h("div", null, h("dt", { text: name }), h("dd", { text })))),
    service.ready || !WITHOUT[service.name] ? null : h("p", { class: "soft", text: `Without it ${WITHOUT[service.name]}.` }),
  );
}
