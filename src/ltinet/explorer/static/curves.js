// Curves over time or frequency: lines with axes, a band behind them, and a table of the values.

import { drawing, element, linearScale, logScale, text, widthOf } from "./svg.js";
import { curveTable, replaceDrawing } from "./tables.js";

const EDGE = { left: 70, right: 12, top: 8, bottom: 40 };

// spec: label, x, lines [{name, values, kind, inTableOnly}], xName, yName, xLog, yLog, band {low, high}, height
export function drawCurves(host, spec) {
  const width = widthOf(host, 240);
  const height = spec.height ?? Math.round(Math.min(330, Math.max(190, width * 0.55)));
  const svg = drawing(spec.label, width, height);
  const scales = scalesOf(spec, width, height);
  drawAxes(svg, scales, spec, width, height);
  if (spec.band) svg.append(element("path", { class: "band", d: bandPath(spec, scales) }));
  for (const line of drawnLines(spec)) svg.append(element("path", { class: `line ${line.kind}`, d: linePath(spec.x, line.values, scales) }));
  replaceDrawing(host, svg, legend(spec), curveTable(spec));
}

function scalesOf(spec, width, height) {
  const x = spec.x.filter((value) => value !== null && (!spec.xLog || value > 0));
  const across = spec.xLog ? logScale : linearScale;
  const [left, right] = [EDGE.left, width - EDGE.right];
  return { x: across(x[0] ?? 0, x.at(-1) ?? 1, left, right), y: verticalScale(spec, height), top: EDGE.top, bottom: height - EDGE.bottom };
}

function verticalScale(spec, height) {
  const [low, high] = spec.range ?? rangeOf(spec);
  const [from, to] = [height - EDGE.bottom, EDGE.top];
  if (spec.yLog) return logScale(low, high, from, to);
  const margin = (high - low) * 0.05;
  return linearScale(low - margin, high + margin, from, to, 42);
}

function rangeOf(spec) {
  let [low, high] = [Infinity, -Infinity];
  for (const line of spec.lines) {
    for (const value of line.inTableOnly ? [] : line.values) {
      if (value === null || (spec.yLog && !(value > 0))) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  if (!(low <= high)) return spec.yLog ? [0.1, 10] : [-1, 1];
  if (spec.yLog) return [Math.max(low, high * 1e-18), high * 1.3];
  [low, high] = [Math.min(low, 0), Math.max(high, 0)];
  return spec.band ? withBand(spec.band, low, high) : [low, high];
}

// The axis extends by at most the height of the curve for the band; a wider band is clipped.
function withBand(band, low, high) {
  const span = high - low;
  const [least, most] = [Math.min(...band.low), Math.max(...band.high)];
  return [Math.max(Math.min(least, low), low - span), Math.min(Math.max(most, high), high + span)];
}

export function drawAxes(svg, scales, spec, width, height) {
  const [bottom, right] = [height - EDGE.bottom, width - EDGE.right];
  const grid = element("g", { class: "axes" });
  for (const tick of scales.x.ticks) {
    const x = scales.x.at(tick).toFixed(1);
    grid.append(element("line", { class: "grid", x1: x, x2: x, y1: EDGE.top, y2: bottom }));
    const name = scales.x.name(tick);
    const isAtEnd = Number(x) > right - 8 && name.length > 3;
    grid.append(text(isAtEnd ? width - 1 : x, bottom + 16, name, { "text-anchor": isAtEnd ? "end" : "middle" }));
  }
  for (const tick of scales.y.ticks) {
    const y = scales.y.at(tick).toFixed(1);
    grid.append(element("line", { class: tick === 0 ? "zero" : "grid", x1: EDGE.left, x2: right, y1: y, y2: y }));
    grid.append(text(EDGE.left - 6, Number(y) + 4, scales.y.name(tick), { "text-anchor": "end" }));
  }
  grid.append(text((EDGE.left + right) / 2, height - 6, spec.xName, { "text-anchor": "middle", class: "name" }));
  const middle = (EDGE.top + bottom) / 2;
  grid.append(text(13, middle, spec.yName, { "text-anchor": "middle", class: "name", transform: `rotate(-90 13 ${middle})` }));
  svg.append(grid);
}

export function frame(width, height) {
  return { left: EDGE.left, right: width - EDGE.right, top: EDGE.top, bottom: height - EDGE.bottom };
}

function linePath(x, values, scales, least = -1e4, most = 1e4) {
  let path = "";
  let pen = "M";
  for (let index = 0; index < x.length; index += 1) {
    const value = values[index];
    const place = value === null ? NaN : scales.y.at(value);
    if (!Number.isFinite(place)) { pen = "M"; continue; }
    path += `${pen}${scales.x.at(x[index]).toFixed(1)} ${Math.max(least, Math.min(most, place)).toFixed(1)}`;
    pen = "L";
  }
  return path;
}

function bandPath(spec, scales) {
  const upper = linePath(spec.x, spec.band.high, scales, scales.top, scales.bottom);
  const back = [...spec.x].reverse();
  const lower = linePath(back, [...spec.band.low].reverse(), scales, scales.top, scales.bottom).replaceAll("M", "L");
  return upper && lower ? `${upper}${lower}Z` : "";
}

function drawnLines(spec) {
  return spec.lines.filter((line) => !line.inTableOnly);
}

function legend(spec) {
  const list = document.createElement("ul");
  list.className = "legend";
  for (const line of drawnLines(spec)) {
    const item = document.createElement("li");
    item.className = line.kind;
    item.textContent = line.name;
    list.append(item);
  }
  if (drawnLines(spec).length < 2) list.hidden = true;
  return list;
}
