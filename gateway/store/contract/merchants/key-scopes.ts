/** The scopes of API keys: which operations of the merchants' interface a key may call (interfaces.md §2). */

/** Each scope, with a sentence about what it allows. */
export const KEY_SCOPES = {
  spec: 'Call the operations of the specification, on pets, users and test webhooks, and create tokens for them.',
  'locks:read': 'Read locks, their pings, events, tracks and findings.',
  'locks:write': 'Name and label locks.',
  commands: 'Send commands to locks, and read them.',
  'webhooks:read': 'Read webhook URLs and deliveries.',
  'webhooks:resend': 'Send events again, and recover what a URL missed.',
  'billing:read': 'Read usage and statements.',
  users: 'Manage users of the dashboard and their roles.',
} as const;

export type KeyScope = keyof typeof KEY_SCOPES;

/** All scopes. A key that is created without naming scopes has all of them. */
export const ALL_KEY_SCOPES: readonly KeyScope[] = Object.keys(KEY_SCOPES) as KeyScope[];

/** Whether the text names a scope. */
export function isKeyScope(text: string): text is KeyScope {
  return Object.hasOwn(KEY_SCOPES, text);
}

/**
 * Returns the scopes that the list names, once each, in the order of {@link KEY_SCOPES}. Unknown names are left out.
 */
export function orderedScopes(names: readonly string[]): readonly KeyScope[] {
  return ALL_KEY_SCOPES.filter((scope) => names.includes(scope));
}
