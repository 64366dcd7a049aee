/** API keys, users, invitations and sessions of a merchant. Owners change them; others see only their own sessions. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Session } from '../api/shapes.js';
import { KeysPanel } from './access/keys-panel.js';
import { PasswordPanel } from './access/password-panel.js';
import { SessionsPanel } from './access/sessions-panel.js';
import { UsersPanel } from './access/users-panel.js';

export function AccessScreen({ session }: { readonly session: Session }): JSX.Element {
  const isOwner = session.role === 'owner';
  // A new password ends other sessions, so each change of it loads the list of sessions again.
  const [changeCount, setChangeCount] = useState(0);
  return (
    <section class="screen" aria-labelledby="access-title">
      <header class="screen-head">
        <h1 id="access-title">Keys and users</h1>
      </header>
      {!isOwner && <p class="hint">Owners make keys and invite users. Your role is {session.role}.</p>}
      <div class="pair">
        {isOwner && <KeysPanel />}
        {isOwner && <UsersPanel self={session.username} />}
        <PasswordPanel username={session.username} onChange={() => setChangeCount((before) => before + 1)} />
        <SessionsPanel version={changeCount} />
      </div>
    </section>
  );
}
