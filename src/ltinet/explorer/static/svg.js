// SVG elements and scales; text from data is set as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

export function element(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function drawing(label, width, height) {
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label });
  svg.append(element("title", {}, label));
  return svg;
}

// Measure all widths before drawing: measuring in between would recompute the layout of the page each time.
export function measure(hosts) {
  for (const host of hosts) host.drawnWidth = host.clientWidth;
}

export function widthOf(host, least) {
  return Math.max(least, host.drawnWidth || host.clientWidth);
}

// Keep the keyboard focus when a drawing is replaced.
export function keepFocus(host, draw) {
  const active = host.getRootNode().activeElement;
  const selector = !host.contains(active) ? null : active.dataset.pick ? `[data-pick="${active.dataset.pick}"]` : active.localName;
  draw();
  if (selector) host.querySelector(selector)?.focus({ preventScroll: true });
}

export function text(x, y, words, attributes = {}) {
  return element("text", { x, y, ...attributes }, String(words));
}

// A scale has ticks, and a function `at` from values to pixels.
export function linearScale(low, high, from, to, apart = 75) {
  if (!(high > low)) [low, high] = low === 0 ? [-1, 1] : [low - Math.abs(low) / 2, low + Math.abs(low) / 2];
  let step = niceStep((high - low) / Math.max(2, Math.abs(to - from) / apart));
  if (Math.floor(high / step) - Math.ceil(low / step) < 2) step = niceStep(step / 2.5); // two ticks are too few
  const ticks = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-9; value += step) {
    ticks.push(Math.abs(value) < step * 1e-9 ? 0 : value);
  }
  const at = (value) => from + ((value - low) / (high - low)) * (to - from);
  return { at, ticks, low, high, name: (value) => shortNumber(value, step) };
}

export function logScale(low, high, from, to) {
  if (!(high > low * 1.0001)) [low, high] = [low / 3, high * 3];
  const [first, last] = [Math.log10(low), Math.log10(high)];
  const at = (value) => from + ((Math.log10(value) - first) / (last - first)) * (to - from);
  if (last - first < 0.6) {
    const plain = linearScale(low, high, from, to);
    return { ...plain, at, low, high, ticks: plain.ticks.filter((tick) => tick >= low && tick > 0) };
  }
  const every = Math.max(1, Math.ceil((last - first) / Math.max(2, Math.abs(to - from) / 55)));
  const pixels = Math.abs(to - from) / (last - first); // per decade
  const [most, more] = from > to ? [80, 45] : [170, 110]; // labels need more pixels side by side
  const between = pixels > most ? [1, 2, 5] : pixels > more ? [1, 3] : [1];
  const ticks = [];
  for (let power = Math.floor(first); power <= last + 1e-9; power += every) ticks.push(...between.map((own) => own * 10 ** power));
  const within = ticks.filter((tick) => tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9));
  return { at, ticks: within, low, high, name: between.length > 1 ? shortNumber : powerOfTen };
}

// Logarithmic on both sides of zero where sizes are far apart, linear where they are not.
export function signedScale(values, from, to) {
  const sizes = values.map(Math.abs).filter((size) => size > 0).sort((a, b) => a - b);
  const largest = sizes.at(-1) ?? 1;
  const middle = sizes[Math.floor(sizes.length / 2)] ?? 1;
  const [low, high] = [Math.min(...values, 0), Math.max(...values, 0)];
  const margin = (high - low || 1) * 0.06;
  if (largest < 15 * middle) return linearScale(low - margin, high + margin, from, to, from > to ? 42 : 75);
  const small = Math.max(sizes[Math.floor(sizes.length / 10)], largest * 1e-6);
  const bend = (value) => Math.asinh(value / small);
  const plain = linearScale(bend(low) - 0.4, bend(high) + 0.4, from, to);
  const powers = [];
  for (let power = Math.ceil(Math.log10(small)); power <= Math.log10(largest); power += 1) powers.push(10 ** power);
  const every = Math.max(1, Math.ceil(powers.length / Math.max(1, Math.abs(to - from) / 130)));
  const labelled = powers.filter((_, index) => (powers.length - 1 - index) % every === 0);
  const ticks = [...labelled.map((size) => -size), 0, ...labelled].filter((tick) => tick >= low && tick <= high);
  const name = (value) => (value < 0 ? `−${powerOfTen(-value)}` : powerOfTen(value));
  return { at: (value) => plain.at(bend(value)), ticks, low, high, name };
}

function niceStep(rough) {
  const unit = 10 ** Math.floor(Math.log10(rough));
  const share = rough / unit;
  return unit * (share > 5 ? 10 : share > 2 ? 5 : share > 1 ? 2 : 1);
}

const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

export function powerOfTen(value) {
  if (value === 0) return "0";
  const power = Math.round(Math.log10(value));
  if (power >= -2 && power <= 3) return String(Number(value.toPrecision(3)));
  return `10${[...String(power)].map((digit) => RAISED[digit]).join("")}`;
}

// Format a number with as many digits as distinguish it from the next tick.
export function shortNumber(value, step = 0) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  const plain = size >= 1e-3 && size < 1e5
    ? String(Number(value.toFixed(Math.max(0, Math.min(12, Math.ceil(-Math.log10(step || size / 1e3) + 1e-9))))))
    : value.toExponential(1).replace(/\.0e/, "e").replace("e+", "e");
  return plain.replace("-", "−");
}

export function scientific(value, digits = 3) {
  if (value === null || value === undefined) return "unknown";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e5)) return value.toExponential(digits - 1).replace("e+", "e");
  return String(Number(value.toPrecision(digits)));
}
