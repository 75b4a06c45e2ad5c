// Slider of the limit on cond(T): points of the trade-off curve are evenly spaced, limits between them interpolated.

import { scientific } from "./svg.js";

const LABELS = 7;

export function budgetSlider(parts, wish) {
  let budgets = [1];

  function budgetAt(value) {
    const place = Math.min(Math.floor(value), budgets.length - 1);
    const [low, high] = [budgets[place], budgets[place + 1]];
    if (high === undefined || value === place) return low;
    const between = low * (high / low) ** (value - place);
    const short = Number(between.toPrecision(5));
    return short >= low && short < high ? short : Math.min(Math.max(between, low), high);
  }

  function to(place) {
    const bounded = Math.max(0, Math.min(budgets.length - 1, place));
    parts.budget.value = String(bounded);
    wish(budgets[bounded], true);
  }

  const STEPS = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 5, PageDown: -5 };
  parts.budget.addEventListener("keydown", (event) => {
    const value = Number(parts.budget.value);
    if (event.key in STEPS) {
      const step = STEPS[event.key];
      to((step > 0 ? Math.floor(value) : Math.ceil(value)) + step);
    } else if (event.key === "Home") to(0);
    else if (event.key === "End") to(budgets.length - 1);
    else return;
    event.preventDefault();
  });
  parts.budget.addEventListener("input", () => wish(budgetAt(Number(parts.budget.value)), false));
  parts.budget.addEventListener("change", () => wish(budgetAt(Number(parts.budget.value)), true));

  function valueOf(budget, place) {
    const [low, high] = [budgets[place], budgets[place + 1]];
    if (high === undefined || !(budget > low)) return place;
    return Math.min(place + 0.999, place + Math.log(budget / low) / Math.log(high / low));
  }

  function drawTicks() {
    const count = budgets.length;
    const every = Math.max(1, Math.ceil((count - 1) / LABELS));
    parts.ticks.replaceChildren(...budgets.map((budget, place) => {
      const tick = document.createElement("span");
      tick.style.left = `${count > 1 ? (100 * place) / (count - 1) : 0}%`;
      const isLast = place === count - 1;
      if (isLast || (place % every === 0 && count - 1 - place >= every * 0.6)) tick.textContent = scientific(budget);
      return tick;
    }));
  }

  return {
    to,
    show(view, budget, follow) {
      const changed = view.budgets.length !== budgets.length || view.budgets.some((own, index) => own !== budgets[index]);
      if (changed) {
        budgets = view.budgets;
        parts.budget.max = String(Math.max(1, budgets.length - 1));
        parts.budget.disabled = budgets.length < 2;
        drawTicks();
      }
      if (follow || changed) parts.budget.value = String(valueOf(budget, view.place));
      const limit = `κ = ${scientific(budget, 5)}`;
      parts["budget-value"].textContent = budgets.length < 2 ? `${limit}: all limits give this network` : `${limit}, network ${view.place + 1} of ${budgets.length}`;
      parts.budget.setAttribute("aria-valuetext", `${limit}: ${view.connections[view.place]} connections, ${view.layers[view.place]} layers`);
    },
  };
}
