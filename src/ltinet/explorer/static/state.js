// State of the page in its address; default values are omitted.

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

// State of another system, without the choices made for the last one.
export function otherSystem(system, more = {}) {
  return { system, ...more };
}
