// What the page shows, as it stands in its address: names and texts, what is as usual left out.

const KNOWN = ["system", "k", "order", "u", "T", "input", "output", "pick", "drive", "answer"];

export function stateOf(query) {
  const given = new URLSearchParams(query);
  const state = {};
  for (const key of KNOWN) if (given.get(key)) state[key] = given.get(key);
  return state;
}

export function queryOf(state) {
  const given = new URLSearchParams();
  for (const key of KNOWN) if (state[key]) given.set(key, state[key]);
  return given.toString();
}

// The same system seen otherwise keeps its choices; another system begins anew.
export function otherSystem(system, more = {}) {
  return { system, ...more };
}
