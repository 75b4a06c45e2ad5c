// Downloads: files from the server, and the drawings of the page.

const FILES = [["network", "network file"], ["script", "script"], ["c", "C"], ["onnx", "ONNX"], ["page", "shareable page"]];
const FIGURES = ["architecture", "trade", "poles", "response", "bode", "difference", "phase", "before", "after"];
const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size", "fill-opacity", "stroke-opacity"];

export function drawDownloads(parts, root, source, current) {
  const offered = FILES.filter(([kind]) => source.offers.includes(kind));
  const buttons = offered.map(([kind, name]) => button(name, async () => save(await source.file(kind, current()))));
  const figures = FIGURES.map((name) => button(`${name}.svg`, () => {
    const svg = root.querySelector(`[data-id="${name}"] svg`);
    if (svg) save({ name: `${name}.svg`, blob: new Blob([standalone(svg)], { type: "image/svg+xml" }) });
  }));
  parts.downloads.replaceChildren(...buttons, ...figures);
}

function button(name, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = name;
  made.addEventListener("click", async () => {
    made.disabled = true;
    try {
      await act();
    } catch (error) {
      made.dispatchEvent(new CustomEvent("failed", { bubbles: true, detail: error }));
    } finally {
      made.disabled = false;
    }
  });
  return made;
}

function save({ name, blob }) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// Return a drawing as SVG text with its styles as attributes, which other programs need.
export function standalone(svg) {
  const copy = svg.cloneNode(true);
  const [originals, copies] = [svg.querySelectorAll("*"), copy.querySelectorAll("*")];
  originals.forEach((element, index) => {
    const style = getComputedStyle(element);
    for (const name of STYLES) copies[index].setAttribute(name, style.getPropertyValue(name));
    copies[index].removeAttribute("class");
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return new XMLSerializer().serializeToString(copy);
}
