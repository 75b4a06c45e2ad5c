// All drawings of one view, each a function of it.

import { drawArchitecture } from "./architecture.js";
import { drawCurves } from "./curves.js";
import { factsLine, reductionSentence } from "./facts.js";
import { drawPattern } from "./patterns.js";
import { drawPoles, drawTrade } from "./points.js";
import { measure } from "./svg.js";

const DRAWN = ["architecture", "trade", "poles", "response", "bode", "phase", "share", "before", "after"];

export function drawPanels(parts, view, state, act) {
  parts.share.closest("[data-panel]").hidden = !view.share;
  measure(DRAWN.map((name) => parts[name]));
  parts.facts.replaceChildren(...factsLine(view.facts));
  drawArchitecture(parts.architecture, view.architecture, state.pick, act);
  drawTrade(parts.trade, view.trade, view.k, act);
  drawPoles(parts.poles, view.poles);
  drawResponse(parts, view, null);
  drawBode(parts, view);
  drawPattern(parts.before, view.before, "A as given");
  drawPattern(parts.after, view.after, "the blocks that it became");
  drawShare(parts, view);
  parts.reduction.textContent = reductionSentence(view.reduction, view.facts);
  const remarks = [...view.remarks, ...view.response.remarks, ...(view.reduction?.remarks ?? [])];
  parts.remarks.hidden = remarks.length === 0;
  parts.remarks.replaceChildren(...remarks.map((words) => {
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
    spec.lines.push({ name: "certified ±", values: band.bound, kind: "bound hidden" });
  }
  drawCurves(parts.response, spec);
}

// An input far larger or smaller than the output would press one of them flat.
function inputHides(u, largest) {
  const size = Math.max(...u.map((value) => Math.abs(value ?? 0)));
  return size === 0 || size > 5 * largest || size < largest / 5;
}

function drawBode(parts, view) {
  const { omega, system, network, difference } = view.bode;
  const positive = (values) => values.map((value) => (value > 0 ? value : null));
  const lines = [
    { name: "network", values: positive(network), kind: "network dashed" },
    { name: system ? "difference" : "difference, at most", values: positive(difference), kind: "difference" },
  ];
  const phases = [{ name: "network", values: view.bode.network_phase, kind: "network dashed" }];
  if (system) {
    lines.unshift({ name: "system", values: positive(system), kind: "system" });
    phases.unshift({ name: "system", values: view.bode.system_phase, kind: "system" });
  }
  drawCurves(parts.bode, {
    label: "Gain of system and network, and their difference", x: omega, xName: "frequency ω", yName: "gain", xLog: true, yLog: true,
    range: bodeRange([...(system ?? []), ...network, ...difference], Math.max(...network.map((value) => value ?? 0))), lines,
  });
  drawCurves(parts.phase, {
    label: "Phase of system and network in degrees", x: omega, xName: "frequency ω", yName: "phase, degrees", xLog: true, height: 170, lines: phases,
  });
}

function bodeRange(values, above) {
  if (!(above > 0)) return [0.1, 10];
  let low = above;
  for (const value of values) if (value > above * 1e-20 && value < low) low = value;
  return [low / 2, above * 3];
}

function drawShare(parts, view) {
  if (!view.share) return;
  const { t, share, y, pick, equation, poles } = view.share;
  parts["share-title"].textContent = `Share of neuron ${pick} in the output`;
  const roots = poles.map(([real, imaginary]) => `${Number(real.toPrecision(5))}${imaginary ? ` ${imaginary < 0 ? "−" : "+"} ${Number(Math.abs(imaginary).toPrecision(5))} i` : ""}`);
  parts["share-equation"].textContent = `${equation}; poles ${roots.join(", ")}`;
  drawCurves(parts.share, {
    label: `Share of neuron ${pick} in the output over time`, x: t, xName: "time", yName: "output",
    lines: [{ name: "output", values: y, kind: "system" }, { name: `neuron ${pick}`, values: share, kind: "network" }],
  });
}
