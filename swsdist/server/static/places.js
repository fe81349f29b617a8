/** Places: stretches of a document of the store, or of a sound that somebody gave. Times in seconds. */

import { t } from "./texts.js";

/** The place of a hit, in the first of its channels. */
export function placeOfHit(hit) {
  return { doc_id: hit.doc_id, channel: hit.channels[0], start: hit.start, end: hit.end, sound: null };
}

/** Names of recordings with the same sound as that of a hit or a list's. */
export function alsoIn({ also }) {
  return also?.length ? t("also.in", { names: also.join(", ") }) : null;
}

/** What a hit is known by while its order changes. */
export function hitKey(hit) {
  return [hit.doc_id, hit.channels[0], hit.start.toFixed(2), hit.end.toFixed(2)].join("|");
}

/** Whether a place overlaps another, which is in these channels, by more than half of the shorter: they are one moment. */
export function sameMoment(a, b, channels) {
  if ((a.sound ?? null) !== (b.sound ?? null)) return false;
  if (!a.sound && (a.doc_id !== b.doc_id || !channels.includes(a.channel))) return false;
  const shared = Math.min(a.end, b.end) - Math.max(a.start, b.start);
  return shared > 0.5 * Math.min(a.end - a.start, b.end - b.start);
}

/** The query of api/sound for a place with `pad` s on both sides, as far as there is sound. */
export function soundQuery({ sound, doc_id, channel, start, end }, pad) {
  return sound ? { sound, start, end, pad } : { doc_id, channel, start, end, pad };
}
