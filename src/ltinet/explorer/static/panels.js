// All drawings of a view.

import { drawArchitecture } from "./architecture.js";
import { drawCurves } from "./curves.js";
import { factsLine, reductionSentence } from "./facts.js";
import { drawPattern } from "./patterns.js";
import { drawPoles, drawTrade } from "./points.js";
import { measure } from "./svg.js";

const DRAWN = ["architecture", "trade", "poles", "response", "bode", "difference", "phase", "share", "before", "after"];

export function drawPanels(parts, view, state, act) {
  parts.share.closest("[data-panel]").hidden = !view.share;
  measure(DRAWN.map((name) => parts[name]));
  parts.facts.replaceChildren(...factsLine(view.facts));
  drawArchitecture(parts.architecture, view.architecture, state.pick, act);
  listProducts(parts, view.products);
  drawTrade(parts.trade, view.trade, view.k, act);
  drawPoles(parts.poles, view.poles);
  drawResponse(parts, view, null);
  drawBode(parts, view);
  drawPattern(parts.before, view.before, "A of the system");
  drawPattern(parts.after, view.after, "block-diagonal A");
  drawShare(parts, view);
  parts.reduction.textContent = reductionSentence(view.reduction, view.facts);
  const notes = [...view.notes, ...view.response.notes, ...(view.reduction?.notes ?? [])];
  parts.notes.hidden = notes.length === 0;
  parts.notes.replaceChildren(...notes.map((words) => {
    const item = document.createElement("li");
    item.textContent = words;
    return item;
  }));
}

function listProducts(parts, products) {
  parts.products.hidden = !products;
  if (!products) return;
  const { count, kinds, listed } = products;
  parts["products-kinds"].textContent = `${count} product neuron${count === 1 ? "" : "s"}${kinds ? `: ${kinds}` : ""}`;
  const lines = count > listed.length ? [...listed, `… and ${count - listed.length} more`] : listed;
  parts["products-list"].replaceChildren(...lines.map((words) => {
    const item = document.createElement("li");
    item.textContent = words;
    return item;
  }));
}

export function drawResponse(parts, view, band) {
  const { t, y, u } = view.response;
  const spec = {
    label: "Response over time", x: t, xName: "time", yName: "output",
    lines: [{ name: "network", values: y, kind: "network" }, { name: "input", values: u, kind: "input" }],
  };
  if (view.response.largest > 0 && inputHides(u, view.response.largest)) spec.lines.pop();
  if (band?.bound) {
    spec.band = { low: y.map((value, index) => value - band.bound[index]), high: y.map((value, index) => value + band.bound[index]) };
    spec.lines.push({ name: "certified ±", values: band.bound, kind: "bound", inTableOnly: true });
  }
  drawCurves(parts.response, spec);
}

// An input far larger or smaller than the output is not drawn: one of them would look flat.
function inputHides(u, largest) {
  const size = Math.max(...u.map((value) => Math.abs(value ?? 0)));
  return size === 0 || size > 5 * largest || size < largest / 5;
}

function drawBode(parts, view) {
  const { omega, system, network } = view.bode;
  const positive = (values) => values.map((value) => (value > 0 ? value : null));
  const lines = [{ name: "network", values: positive(network), kind: "network dashed" }];
  const phases = [{ name: "network", values: view.bode.network_phase, kind: "network dashed" }];
  if (system) {
    lines.unshift({ name: "system", values: positive(system), kind: "system" });
    phases.unshift({ name: "system", values: view.bode.system_phase, kind: "system" });
  }
  const across = { x: omega, xName: "frequency ω", xLog: true };
  drawCurves(parts.bode, {
    ...across, label: "Gain of system and network", yName: "gain", yLog: true, height: 190,
    range: gainRange([...(system ?? []), ...network]), lines,
  });
  drawDifference(parts.difference, { ...across, values: positive(view.bode.difference), isBound: !system });
  drawCurves(parts.phase, { ...across, label: "Phase of system and network in degrees", yName: "phase, degrees", height: 160, lines: phases });
}

// In its own plot, since it is far smaller than the gains: mostly rounding errors.
function drawDifference(host, { values, isBound, ...across }) {
  const name = isBound ? "difference, at most" : "difference";
  const largest = values.reduce((most, value) => Math.max(most, value ?? 0), 0);
  drawCurves(host, {
    ...across, label: "Difference between system and network", yName: isBound ? "bound" : "difference", yLog: true, height: 140,
    range: largest > 0 ? gainRange(values) : undefined, lines: [{ name, values, kind: "difference" }],
  });
}

function gainRange(values) {
  const above = values.reduce((most, value) => Math.max(most, value ?? 0), 0);
  if (!(above > 0)) return [0.1, 10];
  let low = above;
  for (const value of values) if (value > above * 1e-20 && value < low) low = value;
  return [low / 1.5, above * 1.5];
}

function drawShare(parts, view) {
  if (!view.share) return;
  const { t, share, y, pick, equation, poles } = view.share;
  parts["share-title"].textContent = `Contribution of neuron ${pick} to the output`;
  const roots = poles.map(([real, imaginary]) => `${Number(real.toPrecision(5))}${imaginary ? ` ${imaginary < 0 ? "−" : "+"} ${Number(Math.abs(imaginary).toPrecision(5))} i` : ""}`);
  parts["share-equation"].textContent = `${equation}; poles ${roots.join(", ")}`;
  drawCurves(parts.share, {
    label: `Contribution of neuron ${pick} to the output over time`, x: t, xName: "time", yName: "output",
    lines: [{ name: "output", values: y, kind: "system" }, { name: `neuron ${pick}`, values: share, kind: "network" }],
  });
}
