// The page in the cell of a notebook: questions over the line to the kernel.

import { startExplorer } from "./explorer.js";

function sourceOf(model) {
  const waiting = new Map();
  let number = 0;
  model.on("msg:custom", (message) => {
    const done = waiting.get(message.id);
    waiting.delete(message.id);
    if (done) done(message);
  });

  function send(kind, query) {
    number += 1;
    const id = number;
    model.send({ id, kind, query: Object.fromEntries(new URLSearchParams(query)) });
    return new Promise((resolve) => { waiting.set(id, resolve); });
  }

  return {
    offers: ["band", "engines", "order", "script"],
    start: async () => structuredClone(model.get("start")),
    ask: async (kind, query) => {
      const answer = await send(kind, query);
      if (answer.status !== 200) throw new Error(JSON.parse(answer.text).error);
      return JSON.parse(answer.text);
    },
    file: async (kind, query) => {
      const answer = await send(kind, query);
      return { name: answer.name, blob: new Blob([answer.text], { type: "text/x-python" }) };
    },
    cancel: () => {},
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
