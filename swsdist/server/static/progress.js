/** How far a folder is indexed, at the top of the page. */

import { Failure } from "./api.js";
import { byId } from "./dom.js";
import { subscribe } from "./events.js";
import { showFailure } from "./notices.js";
import { hours as hoursOf, number, percent, t, tn } from "./texts.js";

export function startProgress() {
  let shown = null;
  subscribe("state", ({ error }) => {
    if (error && error.error !== shown) showFailure(new Failure(error.error, error.remedy, error.code));
    shown = error?.error ?? null;
  });
  subscribe("state", ({ indexing, hours, recordings, ready, store, name }) => {
    byId("indexing").hidden = !indexing;
    byId("store-name").textContent = name;
    byId("store-name").title = store;
    byId("store-size").textContent = tn("store.size", recordings, { length: hoursOf(hours) });
    if (!indexing) return;
    const { part, documents, of, text } = indexing;
    byId("indexing-part").value = part;
    const values = { part: percent(part), documents: number(documents), of: number(of) };
    byId("indexing-words").textContent = t(ready ? "indexing.ready" : "indexing.first", values);
    byId("indexing-text").textContent = text ?? "";
  });
}
