// The gateway's HTTP, as the page uses it.

const KEY = "cragmesh.key";
// The gateway answers within the budget: one that is silent for this long after it has lost the question.
const GRACE_MS = 5_000;

/** An error that the gateway answered with, or why it did not answer; see RFC 9457. */
export class Problem extends Error {
  /** @param {{status?: number, title: string, detail?: string, errors?: {field: string, message: string, limit?: string}[], request_id?: string}} document */
  constructor(document) {
    super(document.title);
    this.status = document.status ?? 0;
    this.title = document.title;
    this.detail = document.detail ?? "";
    this.errors = Array.isArray(document.errors) ? document.errors : [];
    this.requestId = document.request_id ?? "";
  }
}

/** Whether a header can carry it. @param {string} value */
export const isKey = (value) => /^[\x21-\x7e]+$/.test(value);

let current = "";
try {
  const kept = sessionStorage.getItem(KEY) ?? "";
  if (isKey(kept)) current = kept;
} catch {
  // Storage is closed to us: the key lives as long as the page.
}

export const key = {
  get: () => current,
  /** @param {string} value */
  set: (value) => {
    current = value;
    try {
      if (value) sessionStorage.setItem(KEY, value);
      else sessionStorage.removeItem(KEY);
    } catch {
      // Not kept then.
    }
  },
};

/** @param {string} path @param {RequestInit} [init] */
async function request(path, init) {
  let response;
  try {
    response = await fetch(new URL(path, document.baseURI), init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem({ title: "The gateway cannot be reached", detail: "Is it running? Nothing was lost: ask again." });
  }
  if (response.ok) return response;
  const retry = response.headers.get("retry-after");
  let problem;
  try {
    problem = new Problem({ ...(await response.json()), status: response.status });
  } catch {
    problem = new Problem({ title: `HTTP ${response.status}`, status: response.status });
  }
  if (retry) problem.detail += ` Come again in ${retry} s.`;
  throw problem;
}

/** @returns {Record<string, string>} */
const keyed = () => (key.get() ? { authorization: `Bearer ${key.get()}` } : {});

/** @param {string} path @returns {Promise<any>} */
export async function getJSON(path) {
  return (await request(path, { headers: keyed() })).json();
}

/** @param {string} path */
export async function remove(path) {
  await request(path, { method: "DELETE", headers: keyed() });
}

/**
 * Send a file; `fetch` says nothing of how far it is.
 * @param {string} path @param {File} file @param {string} mediaType @param {(share: number) => void} progress
 * @returns {Promise<any>} its `DocumentInfo`
 */
export function upload(path, file, mediaType, progress) {
  return new Promise((done, failed) => {
    const sending = new XMLHttpRequest();
    sending.open("PUT", new URL(path, document.baseURI));
    for (const [name, value] of Object.entries({ ...keyed(), "content-type": mediaType })) sending.setRequestHeader(name, value);
    sending.upload.addEventListener("progress", (event) => progress(event.total ? event.loaded / event.total : 0));
    sending.upload.addEventListener("load", () => progress(1));
    sending.addEventListener("error", () => failed(new Problem({ title: "The gateway cannot be reached" })));
    sending.addEventListener("load", () => {
      try {
        const reply = JSON.parse(sending.responseText);
        if (sending.status < 300) done(reply);
        else failed(new Problem({ ...reply, status: sending.status }));
      } catch {
        failed(new Problem({ title: `HTTP ${sending.status}`, status: sending.status }));
      }
    });
    sending.send(file);
  });
}

/** @param {string} path */
export async function getText(path) {
  return (await request(path)).text();
}

/**
 * Ask, and yield what happens as `[name, data]`: any number of `stage`, then one `answer`. What comes between is thrown
 * as a `Problem`, or as an `AbortError` where the signal was given.
 * @param {import("./question.js").Body} body
 * @param {AbortSignal} signal
 * @returns {AsyncGenerator<[string, any]>}
 */
export async function* ask(body, signal) {
  /** @type {Record<string, string>} */
  const headers = { ...keyed(), accept: "text/event-stream", "content-type": "application/json" };
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), body.budget_s * 1000 + GRACE_MS);
  let answered = false;
  try {
    const init = { method: "POST", headers, body: JSON.stringify(body), signal: AbortSignal.any([signal, late.signal]) };
    const response = await request("answer", init);
    for await (const event of events(/** @type {ReadableStream<Uint8Array>} */ (response.body))) {
      if (event[0] === "problem") throw new Problem(event[1]);
      answered ||= event[0] === "answer";
      yield event;
    }
  } catch (error) {
    // An answer stands, however its connection ends.
    if (answered) return;
    signal.throwIfAborted();
    if (late.signal.aborted) throw new Problem({ title: "The gateway did not answer in time", detail: "It was given up five seconds after the answer was due." });
    if (error instanceof Problem) throw error;
  } finally {
    clearTimeout(timer);
    // Whatever is not waited for any more, the gateway need not do either.
    late.abort();
  }
  // What breaks while it is read is a TypeError, or a cut event that is no JSON: both mean the same.
  if (!answered) throw new Problem({ title: "The gateway hung up", detail: "It stopped before the answer was complete." });
}

/**
 * Server-sent events as `[name, data]`.
 * @param {ReadableStream<Uint8Array>} stream
 * @returns {AsyncGenerator<[string, any]>}
 */
async function* events(stream) {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    text += decoder.decode(value, { stream: !done });
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      const lines = block.split("\n");
      const name = lines.find((line) => line.startsWith("event: "))?.slice(7) ?? "message";
      const data = lines.filter((line) => line.startsWith("data: ")).map((line) => line.slice(6));
      yield [name, JSON.parse(data.join("\n"))];
    }
    if (done) return;
  }
}
