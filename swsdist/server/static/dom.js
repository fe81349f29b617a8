/** Elements of the page: made in one call, filled, found. */

/**
 * Make an element.
 * @param {string} tag name of the element, perhaps with classes: "button.plain.small"
 * @param {object} set properties; `on` holds listeners, `data` data attributes, `aria` ARIA attributes, `attr` others
 * @param {...(Node|string|null)} children
 */
export function el(tag, set = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  if (classes.length) element.classList.add(...classes);
  const { on = {}, data = {}, aria = {}, attr = {}, ...properties } = set;
  for (const [event, listener] of Object.entries(on)) element.addEventListener(event, listener);
  for (const [key, value] of Object.entries(data)) element.dataset[key] = value;
  for (const [key, value] of Object.entries(aria)) element.setAttribute(`aria-${key}`, value);
  for (const [key, value] of Object.entries(attr)) element.setAttribute(key, value);
  Object.assign(element, properties);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** The element of index.html with this id. */
export function byId(id) {
  return document.getElementById(id);
}

/** Replace what an element holds; the focus stays with the element of the same `data-focus`, if there is one. */
export function fill(parent, ...children) {
  const focus = parent.contains(document.activeElement) ? document.activeElement.dataset.focus : undefined;
  parent.replaceChildren(...children.filter((child) => child !== null && child !== undefined));
  if (focus) parent.querySelector(`[data-focus="${CSS.escape(focus)}"]`)?.focus();
}

/** Make the children of an element these, in this order, moving as few as possible. */
export function arrange(parent, children) {
  const kept = new Set(children);
  for (const child of [...parent.children]) if (!kept.has(child)) child.remove();
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  children.forEach((child, index) => {
    if (parent.children[index] !== child) parent.insertBefore(child, parent.children[index] ?? null);
  });
  if (focused && document.activeElement !== focused && parent.contains(focused)) focused.focus({ preventScroll: true });
}

/** Whether typing goes into this element, so that single keys are letters. */
export function takesText(element) {
  if (!element?.matches) return false;
  if (element.matches("input")) return !["checkbox", "radio", "button", "range", "file"].includes(element.type);
  return element.matches("textarea, select");
}
