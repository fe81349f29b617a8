/** Texts of the page in the language chosen: no other file holds any. */

import { el } from "./dom.js";

/** Languages that there are, each in texts/LANGUAGE.json. */
const LANGUAGES = ["en", "fr"];

let texts = {};
let language = "en";
let plural = new Intl.PluralRules("en");

/** The language to begin with: the one chosen before, or the first of the browser's that there is. */
export function firstLanguage() {
  const wanted = [localStorage.getItem("language"), ...navigator.languages.map((tag) => tag.slice(0, 2))];
  return wanted.find((tag) => LANGUAGES.includes(tag)) ?? "en";
}

/** Read the texts of a language. */
export async function readTexts(chosen) {
  const reply = await fetch(new URL(`texts/${chosen}.json`, import.meta.url));
  texts = await reply.json();
  language = chosen;
  plural = new Intl.PluralRules(chosen);
  document.documentElement.lang = chosen;
}

export function currentLanguage() {
  return language;
}

/** Whether there is a text of this key. */
export function hasText(key) {
  return key in texts;
}

/** Why something failed, by its code; empty where there is no text of it. */
export function reason(code) {
  return hasText(`reason.${code}`) ? t(`reason.${code}`) : "";
}

/** A text, with `{name}` replaced by values. */
export function t(key, values = {}) {
  return (texts[key] ?? key).replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** A text that counts: `KEY.one` or `KEY.other`, with `{n}`. */
export function tn(key, n, values = {}) {
  const form = `${key}.${plural.select(n)}`;
  return t(form in texts ? form : `${key}.other`, { n: number(n), ...values });
}

/** A number as the language writes it. */
export function number(value, digits = 0) {
  return value.toLocaleString(language, { maximumFractionDigits: digits });
}

/** A share as per cent. */
export function percent(share) {
  return share.toLocaleString(language, { style: "percent", maximumFractionDigits: 0 });
}

/** Seconds as h:mm:ss.t: a place in a recording. */
export function clock(seconds, digits = 1) {
  const unit = 10 ** digits;
  const rounded = Math.round(seconds * unit) / unit;
  const [h, m, s] = [Math.floor(rounded / 3600), Math.floor(rounded / 60) % 60, rounded % 60];
  const tail = s.toLocaleString(language, { minimumIntegerDigits: 2, minimumFractionDigits: digits, maximumFractionDigits: digits });
  return h ? `${h}:${String(m).padStart(2, "0")}:${tail}` : `${m}:${tail}`;
}

/** Seconds as a length: 0.52 s. */
export function length(seconds) {
  return t("unit.seconds", { s: number(seconds, 2) });
}

/** Hours, or minutes where they are few. */
export function hours(value) {
  return value < 1 ? t("unit.minutes", { n: number(value * 60) }) : t("unit.hours", { n: number(value, value < 10 ? 1 : 0) });
}

/** A day. */
export function day(at) {
  return new Date(at).toLocaleDateString(language, { dateStyle: "medium" });
}

/** Put the texts into the parts of index.html that name them. */
export function writeTexts(root = document) {
  for (const part of root.querySelectorAll("[data-text]")) part.textContent = t(part.dataset.text);
  for (const part of root.querySelectorAll("[data-label]")) part.setAttribute("aria-label", t(part.dataset.label));
  for (const part of root.querySelectorAll("[data-tip]")) part.title = t(part.dataset.tip);
  for (const part of root.querySelectorAll("[data-placeholder]")) part.placeholder = t(part.dataset.placeholder);
}

/** A key as it is shown beside what it does. It says nothing to screen readers, which have `aria-keyshortcuts`. */
export function keyMark(key) {
  return el("kbd", { aria: { hidden: "true" } }, key);
}
