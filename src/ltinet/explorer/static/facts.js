// Facts of the network above all drawings, and sentences on a reduction and on the certified band.

import { scientific } from "./svg.js";
import { tableOf } from "./tables.js";

function count(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

export function factsLine(facts) {
  const share = Math.round((1000 * facts.n_weights) / facts.n_weights_dense) / 10;
  const parts = [
    ["n_layers", count(facts.n_layers, "layer")],
    ["n_neurons", count(facts.n_neurons, "neuron")],
    ["n_connections", count(facts.n_connections, "connection")],
    ["n_weights", count(facts.n_weights, "weight")],
    ["dense", `(${share} % of a dense network)`],
    ["condition", `cond(T) = ${scientific(facts.condition, 5)}`],
    ["details", Object.entries(facts.details).map(([name, text]) => `${name}: ${text}`).join(", ")],
  ];
  return parts.filter(([, text]) => text).map(([name, text]) => {
    const span = document.createElement("span");
    span.dataset.fact = name;
    if (facts[name] !== undefined && name !== "details") span.dataset.value = String(facts[name]);
    span.textContent = text;
    return span;
  });
}

export function reductionSentence(view, facts) {
  if (view === null) return `All ${facts.n_full_order} states. Move the slider to keep fewer; the error bound is computed with the reduction.`;
  const size = view.gain ? ` (${scientific(view.error_bound === null ? view.estimate / view.gain : view.error_bound / view.gain, 2)} of the largest gain)` : "";
  const error = view.error_bound === null
    ? `estimated error ${scientific(view.estimate)}${size}, not proven`
    : `error at most ${scientific(view.error_bound)}${size} at all frequencies, proven`;
  return `${view.order} of ${view.n_states} states kept, ${error}.`;
}

export function bandSentence(band, output) {
  if (band.largest === null) return "No bound is known for this run.";
  const parts = Object.entries(band.parts).filter(([, value]) => value > 0).map(([name, value]) => `${name} ${scientific(value, 2)}`);
  return `Certified: ${output} is within ${scientific(band.largest)} of the exact output at all times (${parts.join(", ")}).`;
}

export function enginesTable(view) {
  const rows = view.engines.map((own) => [
    own.name, own.evaluations ?? "none", `${scientific(1000 * own.seconds, 2)} ms`, scientific(own.error, 2), scientific(own.bound, 2),
  ]);
  return tableOf("The engines on this response", ["engine", "evaluations", "time", "distance from exact", "certified bound"], rows);
}
