/** API keys: make one (shown once, with the curl line that uses it), see when each was used, revoke. */
import type { JSX } from 'preact';
import { useCallback, useState } from 'preact/hooks';
import { Days, systemClock } from '../../../../../proto/clock.js';
import type { ApiFailure } from '../../api/http.js';
import { merchantApi } from '../../api/merchant.js';
import type { ApiKey } from '../../api/shapes.js';
import { Age } from '../../view/age.js';
import { Action, Badge, CopyButton, Empty, Failure, WhenLoaded } from '../../view/parts.js';
import { Rename } from '../../view/rename.js';
import { asFailure, useAnswer } from '../../view/use-answer.js';

/** The scopes of keys (docs/interfaces.md §2) with what each allows; `spec` is the specification's own operations. */
const SCOPES: readonly (readonly [scope: string, allows: string])[] = [
  ['spec', 'pets, users’ logins, test webhooks'],
  ['locks:read', 'see locks, pings, events'],
  ['locks:write', 'name and label locks'],
  ['commands', 'send and read commands'],
  ['webhooks:read', 'see deliveries'],
  ['webhooks:resend', 'resend and recover'],
  ['billing:read', 'see usage and statements'],
  ['users', 'manage users'],
];

/** The gateway's limit (gateway/accounts/api-keys.ts). */
const MAX_KEY_NAME_CHARS = 200;

export function KeysPanel(): JSX.Element {
  const keys = useAnswer(useCallback(merchantApi.keys, []));
  const [made, setMade] = useState<string | null>(null);
  const take = (key: string): void => {
    setMade(key);
    keys.reload();
  };
  return (
    <section class="card" aria-label="API keys">
      <h2>API keys</h2>
      <NewKey onMade={take} />
      {made !== null && <NewKeyText text={made} onClose={() => setMade(null)} />}
      <WhenLoaded loaded={keys}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="No keys yet">
              <p>Make one above: programs use it to call the interface.</p>
            </Empty>
          ) : (
            <div class="scroll">
              <table class="stacked">
                <tbody>
                  {data.map((key) => (
                    <KeyRow key={key.id} apiKey={key} onChange={keys.reload} />
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </WhenLoaded>
    </section>
  );
}

function NewKey({ onMade }: { readonly onMade: (key: string) => void }): JSX.Element {
  const [failure, setFailure] = useState<ApiFailure | null>(null);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const element = event.currentTarget as HTMLFormElement;
    const form = new FormData(element);
    const scopes = form.getAll('scope').map(String);
    const days = Number(form.get('days'));
    const expiry = days > 0 ? { expires_at: new Date(systemClock.now() + Days(days)).toISOString() } : {};
    merchantApi
      // A key that may do everything is made without scopes.
      .createKey({ name: String(form.get('name')), ...(scopes.length < SCOPES.length && { scopes }), ...expiry })
      .then(({ key }) => {
        element.reset();
        setFailure(null);
        onMade(key);
      })
      .catch((error: unknown) => setFailure(asFailure(error)));
  };
  return (
    <form class="inline-form" onSubmit={submit}>
      <label>
        Name <input name="name" required maxLength={MAX_KEY_NAME_CHARS} placeholder="shop backend" />
      </label>
      <label>
        Expires{' '}
        <select name="days">
          <option value="0">never</option>
          <option value="30">in 30 days</option>
          <option value="90">in 90 days</option>
          <option value="365">in a year</option>
        </select>
      </label>
      <button type="submit" class="primary">
        Make a key
      </button>
      <details>
        <summary>What it may do</summary>
        <fieldset>
          <legend class="hidden">Scopes</legend>
          {SCOPES.map(([scope, allows]) => (
            <label key={scope} class="check">
              <input type="checkbox" name="scope" value={scope} defaultChecked /> <code>{scope}</code> {allows}
            </label>
          ))}
        </fieldset>
      </details>
      <Failure failure={failure} />
    </form>
  );
}

function NewKeyText({ text, onClose }: { readonly text: string; readonly onClose: () => void }): JSX.Element {
  const curl = `curl -u '${text}:' ${location.origin}/v1/locks`;
  return (
    <div class="once" role="status">
      <p>
        <strong>This key is shown only now.</strong> Keep it where your program reads it.
      </p>
      <p>
        <code data-new-key>{text}</code> <CopyButton text={text} label="Copy" />
      </p>
      <p>
        <code>{curl}</code> <CopyButton text={curl} label="Copy" />
      </p>
      <button type="button" onClick={onClose}>
        I have it
      </button>
    </div>
  );
}

function KeyRow({ apiKey, onChange }: { readonly apiKey: ApiKey; readonly onChange: () => void }): JSX.Element {
  const { id, name, state, last_used_at, expires_at, scopes } = apiKey;
  return (
    <tr>
      <td>
        <Badge tone={state === 'active' ? 'good' : 'quiet'}>{state}</Badge>
      </td>
      <td>
        {name}{' '}
        <Rename
          name={name}
          maxChars={MAX_KEY_NAME_CHARS}
          save={(next) => merchantApi.renameKey(id, next).then(onChange)}
        />
      </td>
      <td class="mono">{id}</td>
      <td title={scopes.join(', ')}>{scopes.length === SCOPES.length ? 'all scopes' : scopes.join(', ')}</td>
      <td>
        {last_used_at === null ? (
          'never used'
        ) : (
          <>
            used <Age date={last_used_at} clock="wall" />
          </>
        )}
      </td>
      <td>
        {expires_at === null ? (
          'never expires'
        ) : (
          <>
            expires <Age date={expires_at} clock="wall" />
          </>
        )}
      </td>
      <td>
        {state === 'active' && (
          <Action
            tone="danger"
            confirm={`Revoke the key “${name}”? Programs that use it stop working at once.`}
            act={() => merchantApi.revokeKey(id).then(onChange)}
          >
            Revoke
          </Action>
        )}
      </td>
    </tr>
  );
}
