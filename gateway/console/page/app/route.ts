/**
 * The address of a view: the fragment of the page's address, such as `#/locks/A4:C1:38:F0:E1:D2?from=…`. So each view
 * can be reloaded and shared, and the gateway serves the same page for all of them. Pure.
 */

/** A view and its parameters. */
export interface Route {
  /** The name of the screen, the first part of the path; `now` for an empty path. */
  readonly screen: string;
  /** The further parts of the path, decoded. */
  readonly parts: readonly string[];
  readonly query: Readonly<Record<string, string>>;
}

/** The screen that an empty address shows. */
export const FIRST_SCREEN = 'now';

/** Reads a fragment with or without its `#`. A fragment that is no address of a view is the first screen. */
export function parseRoute(fragment: string): Route {
  // Splits at the first question mark only.
  const [path = '', query = ''] = fragment.replace(/^#/, '').split(/\?(.*)/s);
  const [screen = '', ...parts] = path.split('/').filter(Boolean).map(decode);
  return { screen: screen || FIRST_SCREEN, parts, query: Object.fromEntries(new URLSearchParams(query)) };
}

/** The fragment of a view, with its `#`. Empty values of the query are left out; the colons of a MAC stay readable. */
export function routeTo(screen: string, parts: readonly string[] = [], query: Readonly<Record<string, string>> = {}) {
  const path = [screen, ...parts].map((part) => encodeURIComponent(part).replaceAll('%3A', ':')).join('/');
  const given = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ''));
  return `#/${path}${given.size > 0 ? `?${given}` : ''}`;
}

/** A part of a path; unchanged if its percent signs are malformed. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
