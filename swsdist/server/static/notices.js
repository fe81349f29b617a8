/** What the page tells: failures with their remedy, and short news for eyes and screen readers. */

import { change } from "./api.js";
import { byId, el } from "./dom.js";
import { emit } from "./events.js";
import { t } from "./texts.js";

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

/** Show a failure until it is closed, or until what failed is tried again. */
export function showFailure(error, again = null) {
  if (error.name === "AbortError") return;
  if (error.remedy === undefined) console.error(error);
  const notice = el("div.failure", { attr: { role: "alert" }, data: { code: error.code ?? "" } });
  const close = () => notice.remove();
  const retry = again && el("button", { type: "button", on: { click: () => (close(), again()) } }, t("failure.again"));
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
  place.append(notice);
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

/** Do something, and show it if it fails; gives null then. `again` does the same once more. */
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    showFailure(error, () => attempt(work));
    return null;
  }
}
