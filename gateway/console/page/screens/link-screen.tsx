/**
 * What an operator sees without a session: how to get a one-time link, and why the last one was refused. The link's
 * token is in the fragment of the address, which no server sees; it is removed from there at once.
 */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { ApiFailure } from '../api/http.js';
import { operatorApi } from '../api/operator.js';
import { HelpLink } from '../view/help-link.js';
import { Failure } from '../view/parts.js';
import { asFailure } from '../view/use-answer.js';

/** The token at the end of a link, as in `http://127.0.0.1:8081/#lgl_…`. */
const LINK_TOKEN = /#(lgl_[\w-]+)$/;

/** The token of a one-time link in the page's address, which is removed from it; null if there is none. */
export function takeLink(): string | null {
  const [, token] = LINK_TOKEN.exec(location.hash) ?? [];
  if (token === undefined) return null;
  history.replaceState(null, '', location.pathname);
  return token;
}

interface LinkProps {
  /** The token of the address; null without one. */
  readonly token: string | null;
  /** Whether this browser has a session already, with which the operator can go on. */
  readonly hasSession: boolean;
  /** Called once there is a session to go on with. */
  readonly onLogin: () => void;
}

export function LinkScreen({ token, hasSession, onLogin }: LinkProps): JSX.Element {
  const [failure, setFailure] = useState<ApiFailure | null>(null);
  const [isBusy, setBusy] = useState(false);
  const redeem = (given: string): void => {
    setBusy(true);
    operatorApi
      .logIn(given)
      .then(onLogin)
      .catch((error: unknown) => setFailure(asFailure(error)))
      .finally(() => setBusy(false));
  };
  useEffect(() => {
    if (token !== null) redeem(token);
  }, [token]);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const text = String(new FormData(event.currentTarget as HTMLFormElement).get('link') ?? '').trim();
    // The field takes a whole link, or its token alone.
    redeem(LINK_TOKEN.exec(text)?.[1] ?? text);
  };
  if (token !== null && failure === null) return <p class="login hint">Logging in …</p>;
  return (
    <main class="login">
      <form class="card" onSubmit={submit}>
        <h1>
          <span class="brand-mark" aria-hidden="true" /> lockgate
        </h1>
        <Failure failure={failure} />
        <p class="login-text">
          Run <code>lockgate console</code> on the gateway’s machine. It prints a link that is good for five minutes and
          one use.
        </p>
        <label>
          One-time link
          <input name="link" type="password" autocomplete="off" required />
        </label>
        <button type="submit" class="primary" disabled={isBusy}>
          Log in
        </button>
        {hasSession && (
          <button type="button" class="quiet" onClick={onLogin}>
            Go on with the open session
          </button>
        )}
        <HelpLink />
      </form>
    </main>
  );
}
