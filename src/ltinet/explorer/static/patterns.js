// Sparsity pattern of a matrix.

import { drawing, element, widthOf } from "./svg.js";

export function drawPattern(host, view, name) {
  const key = `${JSON.stringify(view)}${widthOf(host, 120)}`;
  if (host.drawnPattern === key) return; // the pattern of the system does not change with the limit
  host.drawnPattern = key;
  const share = view.n ? Math.round((1000 * view.count) / view.n ** 2) / 10 : 0;
  const label = `${name}: ${view.count} of ${view.n}² entries are nonzero (${share} %)`;
  const side = Math.min(260, widthOf(host, 120));
  const cell = side / Math.max(view.side, 1);
  const svg = drawing(label, side, side);
  svg.append(element("rect", { class: "sheet", x: 0, y: 0, width: side, height: side }));
  let path = "";
  for (const [row, start, length] of view.runs) {
    path += `M${(start * cell).toFixed(2)} ${(row * cell).toFixed(2)}h${(length * cell).toFixed(2)}v${cell.toFixed(2)}h-${(length * cell).toFixed(2)}z`;
  }
  svg.append(element("path", { class: "entries", d: path }));
  const caption = document.createElement("p");
  caption.className = "note";
  caption.textContent = label;
  host.replaceChildren(svg, caption);
}
