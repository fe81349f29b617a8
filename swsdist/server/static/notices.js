/** What the page tells: failures with their remedy, and short news for eyes and screen readers. */

import { change } from "./api.js";
import { byId, el } from "./dom.js";
import { emit } from "./events.js";
import { t } from "./texts.js";

/** Refusals that may not come again: of who asks, and of haste. */
const PASSING = [401, 403, 408, 429];
const MISSING = "missing-recording";

let fading = 0;

/** Say something briefly; screen readers read it when they are free. What the page shows elsewhere need not be `seen` here. */
export function say(text, { seen = true } = {}) {
  const place = byId("said");
  place.textContent = text;
  place.classList.toggle("shown", seen);
  clearTimeout(fading);
  fading = setTimeout(() => place.classList.remove("shown"), 6000);
}

/**
 * Show a failure until it is closed, or until what failed is tried again, which is offered where that may help.
 * @param about what failed: the last failure about it is shown
 */
export function showFailure(error, again = null, about = "") {
  if (error.name === "AbortError") return;
  byId("said").classList.remove("shown"); // it has begun, that said
  if (error.remedy === undefined) console.error(error);
  const notice = el("div.failure", { attr: { role: "alert" }, data: { about, code: error.code ?? "" } });
  const close = () => notice.remove();
  const lasts = error.status >= 400 && error.status < 500 && !PASSING.includes(error.status);
  const retry = again && !lasts && el("button", { type: "button", on: { click: () => (close(), again()) } }, t("failure.again"));
  notice.append(
    el("p", {}, el("strong", {}, error.message), " ", error.remedy ?? t("failure.page.remedy")),
    error.code === MISSING ? folderField(again) : "",
    el("div.row", {}, retry ?? "", el("button.plain", { type: "button", on: { click: close } }, t("failure.close"))),
  );
  const place = byId("failures");
  for (const other of [...place.children]) {
    const same = error.code === MISSING ? other.dataset.code === MISSING : other.textContent === notice.textContent;
    if (same) other.remove();
  }
  clearFailures(about);
  place.append(notice);
}

/** What failed was done. */
export function clearFailures(about) {
  for (const notice of [...byId("failures").children]) if (about && notice.dataset.about === about) notice.remove();
}

/** Where the recordings are, if they are not where they were: then sounds that were missing are read. */
function folderField(again) {
  const input = el("input", { type: "text", required: true, autocomplete: "off", spellcheck: "false" });
  const find = async (event) => {
    event.preventDefault();
    const found = await attempt(() => change("POST", "recordings-folder", { folder: input.value.trim() }));
    if (!found) return;
    say(t("folder.found", { there: found.there, of: found.of }));
    for (const notice of byId("failures").querySelectorAll(`[data-code=${MISSING}], [data-code=not-the-recordings]`)) notice.remove();
    emit("located");
    again?.();
  };
  return el("form.row", { on: { submit: find } }, el("label.grow", {}, t("folder.where"), " ", input), el("button", {}, t("folder.find")));
}

/** Do something, and show it if it fails; gives null then. `about`: see `showFailure`. */
export async function attempt(work, about = "") {
  try {
    const done = await work();
    clearFailures(about);
    return done;
  } catch (error) {
    showFailure(error, () => attempt(work, about), about);
    return null;
  }
}
