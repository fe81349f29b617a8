/** Where to search: folder, recording, speaker, dates. */

import { byId, el, fill } from "./dom.js";
import { subscribe } from "./events.js";
import { t } from "./texts.js";

const PARTS = ["folder", "recording", "speaker", "since", "until"];

function input(part) {
  return byId(`narrow-${part}`);
}

/** What the search is narrowed to: only what is set. */
export function narrowed() {
  const set = PARTS.map((part) => [part, input(part).value.trim()]).filter(([, value]) => value);
  return Object.fromEntries(set);
}

function showSummary() {
  const set = Object.values(narrowed());
  byId("narrow-summary").textContent = set.length ? set.join(" · ") : t("narrow.everything");
  byId("narrow-clear").hidden = !set.length;
}

function offer(select, values) {
  if (select.options.length === values.length + 1) return;
  const chosen = select.value;
  fill(select, el("option", { value: "" }, t("narrow.any")), ...values.map((value) => el("option", { value }, value)));
  select.value = chosen;
}

export function startNarrow() {
  subscribe("state", (state) => {
    for (const part of ["folder", "speaker"]) {
      offer(input(part), state[`${part}s`] ?? []);
      input(part).closest("label").hidden = !state[`${part}s`]?.length;
    }
    for (const part of ["since", "until"]) {
      input(part).closest("label").hidden = !state.dates;
      if (state.dates) [input(part).min, input(part).max] = state.dates;
    }
    showSummary();
  });
  byId("narrow").addEventListener("input", showSummary);
  byId("narrow-clear").addEventListener("click", () => {
    for (const part of PARTS) input(part).value = "";
    showSummary();
    byId("narrow-folder").focus();
  });
}
