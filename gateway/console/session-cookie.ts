/**
 * The cookies of the console's sessions. Cookies ignore ports, so merchants' and operators' have different names. Over
 * HTTPS they have the prefix `__Host-`, with which a browser accepts them only from this host and over HTTPS. Pure.
 */

export type ConsoleName = 'merchant' | 'operator';

/** The properties of a request that decide the cookie's name and attributes. */
export interface CookiePlace {
  readonly console: ConsoleName;
  readonly isHttps: boolean;
}

function nameOf({ console, isHttps }: CookiePlace): string {
  return `${isHttps ? '__Host-' : ''}lockgate_${console}`;
}

/** The session's token in a request's Cookie header; undefined if there is none. */
export function tokenInCookies(header: string | undefined, place: CookiePlace): string | undefined {
  const prefix = `${nameOf(place)}=`;
  const cookie = (header ?? '')
    .split(';')
    .map((each) => each.trim())
    .find((each) => each.startsWith(prefix));
  return cookie?.slice(prefix.length);
}

/** The value of Set-Cookie for a session. No script can read it, and no other site can make a browser send it. */
export function sessionCookie(token: string, maxAgeSeconds: number, place: CookiePlace): string {
  const secure = place.isHttps ? '; Secure' : '';
  return `${nameOf(place)}=${token}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict${secure}`;
}

/** The value of Set-Cookie that removes a session's cookie. */
export function endedCookie(place: CookiePlace): string {
  return sessionCookie('', 0, place);
}
