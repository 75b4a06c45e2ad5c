// The page: from a state to what is seen, and from what somebody does to the next state.

import { columnsForm } from "./columns.js";
import { drawDownloads } from "./downloads.js";
import { bandSentence, enginesTable } from "./facts.js";
import { newestFirst } from "./newest.js";
import { drawPanels, drawResponse } from "./panels.js";
import { budgetSlider } from "./slider.js";
import { otherSystem, queryOf, stateOf } from "./state.js";

const SOON = 250; // milliseconds before a wait is shown, the address written or a band asked for

export async function startExplorer(root, source) {
  const parts = {};
  for (const own of root.querySelectorAll("[data-id]")) parts[own.dataset.id] = own;
  const start = await source.start();
  const page = { view: null, state: {}, waits: {}, timers: {} };

  const go = newestFirst({
    ask: (state) => source.ask("view", queryOf(state)), show, fail, busy,
    leaves: (one, other) => one.system !== other.system || one.order !== other.order,
    abandon: () => source.cancel("view"),
  });
  const slider = budgetSlider(parts, (budget, settled) => wish({ k: String(budget) }, settled));
  const openColumns = columnsForm(parts, {
    identify: (file, drive, answer) => turn(otherSystem(`file:${file.hash}`, { drive, answer })),
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

  // Browsers allow few changes of the address in a second: the last of a gesture is what counts.
  function writeAddress(settled) {
    clearTimeout(page.timers.address);
    page.timers.address = setTimeout(() => {
      page.timers.address = null;
      source.remember(queryOf(page.state));
    }, settled ? SOON : 2 * SOON);
  }

  function show(view, state, isLast) {
    page.view = view;
    parts.error.hidden = true;
    drawPanels(parts, view, state, { pick: (pick) => wish({ pick }, true), tell: (words) => { parts.equation.textContent = words; }, rung: slider.to });
    slider.show(view.trade, view.k, isLast && document.activeElement !== parts.budget);
    if (isLast) showControls(view, state);
    if (page.comparing) stopEngines();
    parts.engines.replaceChildren();
    parts.band.textContent = "";
    root.dataset.shown = queryOf(state);
    root.dataset.draws = String(Number(root.dataset.draws ?? 0) + 1);
    if (isLast) page.timers.band = setTimeout(() => askBand(view, state), source.isInstant ? 0 : SOON);
  }

  function showControls(view, state) {
    showSystems(state, view.title);
    fill(parts.input, view.facts.inputs.map((name, index) => [String(index + 1), name]), state.input ?? "1");
    fill(parts.output, view.facts.outputs.map((name, index) => [String(index + 1), name]), state.output ?? "1");
    const drives = [["step", "a step"], ["impulse", "an impulse"], ["chirp", "a chirp"], ...tables().map((own) => [`file:${own.hash}`, own.name])];
    fill(parts.drive, drives, state.u ?? "step");
    if (document.activeElement !== parts.end) parts.end.value = String(Number(view.response.end.toPrecision(5)));
    parts.input.disabled = (state.u ?? "").startsWith("file:");
    const most = Math.min(view.facts.n_given - 1, 100);
    parts.order.max = String(Math.max(most, 1));
    parts.order.disabled = most < 1 || !source.offers.includes("order");
    parts.order.value = String(view.reduction ? view.reduction.order : most);
    parts["order-value"].textContent = view.reduction ? String(view.reduction.order) : `all ${view.facts.n_given}`;
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
    parts.band.textContent = "The certified band is being computed …";
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
    parts.engines.textContent = "The engines run …";
    try {
      const found = await source.ask("engines", queryOf(page.state));
      if (page.view === view) parts.engines.replaceChildren(enginesTable(found));
    } catch (error) {
      if (page.comparing === view) parts.engines.textContent = error.message;
    }
    if (page.comparing === view) stopEngines(false);
  }

  function stopEngines(isRunning = true) {
    page.comparing = null;
    parts.compare.textContent = "Compare them";
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

  // Views and uploads may wait at once: the page is busy until neither does.
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
    }, SOON);
  }

  async function take(file) {
    busy(true, performance.now(), "upload");
    try {
      if (file.size > start.most_bytes) throw new Error(`${file.name} is too large: at most ${start.most_bytes / 2 ** 20} MB are taken here.`);
      const told = await source.upload(file);
      start.files = [...start.files.filter((own) => own.hash !== told.hash), told];
      parts.error.hidden = true;
      if (told.kind === "table") openColumns(told);
      else turn(otherSystem(`file:${told.hash}`));
    } catch (error) {
      fail(error);
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
    if (table) openColumns(table);
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
    drawPanels(parts, page.view, page.state, { pick: (pick) => wish({ pick }, true), tell: (words) => { parts.equation.textContent = words; }, rung: slider.to });
  }

  parts.file.closest("label").hidden = !source.upload;
  parts.compare.closest("[data-panel]").hidden = !source.offers.includes("engines");
  parts.order.closest("[data-panel]").hidden = !source.offers.includes("order");
  for (const own of [parts.drive, parts.input, parts.output, parts.end, parts.system]) own.disabled = source.isFixed === true;
  drawDownloads(parts, root, source, () => queryOf(page.state));
  source.onReturn((query) => { page.state = stateOf(query || start.first); clearTimeout(page.timers.band); go(page.state); });
  page.state = stateOf(source.address() || start.first);
  go(page.state);
}
