/** How many true ones are expected beyond those judged, and whether it is worth going on. */

import { byId } from "./dom.js";
import { subscribe } from "./events.js";
import { found } from "./search.js";
import { hasText, number, t, tn } from "./texts.js";

export function startLikely() {
  subscribe("hits", show);
  subscribe("word", show);
}

function show() {
  const summary = found.summary;
  byId("expected").hidden = !summary;
  if (!summary) return;
  const { yes, no, expected, low, high, listed, worth, why } = summary;
  byId("expected-number").textContent = `${number(Math.round(expected))}`;
  byId("expected-words").textContent = tn("likely.expected", Math.round(expected));
  byId("expected-range").textContent = t("likely.range", { low: number(Math.floor(low)), high: number(Math.ceil(high)) });
  byId("expected-listed").textContent = tn("likely.listed", Math.round(listed));
  byId("expected-judged").textContent = t("likely.judged", { yes: number(yes), no: number(no) });
  const most = Math.max(1, yes + high);
  const widths = { seen: yes / most, likely: expected / most };
  for (const [part, share] of Object.entries(widths)) byId(`expected-${part}`).style.width = `${100 * share}%`;
  byId("worth").dataset.worth = worth;
  const reason = why && hasText(`why.${why}`) ? t(`why.${why}`) : "";
  byId("worth").textContent = [t(worth ? "likely.worth" : "likely.enough"), reason].filter(Boolean).join(" ");
}
