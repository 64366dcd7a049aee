/**
 * What the command line and the page say about a change in the audit log: who made it, and what it changed. The texts
 * may contain what merchants and clients sent; whoever shows them makes them harmless. Pure.
 */

/** Members of the changed object, by name. */
type Members = Readonly<Record<string, unknown>>;

/** An entry of the audit log, as the operators' interface returns it. */
export interface AuditEntryJson {
  readonly id: number;
  readonly at: string;
  readonly actor: string;
  readonly address: string | null;
  readonly agent: string | null;
  readonly os_user: string | null;
  readonly token: string | null;
  readonly merchant: string | null;
  readonly user: string | null;
  readonly key: string | null;
  readonly action: string;
  readonly object: string;
  readonly before: Members | null;
  readonly after: Members | null;
  readonly outcome: string;
  readonly code: string | null;
}

/** The start of the hash of the data folder's token; no named token has such a name. */
const FIRST_TOKEN = /^[0-9a-f]{8}$/;

/** Who acted: `operator jo`, `token prometheus`, `user ada of Amber Bikes`, `key shop backend of Amber Bikes`. */
export function whoText({ actor, os_user: osUser, token, merchant, user, key }: AuditEntryJson): string {
  const name = user ?? key;
  if (name !== null) return `${actor} ${name} of ${merchant}`;
  const isNamed = actor === 'operator' && token !== null && !FIRST_TOKEN.test(token);
  if (isNamed) return osUser === null ? `token ${token}` : `token ${token} (${osUser})`;
  return osUser === null ? actor : `${actor} ${osUser}`;
}

/** The changed members as `name before → after`. If the state before is unknown, the requested values. */
export function changeText({ before, after }: AuditEntryJson): string {
  const names = Object.keys({ ...before, ...after });
  const parts = names.map((name) => {
    const [oldText, newText] = [textOf(before?.[name]), textOf(after?.[name])];
    if (oldText === newText) return undefined;
    const hasBefore = before?.[name] !== undefined && after?.[name] !== undefined;
    return hasBefore ? `${name} ${oldText ?? '–'} → ${newText ?? '–'}` : `${name} ${newText ?? oldText}`;
  });
  return parts.filter((part) => part !== undefined).join(', ');
}

/** A value in words; undefined if there is none. */
function textOf(value: unknown): string | undefined {
  if (value === undefined || value === null || typeof value === 'string') return value ?? undefined;
  if (Array.isArray(value)) return value.map(textOf).join(' ') || 'none';
  if (typeof value !== 'object') return JSON.stringify(value);
  const members = Object.entries(value).map(([name, member]) => `${name}=${textOf(member) ?? '–'}`);
  return members.join(' ') || 'none';
}
