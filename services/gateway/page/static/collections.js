// The collections, their documents, upload and removal.

import { Problem, getJSON, remove, upload } from "./api.js";
import { $, badge, fill, h, plural, say } from "./dom.js";

/** @type {Record<string, string>} */
const MEDIA = {
  html: "text/html", htm: "text/html", xhtml: "application/xhtml+xml", md: "text/markdown", markdown: "text/markdown", txt: "text/plain",
  pdf: "application/pdf", epub: "application/epub+zip", eml: "message/rfc822",
  docx: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  pptx: "application/vnd.openxmlformats-officedocument.presentationml.presentation",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
};
const LISTED = 50;
const POLL_MS = 1_000;
const UNDERWAY = ["waiting", "writing"];
/** @type {Record<string, [any, string]>} */
const STATES = { complete: ["done", "complete"], waiting: ["started", "waiting"], writing: ["started", "being written"], interrupted: ["degraded", "interrupted: send it again"], failed: ["bad", "cannot be read"] };

// Who opens another collection meanwhile wants that one alone.
let turn = 0;
let shown = "";

/** @param {string} name @param {string} id */
function place(name, id) {
  // A browser would resolve it to the collection.
  if (id === "." || id === "..") throw new Problem({ title: "No address", detail: `The id ${id} is read as another place: move the document to another id by POST collections/${name}/moves.` });
  return `collections/${name}/documents/${encodeURIComponent(id)}`;
}

/** @param {string} chosen a collection's name, or nothing @returns {Promise<unknown>} what went wrong */
export async function show(chosen) {
  const mine = ++turn;
  shown = chosen;
  $("uploads").replaceChildren();
  try {
    const { collections } = await getJSON("collections");
    if (mine !== turn) return undefined;
    fill($("collections-list"), collections.length ? table(collections, chosen) : h("p", { class: "empty" }, "No collection yet. ", h("code", { text: "cragmesh index FOLDER --collection notes" }), " makes one."));
    const known = collections.some((/** @type {any} */ one) => one.name === chosen);
    $("documents").hidden = !known;
    if (!known) return undefined;
    $("documents-title").textContent = chosen;
    fill($("documents-rows"));
    await more("", mine);
  } catch (error) {
    if (mine === turn) fill($("collections-list"), h("p", { class: "error", text: error instanceof Problem ? `${error.title}. ${error.detail}` : String(error) }));
    return error;
  }
  return undefined;
}

/** @param {any[]} collections @param {string} chosen */
function table(collections, chosen) {
  const rows = collections.map((one) => h("tr", { class: one.name === chosen ? "chosen" : null }, h("th", { scope: "row" }, h("a", { href: `#collections/${one.name}`, "aria-current": one.name === chosen ? "true" : null, text: one.name })), h("td", { class: "number", text: one.documents.toLocaleString("en") }), h("td", { class: "number", text: one.points.toLocaleString("en") })));
  const heads = ["Collection", "Documents", "Passages"];
  return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Collections" }, h("table", null, h("thead", null, h("tr", null, heads.map((text, at) => h("th", { scope: "col", class: at ? "number" : null, text })))), h("tbody", null, rows)));
}

/** @param {string} after @param {number} mine whose turn it is */
async function more(after, mine) {
  const { documents, next } = await getJSON(`collections/${shown}/documents?limit=${LISTED}&after=${encodeURIComponent(after)}`);
  if (mine !== turn) return;
  $("documents-rows").append(...documents.map(row));
  const count = $("documents-rows").children.length;
  $("documents-count").textContent = next ? `The first ${plural(count, "document")}` : plural(count, "document");
  $("documents-more").hidden = !next;
  $("documents-more").onclick = () => more(next, mine);
}

/** @param {any} item see `DocumentInfo` */
function row(item) {
  const name = item.title || item.url || item.id;
  const [shape, word] = STATES[item.state] ?? ["unknown", item.state];
  const button = h("button", { type: "button", class: "quiet", "aria-label": `Remove ${name}`, text: "Remove" });
  const line = h("tr", { "data-id": item.id }, h("th", { scope: "row" }, name, item.url && item.url !== name ? h("span", { class: "url soft", text: ` ${item.url}` }) : null), h("td", { text: item.format }), h("td", { class: "number", text: item.pages || "" }), h("td", { class: "number", text: item.passages }), h("td", null, badge(shape, word)), h("td", null, button));
  const collection = shown;
  button.addEventListener("click", async () => {
    // The first click asks, the second one does it.
    if (button.textContent === "Remove") {
      button.textContent = "Really remove?";
      button.setAttribute("aria-label", `Really remove ${name}?`);
      return;
    }
    try {
      await remove(place(collection, item.id));
      line.remove();
      say(`${name} is removed.`);
    } catch (error) {
      button.textContent = error instanceof Problem ? `${error.title} ${error.detail}` : String(error);
    }
  });
  return line;
}

/** Send files one after the other, each with its progress. @param {FileList | File[]} files */
async function send(files) {
  const collection = shown;
  for (const file of [...files]) {
    const state = h("span", { class: "soft", text: "waits" });
    const bar = /** @type {HTMLProgressElement} */ (h("progress", { max: 1, value: 0, "aria-label": `Upload of ${file.name}` }));
    $("uploads").append(h("li", null, h("span", { class: "page-name", text: file.name }), bar, state));
    try {
      const kind = MEDIA[file.name.split(".").pop()?.toLowerCase() ?? ""];
      if (!kind) throw new Problem({ title: "No kind of document that is known" });
      const about = new URLSearchParams({ url: `file:${file.name}`, source: "page", wait_s: "5" });
      const id = `page:${file.name}`.slice(0, 200);
      let info = await upload(`${place(collection, id)}?${about}`, file, kind, (share) => {
        bar.value = share;
        state.textContent = share < 1 ? "is sent" : "is read";
      });
      while (UNDERWAY.includes(info.state)) {
        await new Promise((done) => setTimeout(done, POLL_MS));
        info = await getJSON(place(collection, id));
        state.textContent = info.passages ? `${info.written.toLocaleString("en")} of ${plural(info.passages, "passage")} written` : "waits for its turn";
      }
      if (info.state !== "complete") throw new Problem({ title: STATES[info.state]?.[1] ?? info.state, detail: info.problem });
      fill(state, badge("done", plural(info.passages, "passage")));
      say(`${file.name} is in ${collection}.`);
      if (collection === shown) {
        [...$("documents-rows").children].find((/** @type {any} */ line) => line.dataset.id === id)?.remove();
        $("documents-rows").prepend(row(info));
      }
    } catch (error) {
      fill(state, badge("bad", error instanceof Problem ? `${error.title}. ${error.detail}` : String(error)));
    }
  }
}

export function setUp() {
  $("upload").addEventListener("change", () => {
    send($("upload").files);
    $("upload").value = "";
  });
  const drop = $("upload-drop");
  drop.addEventListener("dragover", (/** @type {DragEvent} */ event) => event.preventDefault());
  drop.addEventListener("drop", (/** @type {DragEvent} */ event) => {
    event.preventDefault();
    if (event.dataTransfer?.files.length) send(event.dataTransfer.files);
  });
}
