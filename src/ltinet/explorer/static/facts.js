// The line of numbers above all drawings, and what is said of a reduction and of the certified band.

import { scientific } from "./svg.js";
import { tableOf } from "./tables.js";

export function factsLine(facts) {
  const share = Math.round((1000 * facts.n_weights) / facts.n_weights_dense) / 10;
  const parts = [
    ["n_layers", `${facts.n_layers} layers`],
    ["n_neurons", `${facts.n_neurons} neurons`],
    ["n_connections", `${facts.n_connections} connections`],
    ["n_weights", `${facts.n_weights} weights`],
    ["dense", `(${share} % of a dense network)`],
    ["condition", `cond(T) = ${scientific(facts.condition, 5)}`],
    ["told", Object.entries(facts.told).map(([name, words]) => `${name}: ${words}`).join(", ")],
  ];
  return parts.filter(([, words]) => words).map(([name, words]) => {
    const made = document.createElement("span");
    made.dataset.fact = name;
    if (facts[name] !== undefined && name !== "told") made.dataset.value = String(facts[name]);
    made.textContent = words;
    return made;
  });
}

export function reductionSentence(view, facts) {
  if (view === null) return `All ${facts.n_given} states are there. Slide to keep fewer; the bound on what that leaves out is computed with it.`;
  const size = view.gain ? ` (${scientific(view.error_bound === null ? view.estimate / view.gain : view.error_bound / view.gain, 2)} of the largest gain)` : "";
  const error = view.error_bound === null
    ? `an error of about ${scientific(view.estimate)}${size}, which is an estimate: nothing is proven`
    : `an error of at most ${scientific(view.error_bound)}${size} at all frequencies, proven`;
  return `${view.order} of ${view.n_states} states are kept, with ${error}.`;
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
