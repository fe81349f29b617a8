/** Events by which parts of the page follow each other. */

const listeners = {};

/** Call a function each time an event of this name is emitted. */
export function subscribe(name, listener) {
  (listeners[name] ??= []).push(listener);
}

/** Call the listeners of an event: "state", "entries", "word", "opened", "made", "hits", "choices", "changes", "undone", "followed",
 * "corrected", "located". */
export function emit(name, value = undefined) {
  for (const listener of listeners[name] ?? []) listener(value);
}
