// The page in the cell of a notebook: questions over the line to the kernel.

import { startExplorer } from "./explorer.js";
import { persistent } from "./persistent.js";

function sourceOf(model) {
  const waiting = new Map();
  let number = 0;
  model.on("msg:custom", (message, buffers) => {
    const asked = waiting.get(message.id);
    waiting.delete(message.id);
    if (!asked) return;
    const content = new Blob([buffers?.[0] ?? ""], { type: message.type });
    if (message.status === 200) asked.resolve({ name: message.name, content });
    else content.text().then((words) => asked.reject(Object.assign(new Error(JSON.parse(words).error), { status: message.status })));
  });

  function send(kind, query, buffers = []) {
    number += 1;
    const id = number;
    model.send({ id, kind, query: Object.fromEntries(new URLSearchParams(query)) }, undefined, buffers);
    return new Promise((resolve, reject) => { waiting.set(id, { kind, resolve, reject }); });
  }

  // The kernel may be busy with another cell, or gone: whoever cancels does not wait for it.
  function leave(wanted) {
    for (const [id, { kind, reject }] of waiting) {
      if (wanted !== "" && kind !== wanted) continue;
      waiting.delete(id);
      reject(new Error("this was stopped before it was done; change something to go on"));
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
    upload: async (file) => {
      const answer = await questions.ask("open", "upload", new URLSearchParams({ name: file.name }), [await file.arrayBuffer()]);
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
