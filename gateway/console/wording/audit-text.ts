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

/** The name of the data folder's token: the start of its hash. No token that an operator named has such a name. */
export const DATA_FOLDER_TOKEN_NAME = /^[0-9a-f]{8}$/;

/** Who acted: `operator jo`, `token prometheus`, `user ada of Amber Bikes`, `key shop backend of Amber Bikes`. */
export function whoText({ actor, os_user: osUser, token, merchant, user, key }: AuditEntryJson): string {
  const name = user ?? key;
  if (name !== null) return `${actor} ${name} of ${merchant}`;
  const isNamed = actor === 'operator' && token !== null && !DATA_FOLDER_TOKEN_NAME.test(token);
  if (isNamed) return osUser === null ? `token ${token}` : `token ${token} (${osUser})`;
  return osUser === null ? actor : `${actor} ${osUser}`;
}

/**
 * The changed members as `name before → after`; the new value alone if `before` does not have it. A member that only
 * `before` has was not changed, so it is left out. Without `after`, as for a removal, the state before.
 */
export function changeText({ before, after }: Pick<AuditEntryJson, 'before' | 'after'>): string {
  const names = Object.keys(after ?? before ?? {});
  const parts = names.map((name) => {
    const [oldText, newText] = [textOf(before?.[name]), textOf(after?.[name])];
    if (oldText === newText) return undefined;
    const hasBoth = before?.[name] !== undefined && after?.[name] !== undefined;
    return hasBoth ? `${name} ${oldText ?? '–'} → ${newText ?? '–'}` : `${name} ${newText ?? oldText}`;
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
