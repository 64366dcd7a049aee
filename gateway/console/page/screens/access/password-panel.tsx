/** A form with which users change their own password; they must type the present one too. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { ApiFailure } from '../../api/http.js';
import { merchantApi } from '../../api/merchant.js';
import { Failure } from '../../view/parts.js';
import { asFailure } from '../../view/use-answer.js';

interface PasswordProps {
  /** The user's name, for the browser's store of passwords. */
  readonly username: string;
  /** Called when the password was changed. */
  readonly onChange: () => void;
}

export function PasswordPanel({ username, onChange }: PasswordProps): JSX.Element {
  const [failure, setFailure] = useState<ApiFailure | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [isDone, setDone] = useState(false);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const element = event.currentTarget as HTMLFormElement;
    const [present, password, repeated] = ['present', 'password', 'repeated'].map((name) =>
      String(new FormData(element).get(name) ?? ''),
    ) as [string, string, string];
    setDone(false);
    if (password !== repeated) {
      setFailure(asFailure(new Error('The two new passwords differ.')));
      return;
    }
    setBusy(true);
    setFailure(null);
    merchantApi
      .changePassword({ present, password })
      .then(() => {
        element.reset();
        setDone(true);
        onChange();
      })
      .catch((error: unknown) => setFailure(asFailure(error)))
      .finally(() => setBusy(false));
  };
  return (
    <section class="card" aria-label="Your password">
      <h2>Your password</h2>
      <form class="inline-form" onSubmit={submit}>
        <input
          class="hidden"
          name="username"
          autocomplete="username"
          value={username}
          readOnly
          tabIndex={-1}
          aria-hidden
        />
        <PasswordField label="Present password" name="present" autocomplete="current-password" />
        <PasswordField label="New password" name="password" autocomplete="new-password" />
        <PasswordField label="New password again" name="repeated" autocomplete="new-password" />
        <button type="submit" disabled={isBusy}>
          Change password
        </button>
      </form>
      <Failure failure={failure} />
      {isDone && (
        <p class="good" role="status">
          ✓ Your password is changed. Your other sessions have ended.
        </p>
      )}
    </section>
  );
}

interface FieldProps {
  readonly label: string;
  readonly name: string;
  readonly autocomplete: 'current-password' | 'new-password';
}

function PasswordField({ label, ...input }: FieldProps): JSX.Element {
  return (
    <label>
      {label} <input {...input} type="password" required maxLength={512} />
    </label>
  );
}
