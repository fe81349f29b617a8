/** The tokens of an entry: places judged for it, each heard, corrected, taken as an example, or split off. */

import { change } from "./api.js";
import { byId, el, fill } from "./dom.js";
import { attempt, say } from "./notices.js";
import { go } from "./routes.js";
import { Stretch } from "./stretch.js";
import { clock, day, length, t, tn } from "./texts.js";
import { nameOf, readEntries, readTokens, word } from "./word.js";

const rows = new Map(); // token_id: {row, stretch, written}
const chosen = new Set();

export function startTokens() {
  byId("split").addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(split);
  });
  byId("tokens-only").addEventListener("change", showTokens);
}

/** Show the tokens; rows whose token is the same stay as they are. */
export function showTokens() {
  const only = byId("tokens-only").value;
  const tokens = word.tokens.filter((token) => only === "all" || token.verdict === only);
  const ids = new Set(tokens.map((token) => token.token_id));
  for (const [id, { stretch }] of rows) {
    if (ids.has(id)) continue;
    stretch.close();
    rows.delete(id);
    chosen.delete(id);
  }
  byId("tokens-count").textContent = tn("tokens.count", tokens.length);
  fill(byId("tokens"), ...tokens.map(rowOf));
  showChosen();
}

function rowOf(token) {
  const written = JSON.stringify(token);
  const kept = rows.get(token.token_id);
  if (kept?.written === written) return kept.row;
  kept?.stretch.close();
  const made = makeRow(token);
  rows.set(token.token_id, { ...made, written });
  return made.row;
}

function makeRow(token) {
  const { place } = token;
  const name = nameOf(token);
  const label = t("tokens.label", { name, at: clock(place.start) });
  const keep = (fields) => attempt(async () => {
    await change("PATCH", `tokens/${token.token_id}`, fields);
    say(t("entry.kept"));
    await Promise.all([readTokens(), readEntries()]);
  });
  const moved = (start, end) => keep({ place: { ...place, start, end } });
  const stretch = new Stretch(place, { pad: 0.4, changed: moved });
  for (const handle of stretch.handles) handle.dataset.focus = `${handle.dataset.side}-${token.token_id}`;
  const field = (of) => el("input", {
    type: "text", value: token[of] ?? "", placeholder: t(`tokens.${of}`), data: { focus: `${of}-${token.token_id}` },
    aria: { label: `${t(`tokens.${of}`)}, ${label}` }, on: { change: ({ target }) => keep({ [of]: target.value.trim() }) },
  });
  const verdict = el("select", {
    data: { focus: `verdict-${token.token_id}` }, aria: { label: `${t("hit.verdict")}, ${label}` },
    on: { change: ({ target }) => keep({ verdict: target.value }) },
  }, ...["yes", "no", "unsure"].map((value) => el("option", { value, selected: value === token.verdict }, t(`verdict.${value}`))));
  const example = el("input", {
    type: "checkbox", checked: token.example, disabled: token.verdict !== "yes", data: { focus: `example-${token.token_id}` },
    on: { change: ({ target }) => keep({ example: target.checked }) },
  });
  const box = el("input", {
    type: "checkbox", checked: chosen.has(token.token_id), data: { focus: `choose-${token.token_id}` },
    aria: { label: t("tokens.choose", { label }) },
    on: { change: () => (chosen[box.checked ? "add" : "delete"](token.token_id), showChosen()) },
  });
  const play = el("button.plain.play", { type: "button", aria: { label: t("examples.play", { label }) },
    on: { click: () => stretch.play() } }, "▶");
  const drop = el("button.plain", { type: "button", on: { click: () => remove(token) },
    aria: { label: t("tokens.remove", { label }) } }, "✕");
  const gone = token.path_known === false ? "tokens.gone" : token.replaced ? "tokens.replaced" : null;
  const who = t("tokens.who", { person: token.person, at: day(token.at) });
  const row = el("li.token", { data: { verdict: token.verdict, token: token.token_id } },
    el("div.row", {}, box, play, el("span.what", {}, el("span", {}, name),
      el("span.quiet", {}, ` ${clock(place.start)} · ${length(place.end - place.start)} · ${who}`)), drop),
    gone && el("p.trouble", {}, t(gone)), stretch.element,
    el("div.fields", {}, verdict, el("label", {}, example, " ", t("tokens.example")), field("variant"), field("speaker"), field("note")));
  return { row, stretch };
}

function showChosen() {
  byId("split").hidden = !word.tokens.length;
  byId("split-button").disabled = !chosen.size;
  byId("split-count").textContent = chosen.size ? tn("tokens.chosen", chosen.size) : t("tokens.chosen.none");
}

async function remove(token) {
  await attempt(async () => {
    await change("DELETE", `tokens/${token.token_id}`);
    say(t("tokens.removed"));
    await Promise.all([readTokens(), readEntries()]);
  });
}

/** The chosen tokens become an entry of their own. */
async function split() {
  const form = byId("split-form").value.trim();
  if (!form || !chosen.size) return;
  const entry = await change("POST", `entries/${word.entry.entry_id}/split`, { tokens: [...chosen], form });
  chosen.clear();
  byId("split-form").value = "";
  await readEntries();
  say(t("tokens.split", { form }));
  go("glossary", entry.entry_id);
}
