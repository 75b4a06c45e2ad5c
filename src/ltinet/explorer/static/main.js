// The page in a browser: requests over HTTP, the state in the address.

import { startExplorer } from "./explorer.js";
import { persistent } from "./persistent.js";

const TAB = Math.random().toString(36).slice(2, 14);

async function answerOf(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("The page cannot reach its server; start it again with ltinet explore.");
  }
  if (response.ok) return response;
  const message = await response.json().catch(() => ({ error: `The server responded with status ${response.status}; reload the page.` }));
  throw Object.assign(new Error(message.error), { status: response.status });
}

function pathOf(kind, query) {
  return `${kind}?${query}${query ? "&" : ""}tab=${TAB}`;
}

function nameOf(response) {
  return /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition") ?? "")?.[1] ?? "download";
}

const questions = persistent(answerOf);
let band = new AbortController();

// A newer band replaces the one that is being computed, whose response would be an error.
function newestBand() {
  band.abort();
  band = new AbortController();
  return { signal: band.signal };
}

const source = {
  offers: ["band", "engines", "order", "network", "script", "c", "onnx", "page"],
  start: async () => JSON.parse(document.getElementById("start").textContent),
  ask: async (kind, query) => (await questions.ask(kind, pathOf(kind, query), kind === "band" ? newestBand() : {})).json(),
  file: async (kind, query) => {
    const response = await questions.ask(kind, pathOf(kind, query));
    return { name: nameOf(response), blob: await response.blob() };
  },
  upload: async (file, options) => {
    const path = pathOf("upload", new URLSearchParams({ name: file.name, options }).toString());
    return (await questions.ask("open", path, { method: "POST", body: file })).json();
  },
  cancel: (kind = "") => {
    questions.cancelled(kind);
    return answerOf(pathOf("cancel", kind && `kind=${kind}`), { method: "POST" });
  },
  address: () => location.search.slice(1),
  remember: (query) => { if (location.search.slice(1) !== query) history.pushState(null, "", `?${query}`); },
  onReturn: (turn) => addEventListener("popstate", () => turn(location.search.slice(1))),
};

// Cancel all requests when the page is closed.
addEventListener("pagehide", () => { navigator.sendBeacon(pathOf("cancel", "")); });

startExplorer(document.getElementById("explorer"), source);
