/** What the server says of itself (api/state), asked again while it indexes and every so often. */

import { get } from "./api.js";
import { emit } from "./events.js";

export const server = { state: null };

/** Read the state, and emit it to the page. */
export async function readState() {
  server.state = await get("state");
  emit("state", server.state);
}
