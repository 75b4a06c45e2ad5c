// Standalone page: the views of all points of the trade-off curve are stored in it.

import { startExplorer } from "./explorer.js";
import { stateOf } from "./state.js";

const data = JSON.parse(document.getElementById("data").textContent);

function viewOf(query) {
  const budget = Number(stateOf(query).k ?? 1e4);
  let index = 0;
  data.places.forEach((place, own) => { if (data.trade.condition[place] <= budget) index = own; });
  const view = data.views[index];
  return { ...data.same, ...view, k: budget, bode: { ...data.bode, ...view.bode }, trade: { ...data.trade, place: data.places[index] } };
}

const source = {
  offers: ["band"],
  isInstant: true,
  isFixed: true,
  start: async () => ({ first: data.state, examples: [{ name: stateOf(data.state).system, title: data.same.title }], files: [] }),
  ask: async (kind, query) => (kind === "band" ? viewOf(query).band : viewOf(query)),
  cancel: () => {},
  address: () => "",
  remember: () => {},
  onReturn: () => {},
};

startExplorer(document.getElementById("explorer"), source);
