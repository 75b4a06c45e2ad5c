// Tables of the values of a drawing.

import { keepFocus } from "./svg.js";

const ROWS = 24;
const SOON_AFTER = 150; // milliseconds

export function curveTable(spec) {
  const step = Math.max(1, Math.ceil(spec.x.length / ROWS));
  const rows = [];
  for (let index = 0; index < spec.x.length; index += step) {
    rows.push([spec.x[index], ...spec.lines.map((line) => line.values[index])]);
  }
  return foldedTable(spec.label, [spec.xName, ...spec.lines.map((line) => line.name)], rows);
}

// Closed until the user opens it; filled after all drawings, unless newer ones have replaced it.
export function foldedTable(label, names, rows) {
  const details = document.createElement("details");
  const summary = document.createElement("summary");
  summary.textContent = "as a table";
  details.append(summary);
  setTimeout(() => { if (details.isConnected) details.append(tableOf(label, names, rows)); }, SOON_AFTER);
  return details;
}

// Replace a drawing; its table stays open if it was.
export function replaceDrawing(host, ...parts) {
  const isOpen = host.querySelector("details")?.open === true;
  keepFocus(host, () => host.replaceChildren(...parts));
  const details = host.querySelector("details");
  if (details) details.open = isOpen;
}

export function tableOf(label, names, rows) {
  const table = document.createElement("table");
  const caption = table.createCaption();
  caption.textContent = label;
  const head = table.createTHead().insertRow();
  for (const name of names) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = name;
    head.append(cell);
  }
  const body = table.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    for (const value of row) line.insertCell().textContent = value === null ? "–" : String(value);
  }
  return table;
}
