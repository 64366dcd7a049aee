/** The login of a merchant's user: the merchant's name (or the address `/m/<merchant>`), a name and a password. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { ApiFailure } from '../api/http.js';
import { merchantApi } from '../api/merchant.js';
import { HelpLink } from '../view/help-link.js';
import { Failure } from '../view/parts.js';
import { asFailure } from '../view/use-answer.js';

/** The merchant that the page's address names, as in `/m/Amber%20Bikes`; empty otherwise. */
function merchantOfAddress(): string {
  const [, merchant = ''] = /^\/m\/([^/]+)/.exec(location.pathname) ?? [];
  try {
    return decodeURIComponent(merchant);
  } catch {
    return merchant;
  }
}

export function LoginScreen({ onLogin }: { readonly onLogin: () => void }): JSX.Element {
  const [failure, setFailure] = useState<ApiFailure | null>(null);
  const [isBusy, setBusy] = useState(false);
  const known = merchantOfAddress();
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const field = (name: string): string => String(form.get(name) ?? '');
    setBusy(true);
    merchantApi
      .logIn({ merchant: known || field('merchant'), username: field('username'), password: field('password') })
      .then(onLogin)
      .catch((error: unknown) => setFailure(asFailure(error)))
      .finally(() => setBusy(false));
  };
  return (
    <main class="login">
      <form class="card" onSubmit={submit}>
        <h1>
          <span class="brand-mark" aria-hidden="true" /> lockgate
        </h1>
        {known !== '' && <p class="hint">{known}</p>}
        {known === '' && (
          <label>
            Merchant
            <input name="merchant" autocomplete="organization" required />
          </label>
        )}
        <label>
          User
          <input name="username" autocomplete="username" required />
        </label>
        <label>
          Password
          <input name="password" type="password" autocomplete="current-password" required />
        </label>
        <Failure failure={failure} />
        <button type="submit" class="primary" disabled={isBusy}>
          Log in
        </button>
        <HelpLink />
      </form>
    </main>
  );
}
