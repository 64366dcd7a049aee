/** The operators' operations that their page calls, with its own login and sessions. */
import { getJson, sendJson } from './http.js';
import type { OperatorSession } from './operator-shapes.js';

export const operatorApi = Object.freeze({
  /** Opens a session with the token of a one-time link. */
  logIn: (token: string) => sendJson<{ session: OperatorSession }>('POST', '/console/login', { token }),
  logOut: () => sendJson<null>('POST', '/console/logout'),
  session: () => getJson<{ session: OperatorSession; now: string }>('/console/session'),
});
