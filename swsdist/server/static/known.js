/** What the server says of itself (api/state), asked again while it indexes and every so often. */

import { get } from "./api.js";
import { tell } from "./events.js";

export const known = { state: null };

/** Ask for the state, and tell the page. */
export async function readState() {
  known.state = await get("state");
  tell("state", known.state);
}
