/** URLs of stores in databases, as the setting `--store` has them. Pure; knows no driver. */

const SCHEMES: readonly string[] = ['postgres:', 'postgresql:'];

/** The form of such a URL, for error messages. */
export const STORE_URL_FORM = 'postgres://USER:PASSWORD@HOST:PORT/DATABASE';

/** Returns the URL in the form that `openStore` takes; undefined if the text is no such URL, or names no database. */
export function readStoreUrl(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const { protocol, pathname } = new URL(text);
  if (!SCHEMES.includes(protocol) || !/^\/[^/]+$/.test(pathname)) return undefined;
  return `postgres:${text.slice(text.indexOf(':') + 1)}`;
}

/** Where a store is, without its user, its password and its options: to be shown and logged. */
export function shownStoreUrl(text: string): string {
  if (!URL.canParse(text)) return '…';
  const { hostname, port, pathname } = new URL(text);
  return `postgres://${hostname}${port === '' ? '' : `:${port}`}${pathname}`;
}
