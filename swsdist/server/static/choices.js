/** What a person chose for this browser: kept when the page is loaded again. */

import { byId } from "./dom.js";
import { emit } from "./events.js";

const FIRST = { keys: true, autoplay: false, grouped: false, most: 8 };

/** A choice: `keys` (single keys work), `autoplay` (a hit that is reached plays), `grouped`, `most` (examples). */
export function choice(name) {
  const kept = localStorage.getItem(name);
  return kept === null ? FIRST[name] : JSON.parse(kept);
}

/** Keep a choice. */
export function choose(name, value) {
  localStorage.setItem(name, JSON.stringify(value));
  emit("choices");
}

/** Let an input of the page (a checkbox or a number) set a choice. */
export function bindChoice(id, name) {
  const input = byId(id);
  const property = input.type === "checkbox" ? "checked" : "valueAsNumber";
  input[property] = choice(name);
  input.addEventListener("change", () => {
    if (!Number.isNaN(input[property])) choose(name, input[property]);
  });
}
