// The page in the cell of a notebook: requests are messages to the kernel.

import { startExplorer } from "./explorer.js";
import { persistent } from "./persistent.js";

function sourceOf(model) {
  const waiting = new Map();
  let number = 0;
  model.on("msg:custom", (message, buffers) => {
    const request = waiting.get(message.id);
    waiting.delete(message.id);
    if (!request) return;
    const content = new Blob([buffers?.[0] ?? ""], { type: message.type });
    if (message.status === 200) request.resolve({ name: message.name, content });
    else content.text().then((words) => request.reject(Object.assign(new Error(JSON.parse(words).error), { status: message.status })));
  });

  function send(kind, query, buffers = []) {
    number += 1;
    const id = number;
    model.send({ id, kind, query: Object.fromEntries(new URLSearchParams(query)) }, undefined, buffers);
    return new Promise((resolve, reject) => { waiting.set(id, { kind, resolve, reject }); });
  }

  // Reject cancelled requests at once, since the kernel may be busy with another cell, or gone.
  function leave(cancelled) {
    for (const [id, { kind, reject }] of waiting) {
      if (cancelled !== "" && kind !== cancelled) continue;
      waiting.delete(id);
      reject(new Error("this computation was stopped; change any setting to continue"));
    }
  }

  const questions = persistent(send);
  return {
    offers: ["band", "engines", "order", "network", "script", "c", "onnx", "page"],
    start: async () => structuredClone(model.get("start")),
    ask: async (kind, query) => JSON.parse(await (await questions.ask(kind, kind, query)).content.text()),
    file: async (kind, query) => {
      const { name, content } = await questions.ask(kind, kind, query);
      return { name, blob: content };
    },
    upload: async (file, options) => {
      const answer = await questions.ask("open", "upload", new URLSearchParams({ name: file.name, options }), [await file.arrayBuffer()]);
      return JSON.parse(await answer.content.text());
    },
    cancel: (kind = "") => {
      questions.cancelled(kind);
      leave(kind);
      send("cancel", kind && `kind=${kind}`);
    },
    address: () => "",
    remember: () => {},
    onReturn: () => {},
  };
}

function render({ model, el }) {
  const page = new DOMParser().parseFromString(model.get("page"), "text/html");
  const root = document.importNode(page.querySelector(".explorer"), true);
  root.classList.add("in-notebook");
  el.replaceChildren(root);
  startExplorer(root, sourceOf(model));
}

export default { render };
