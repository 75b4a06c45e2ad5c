// The page: draws the view of a state, and turns events into the next state.

import { columnsForm } from "./columns.js";
import { drawDownloads } from "./downloads.js";
import { bandSentence, enginesTable } from "./facts.js";
import { newestFirst } from "./newest.js";
import { drawPanels, drawResponse } from "./panels.js";
import { budgetSlider } from "./slider.js";
import { otherSystem, queryOf, stateOf } from "./state.js";

const DELAY = 250; // milliseconds until the page shows that it is busy, writes the address or requests a band

export async function startExplorer(root, source) {
  const parts = {};
  for (const own of root.querySelectorAll("[data-id]")) parts[own.dataset.id] = own;
  const start = await source.start();
  const page = { view: null, state: {}, waits: {}, timers: {}, dropped: new Map() };

  const go = newestFirst({
    ask: (state) => source.ask("view", queryOf(state)), show, fail, busy,
    leaves: (one, other) => one.system !== other.system || one.order !== other.order,
    abandon: () => source.cancel("view"),
  });
  const slider = budgetSlider(parts, (budget, settled) => wish({ k: String(budget) }, settled));
  const actions = {
    pick: (pick) => wish({ pick }, true),
    describe: (text) => { parts.equation.textContent = text; },
    point: slider.to,
  };
  const openColumns = columnsForm(parts, {
    identify: (file, drive, answer) => turn(otherSystem(`file:${file.hash}`, { drive, answer })),
    read: (blob, options) => take(blob, options),
    drive: (file, drive) => wish({ u: `file:${file.hash}`, drive: drive || undefined }, true),
  });

  function wish(change, settled) {
    turn({ ...page.state, ...change }, settled);
  }

  function turn(state, settled = true) {
    page.state = stateOf(queryOf(state));
    clearTimeout(page.timers.band);
    if (settled || !page.timers.address) writeAddress(settled);
    go(page.state);
  }

  // Browsers limit changes of the address per second: write the last one of a gesture.
  function writeAddress(settled) {
    clearTimeout(page.timers.address);
    page.timers.address = setTimeout(() => {
      page.timers.address = null;
      source.remember(queryOf(page.state));
    }, settled ? DELAY : 2 * DELAY);
  }

  function show(view, state, isLast) {
    page.view = view;
    parts.error.hidden = true;
    drawPanels(parts, view, state, actions);
    slider.show(view.trade, view.k, isLast && document.activeElement !== parts.budget);
    if (isLast) showControls(view, state);
    if (page.comparing) stopEngines();
    parts.engines.replaceChildren();
    parts.band.textContent = "";
    root.dataset.shown = queryOf(state);
    root.dataset.draws = String(Number(root.dataset.draws ?? 0) + 1);
    if (isLast) page.timers.band = setTimeout(() => askBand(view, state), source.isInstant ? 0 : DELAY);
  }

  function showControls(view, state) {
    showSystems(state, view.title);
    fill(parts.input, view.facts.inputs.map((name, index) => [String(index + 1), name]), state.input ?? "1");
    fill(parts.output, view.facts.outputs.map((name, index) => [String(index + 1), name]), state.output ?? "1");
    const drives = [["step", "a step"], ["impulse", "an impulse"], ["chirp", "a chirp"], ...tables().map((own) => [`file:${own.hash}`, own.name])];
    fill(parts.drive, drives, state.u ?? "step");
    if (document.activeElement !== parts.end) parts.end.value = String(Number(view.response.end.toPrecision(5)));
    parts.input.disabled = (state.u ?? "").startsWith("file:");
    const maxOrder = Math.min(view.facts.n_full_order - 1, 100);
    parts.order.max = String(Math.max(maxOrder, 1));
    parts.order.disabled = maxOrder < 1 || !source.offers.includes("order");
    parts.order.value = String(view.reduction ? view.reduction.order : maxOrder);
    parts["order-value"].textContent = view.reduction ? String(view.reduction.order) : `all ${view.facts.n_full_order}`;
    parts.whole.disabled = !state.order;
  }

  function tables() {
    return start.files.filter((own) => own.kind === "table");
  }

  function showSystems(state, title) {
    const known = [...start.examples.map((own) => [own.name, own.title]), ...start.files.map((own) => [`file:${own.hash}`, own.name])];
    if (!known.some(([name]) => name === state.system)) known.push([state.system, title]);
    fill(parts.system, known, state.system);
  }

  async function askBand(view, state) {
    if (!source.offers.includes("band")) return;
    parts.band.textContent = "Computing the certified band …";
    try {
      const band = await source.ask("band", queryOf(state));
      if (page.view !== view) return;
      drawResponse(parts, view, band);
      parts.band.textContent = bandSentence(band, view.facts.outputs[Number(state.output ?? "1") - 1]);
      root.dataset.banded = queryOf(state);
    } catch (error) {
      if (page.view === view) parts.band.textContent = `No certified band: ${error.message}`;
    }
  }

  async function askEngines() {
    if (page.comparing) { stopEngines(); return; }
    const view = page.view;
    page.comparing = view;
    parts.compare.textContent = "Stop";
    parts.engines.textContent = "Running the engines …";
    try {
      const comparison = await source.ask("engines", queryOf(page.state));
      if (page.view === view) parts.engines.replaceChildren(enginesTable(comparison));
    } catch (error) {
      if (page.comparing === view) parts.engines.textContent = error.message;
    }
    if (page.comparing === view) stopEngines(false);
  }

  function stopEngines(isRunning = true) {
    page.comparing = null;
    parts.compare.textContent = "Compare engines";
    if (!isRunning) return;
    parts.engines.textContent = "";
    source.cancel("engines");
  }

  function fail(error, state) {
    parts.error.textContent = error.message;
    parts.error.hidden = false;
    root.dataset.failed = queryOf(state ?? page.state);
    if (page.view === null && state) showSystems(state, state.system);
  }

  // Views and uploads may be pending at the same time: the page is busy until neither is.
  function busy(isBusy, began, what = "view") {
    page.waits[what] = isBusy;
    clearInterval(page.timers.busy);
    const isAny = Object.values(page.waits).some(Boolean);
    root.setAttribute("aria-busy", String(isAny));
    if (!isAny) { parts.busy.hidden = true; return; }
    if (!isBusy) return;
    page.timers.busy = setInterval(() => {
      const seconds = (performance.now() - began) / 1000;
      parts.busy.hidden = false;
      parts["busy-text"].textContent = `working, ${seconds.toFixed(0)} s`;
    }, DELAY);
  }

  async function take(file, options = "") {
    busy(true, performance.now(), "upload");
    try {
      if (file.size > start.most_bytes) throw new Error(`${file.name} is too large; the limit is ${start.most_bytes / 2 ** 20} MB.`);
      const upload = await source.upload(file, options);
      page.dropped.set(upload.hash, file);
      start.files = [...start.files.filter((known) => known.hash !== upload.hash), upload];
      parts.error.hidden = true;
      const system = `file:${upload.hash}`;
      if (upload.kind !== "table") { turn(otherSystem(system)); return; }
      const guess = openColumns(upload, file);
      if (page.view === null && guess.drive && guess.answer) turn(otherSystem(system, guess));
    } catch (error) {
      fail(error);
      if (/\.(csv|tsv|txt|dat)$/i.test(file.name)) openColumns({ name: file.name, columns: [], roles: [] }, file);
    } finally {
      busy(false, 0, "upload");
      parts.file.value = "";
    }
  }

  function fill(select, options, value) {
    const same = select.options.length === options.length && options.every(([own, name], index) => select.options[index].value === own && select.options[index].text === name);
    if (!same) {
      select.replaceChildren(...options.map(([own, name]) => {
        const made = document.createElement("option");
        made.value = own;
        made.textContent = name;
        return made;
      }));
    }
    select.value = value;
  }

  parts.system.addEventListener("change", () => {
    const table = tables().find((own) => `file:${own.hash}` === parts.system.value);
    if (table) openColumns(table, page.dropped.get(table.hash));
    else turn(otherSystem(parts.system.value));
  });
  parts.file.addEventListener("change", () => { if (parts.file.files[0]) take(parts.file.files[0]); });
  parts.drive.addEventListener("change", () => wish({ u: parts.drive.value, T: undefined }, true));
  parts.input.addEventListener("change", () => wish({ input: parts.input.value }, true));
  parts.output.addEventListener("change", () => wish({ output: parts.output.value }, true));
  parts.end.addEventListener("change", () => wish({ T: parts.end.value.trim().replace(",", ".") }, true));
  parts.order.addEventListener("input", () => { parts["order-value"].textContent = parts.order.value; });
  parts.order.addEventListener("change", () => wish({ order: parts.order.value, pick: undefined }, true));
  parts.whole.addEventListener("click", () => wish({ order: undefined, pick: undefined }, true));
  parts.unpick.addEventListener("click", () => wish({ pick: undefined }, true));
  parts.compare.addEventListener("click", askEngines);
  parts.cancel.addEventListener("click", () => source.cancel());
  root.addEventListener("failed", (event) => fail(event.detail));
  root.addEventListener("dragover", (event) => { event.preventDefault(); event.stopPropagation(); root.classList.add("dropping"); });
  root.addEventListener("dragleave", () => root.classList.remove("dropping"));
  root.addEventListener("drop", (event) => {
    event.preventDefault();
    event.stopPropagation(); // a notebook around it would take the file as well
    root.classList.remove("dropping");
    if (event.dataTransfer.files[0] && source.upload) take(event.dataTransfer.files[0]);
  });
  new ResizeObserver(redraw).observe(root);

  let lastWidth = root.clientWidth;
  function redraw() {
    if (page.view === null || root.clientWidth === lastWidth) return;
    lastWidth = root.clientWidth;
    drawPanels(parts, page.view, page.state, actions);
  }

  parts.file.closest("label").hidden = !source.upload;
  parts.compare.closest("[data-panel]").hidden = !source.offers.includes("engines");
  parts.order.closest("[data-panel]").hidden = !source.offers.includes("order");
  for (const own of [parts.drive, parts.input, parts.output, parts.end, parts.system]) own.disabled = source.isFixed === true;
  drawDownloads(parts, root, source, () => queryOf(page.state));
  source.onReturn((query) => { page.state = stateOf(query || start.first); clearTimeout(page.timers.band); go(page.state); });
  // A page that was started with a table shows the system between the columns that are guessed.
  async function takeTable() {
    fill(parts.system, start.examples.map((own) => [own.name, own.title]), "");
    const { blob } = await source.file("table", "");
    await take(new File([blob], start.table));
  }

  page.state = stateOf(source.address() || start.first);
  if (start.table && !source.address()) takeTable();
  else go(page.state);
}
