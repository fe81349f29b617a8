/** Parts of the page tell each other what changed. */

const listeners = {};

/** Call a function each time that something of this name happened. */
export function on(name, listener) {
  (listeners[name] ??= []).push(listener);
}

/** Something happened: "state", "entries", "word", "hits", "progress", "route". */
export function tell(name, value = undefined) {
  for (const listener of listeners[name] ?? []) listener(value);
}
