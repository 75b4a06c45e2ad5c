// Neurons by layer: hover for the equation, click or press Enter for the contribution to the output.

import { drawing, element, keepFocus, text, widthOf } from "./svg.js";

const SHAPES = 8;
const MARGIN = 14; // pixels above and below, for names

export function drawArchitecture(host, view, picked, act) {
  const width = widthOf(host, 260);
  const unit = width / view.width;
  const height = Math.max(80, view.height * unit + 2 * MARGIN);
  const label = `Network of ${view.bands.length} rows of layers between ${view.inputs.length} inputs and ${view.outputs.length} outputs`;
  const svg = drawing(label, width, Math.round(height));
  svg.setAttribute("role", "group");
  const above = (height - view.height * unit) / 2;
  const place = { x: (x) => x * unit, y: (y) => (view.height - y) * unit + above, unit };
  drawEnds(svg, view, place);
  for (const band of view.bands) drawBand(svg, band, view, place, picked);
  svg.addEventListener("pointerover", (event) => describe(event, act));
  svg.addEventListener("focusin", (event) => describe(event, act));
  svg.addEventListener("click", (event) => choose(event, act));
  svg.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(event, act); }
    if (event.key === "ArrowRight" || event.key === "ArrowLeft") walk(event, svg);
  });
  keepFocus(host, () => host.replaceChildren(svg));
}

function drawBand(svg, band, view, place, picked) {
  const box = { x: place.x(view.left), y: place.y(band.top), width: place.x(view.right - view.left), height: (band.top - band.bottom) * place.unit };
  const tone = band.layer === null ? "" : ` layer${band.layer % SHAPES}`;
  svg.append(element("rect", { class: `box${tone}`, rx: 4, ...box }));
  const size = Math.max(9, Math.min(13, place.unit * 0.5));
  const [words, x, y] = band.label;
  const isOnBalls = view.bands.length === 1 && size > 0.75 * place.unit; // rows that are lower than letters
  svg.append(text(place.x(x), isOnBalls ? box.y - 3 : place.y(y) + size / 3, words, { class: "name", "font-size": size }));
  for (const [own, wordX, wordY] of band.words) {
    svg.append(text(place.x(wordX), place.y(wordY) + size / 3, own, { "text-anchor": "middle", "font-size": size }));
  }
  if (band.arcs.length) svg.append(element("path", { class: "arcs", d: arcsPath(band, place) }));
  const radius = Math.min(13, place.unit * 0.36);
  for (const [layer, neuron, ballX, ballY, order, equation] of band.balls) {
    svg.append(ball(`${layer}.${neuron}`, place.x(ballX), place.y(ballY), radius, order, equation, layer, picked));
  }
}

function ball(pick, x, y, radius, order, equation, layer, picked) {
  const name = `neuron ${pick}, ${order === 1 ? "first" : "second"} order: ${equation}`;
  const isPicked = pick === picked;
  const made = element("circle", {
    class: `ball layer${layer % SHAPES}${order === 2 ? " second" : ""}${isPicked ? " picked" : ""}`,
    cx: x.toFixed(1), cy: y.toFixed(1), r: radius.toFixed(1), role: "button", tabindex: pick === (picked ?? "0.0") ? 0 : -1,
    "aria-pressed": String(isPicked), "aria-label": name,
  });
  made.dataset.pick = pick;
  made.append(element("title", {}, name));
  return made;
}

function arcsPath(band, place) {
  const y = place.y(band.balls[0][3]);
  const base = y - Math.min(13, place.unit * 0.36);
  const widest = Math.max(...band.arcs.map(([from, to]) => Math.abs(to - from)));
  let path = "";
  for (const [from, to] of band.arcs) {
    const rise = Math.max(3, Math.min(band.arc_height * place.unit * 0.95, 60) * (Math.abs(to - from) / widest));
    path += `M${place.x(from).toFixed(1)} ${base.toFixed(1)}C${place.x(from).toFixed(1)} ${(base - rise * 1.3).toFixed(1)} ${place.x(to).toFixed(1)} ${(base - rise * 1.3).toFixed(1)} ${place.x(to).toFixed(1)} ${base.toFixed(1)}`;
  }
  return path;
}

function drawEnds(svg, view, place) {
  const size = Math.max(9, Math.min(12, place.unit * 0.5));
  const middles = view.bands.map((band) => (band.top + band.bottom) / 2);
  const ends = [[view.inputs, 0.9, view.left, "end"], [view.outputs, view.width - 0.9, view.right, "start"]];
  for (const [names, x, edge] of ends) {
    const shown = names.length > 12 ? [...names.slice(0, 10), `+${names.length - 10}`] : names;
    const isClose = (view.height * place.unit) / shown.length < 2.2 * size;
    shown.forEach((name, index) => {
      const y = view.height * (1 - (index + 0.5) / shown.length);
      let wires = "";
      for (const middle of middles) wires += `M${place.x(x).toFixed(1)} ${place.y(y).toFixed(1)}L${place.x(edge).toFixed(1)} ${place.y(middle).toFixed(1)}`;
      svg.append(element("path", { class: "wire", d: wires }));
      svg.append(element("circle", { class: "end", cx: place.x(x), cy: place.y(y), r: Math.min(6, place.unit * 0.25) }));
      if (isClose && index > 0 && index < shown.length - 1) return;
      const maxLength = Math.max(3, Math.floor((1.8 * place.unit) / (0.62 * size))); // a character is 0.62 em wide
      const short = name.length > maxLength ? `${name.slice(0, maxLength - 1)}…` : name;
      svg.append(text(place.x(x), place.y(y) + (isClose && index > 0 ? size * 1.4 : -size * 0.75), short, { "text-anchor": "middle", "font-size": size }));
    });
  }
}

function describe(event, act) {
  const pick = event.target.dataset?.pick;
  if (pick) act.describe(event.target.getAttribute("aria-label"));
}

function choose(event, act) {
  const pick = event.target.dataset?.pick;
  if (pick) act.pick(event.target.getAttribute("aria-pressed") === "true" ? null : pick);
}

function walk(event, svg) {
  const all = [...svg.querySelectorAll("[data-pick]")];
  const next = all[all.indexOf(event.target) + (event.key === "ArrowRight" ? 1 : -1)];
  if (next) { event.preventDefault(); next.focus(); }
}
