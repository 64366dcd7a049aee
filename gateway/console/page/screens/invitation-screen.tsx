/**
 * What a person with an invitation's link sees: whose dashboard it is, and a form for a name and a password. Accepting
 * it makes the user and logs in. The token is in the fragment of the address, which no server sees; it is removed at
 * once.
 */
import type { JSX } from 'preact';
import { useCallback, useMemo, useState } from 'preact/hooks';
import type { ApiFailure } from '../api/http.js';
import { merchantApi } from '../api/merchant.js';
import type { InvitationOffer } from '../api/shapes.js';
import { HelpLink } from '../view/help-link.js';
import { Failure, WhenLoaded } from '../view/parts.js';
import { asFailure, useAnswer } from '../view/use-answer.js';
import { InvitationAcceptance } from './invitation-acceptance.js';

/** The token in the page's address, which is removed from it; null if there is none. */
export function takeInvitation(): string | null {
  const [, token] = /^#invitation=(.+)$/.exec(location.hash) ?? [];
  if (token === undefined) return null;
  history.replaceState(null, '', location.pathname);
  return token;
}

interface InvitationProps {
  readonly token: string;
  /** Called once the person is logged in. */
  readonly onLogin: () => void;
}

export function InvitationScreen({ token, onLogin }: InvitationProps): JSX.Element {
  const offer = useAnswer(useCallback(() => merchantApi.lookUpInvitation(token), [token]));
  return (
    <main class="login">
      <div>
        <WhenLoaded loaded={offer}>
          {(found) => <AcceptForm token={token} offer={found} onLogin={onLogin} />}
        </WhenLoaded>
        {offer.failure !== null && (
          <p>
            Ask for a new link, or <a href={location.pathname}>log in</a>.
          </p>
        )}
      </div>
    </main>
  );
}

function AcceptForm({ token, offer, onLogin }: InvitationProps & { readonly offer: InvitationOffer }): JSX.Element {
  const { merchant, username, dashboard: role } = offer;
  const acceptance = useMemo(
    () => new InvitationAcceptance(merchantApi, { token, merchant, username }),
    [token, merchant, username],
  );
  const [failure, setFailure] = useState<ApiFailure | null>(null);
  const [isBusy, setBusy] = useState(false);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const password = String(form.get('password') ?? '');
    if (password !== form.get('repeated')) {
      setFailure(asFailure(new Error('The two passwords differ.')));
      return;
    }
    setBusy(true);
    acceptance
      .attempt({ username: String(form.get('username') ?? ''), password })
      .then(onLogin)
      .catch((error: unknown) => setFailure(asFailure(error)))
      .finally(() => setBusy(false));
  };
  const { acceptedAs } = acceptance;
  const known = acceptedAs ?? username;
  return (
    <form class="card" onSubmit={submit}>
      <h1>
        <span class="brand-mark" aria-hidden="true" /> {merchant}
      </h1>
      <p class="login-text">
        {acceptedAs === null
          ? `You are invited to the dashboard as ${role}.`
          : 'The invitation is accepted, but the login failed. Log in with the password that you chose.'}
      </p>
      {known === null ? (
        <label>
          Your user name
          <input name="username" autocomplete="username" required maxLength={200} />
        </label>
      ) : (
        <p class="login-text">
          Your user name is <strong>{known}</strong>.
        </p>
      )}
      <label>
        Password
        <input name="password" type="password" autocomplete="new-password" required maxLength={512} />
      </label>
      <label>
        Password again
        <input name="repeated" type="password" autocomplete="new-password" required maxLength={512} />
      </label>
      <Failure failure={failure} />
      <button type="submit" class="primary" disabled={isBusy}>
        {acceptedAs === null ? 'Accept' : 'Log in'}
      </button>
      <HelpLink />
    </form>
  );
}
