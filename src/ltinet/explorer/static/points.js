// Scatter plots: poles by layer, and the trade-off between cond(T) and connections.

import { drawAxes, frame } from "./curves.js";
import { drawing, element, linearScale, logScale, scientific, signedScale, text, widthOf } from "./svg.js";
import { foldedTable, replaceDrawing } from "./tables.js";

const TONES = 8;
const MOST_ROWS = 60;

export function drawPoles(host, view) {
  const { width, height, svg } = sheet(host, `${view.real.length} poles in the complex plane, coloured by layer`);
  const box = frame(width, height);
  const scales = { x: signedScale(view.real, box.left, box.right), y: signedScale(view.imaginary, box.bottom, box.top) };
  drawAxes(svg, scales, { xName: "real part", yName: "imaginary part" }, width, height);
  if (scales.x.low <= 0 && scales.x.high >= 0) {
    const x = scales.x.at(0).toFixed(1);
    svg.append(element("line", { class: "zero", x1: x, x2: x, y1: box.top, y2: box.bottom }));
  }
  view.real.forEach((real, index) => {
    svg.append(mark(scales.x.at(real), scales.y.at(view.imaginary[index]), view.layer[index], `layer ${view.layer[index]}: ${real} ${view.imaginary[index] < 0 ? "−" : "+"} ${Math.abs(view.imaginary[index])} i`));
  });
  const rows = view.real.map((real, index) => [real, view.imaginary[index], view.layer[index]]);
  replaceDrawing(host, svg, foldedTable("Poles", ["real part", "imaginary part", "layer"], rows.slice(0, MOST_ROWS)));
}

// Colours distinguish eight layers; shapes distinguish layers with the same colour.
function mark(x, y, layer, name) {
  const [left, top, size] = [x.toFixed(1), y.toFixed(1), 4];
  const shapes = [
    `M${left} ${top}m-${size} 0a${size} ${size} 0 1 0 ${2 * size} 0a${size} ${size} 0 1 0 -${2 * size} 0`,
    `M${left} ${top}m-${size} -${size}h${2 * size}v${2 * size}h-${2 * size}z`,
    `M${left} ${top}m0 -${size + 1}l${size + 1} ${2 * size}h-${2 * (size + 1)}z`,
    `M${left} ${top}m0 -${size + 1}l${size + 1} ${size + 1}l-${size + 1} ${size + 1}l-${size + 1} -${size + 1}z`,
  ];
  const d = shapes[Math.floor(layer / TONES) % shapes.length];
  return element("path", { class: `pole layer${layer % TONES}`, d }, element("title", {}, name));
}

export function drawTrade(host, view, budget, act) {
  const { width, height, svg } = sheet(host, "cond(T) of all networks against their connections");
  const box = frame(width, height);
  const most = Math.max(...view.connections, 1);
  const top = Math.max(view.condition.at(-1), 3);
  const scales = {
    x: linearScale(-0.04 * most, most * 1.04, box.left, box.right),
    y: logScale(1 / top ** 0.06, top * top ** 0.06, box.bottom, box.top),
  };
  scales.x.ticks = scales.x.ticks.filter((tick) => tick >= 0 && Number.isInteger(tick));
  drawAxes(svg, scales, { xName: "connections", yName: "cond(T)" }, width, height);
  svg.append(element("path", { class: "steps", d: stairs(view, scales) }));
  const line = scales.y.at(Math.min(budget, scales.y.high)).toFixed(1);
  svg.append(element("line", { class: "budget-line", x1: box.left, x2: box.right, y1: line, y2: line }));
  svg.append(text(box.right - 2, Math.max(Number(line) - 5, box.top + 11), `κ = ${scientific(budget)}`, { "text-anchor": "end", class: "name" }));
  view.condition.forEach((condition, index) => {
    const isNow = index === view.place;
    const name = `${view.connections[index]} connections, layers: ${view.layers[index]}, cond(T) = ${scientific(condition, 4)}`;
    const point = element("circle", {
      class: isNow ? "point now" : "point", cx: scales.x.at(view.connections[index]).toFixed(1),
      cy: scales.y.at(condition).toFixed(1), r: isNow ? 6.5 : 3.5,
    }, element("title", {}, name));
    point.dataset.point = index;
    svg.append(point);
  });
  svg.addEventListener("click", (event) => {
    if (event.target.dataset.point) act.point(Number(event.target.dataset.point));
  });
  const rows = view.condition.map((own, index) => [own, view.connections[index], view.layers[index]]);
  replaceDrawing(host, svg, foldedTable("Trade-off", ["cond(T)", "connections", "layers"], rows.slice(0, MOST_ROWS)));
}

function stairs(view, scales) {
  let path = "";
  view.condition.forEach((condition, index) => {
    const [x, y] = [scales.x.at(view.connections[index]).toFixed(1), scales.y.at(condition).toFixed(1)];
    path += index === 0 ? `M${x} ${y}` : `V${y}H${x}`;
  });
  return path;
}

function sheet(host, label) {
  const width = widthOf(host, 240);
  const height = Math.round(Math.min(330, Math.max(200, width * 0.62)));
  return { width, height, svg: drawing(label, width, height) };
}
