/** What a person chose for this browser: kept when the page is loaded again. */

import { byId } from "./dom.js";
import { emit } from "./events.js";

const FIRST = { keys: true, autoplay: false, grouped: false, most: 8, forms: "", glosses: "" };

/** A choice: `keys` (single keys work), `autoplay` (a hit that is reached plays), `grouped`, `most` (examples), `forms` and
 * `glosses` (language tags of exports). */
export function choice(name) {
  const kept = localStorage.getItem(name);
  return kept === null ? FIRST[name] : JSON.parse(kept);
}

/** Keep a choice. */
export function choose(name, value) {
  localStorage.setItem(name, JSON.stringify(value));
  emit("choices");
}

/** Let an input of the page (a checkbox, a number or a text) set a choice. */
export function bindChoice(id, name) {
  const input = byId(id);
  const property = { checkbox: "checked", number: "valueAsNumber" }[input.type] ?? "value";
  input[property] = choice(name);
  input.addEventListener("change", () => {
    if (!Number.isNaN(input[property])) choose(name, input[property]);
  });
}
