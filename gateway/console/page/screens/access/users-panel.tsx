/** Users of the dashboard with their roles, and open invitations. */
import type { JSX } from 'preact';
import { useCallback, useState } from 'preact/hooks';
import type { ApiFailure } from '../../api/http.js';
import { merchantApi } from '../../api/merchant.js';
import type { DashboardRole, User } from '../../api/shapes.js';
import { Age } from '../../view/age.js';
import { Action, CopyButton, Failure, WhenLoaded } from '../../view/parts.js';
import { asFailure, useAnswer } from '../../view/use-answer.js';

const ROLES: readonly DashboardRole[] = ['owner', 'staff', 'viewer'];
const MAX_SHOWN = 200;

/** @param self the name of the user who is logged in */
export function UsersPanel({ self }: { readonly self: string }): JSX.Element {
  const users = useAnswer(useCallback(() => merchantApi.users({ limit: MAX_SHOWN }), []));
  return (
    <section class="card" aria-label="Users">
      <h2>Users</h2>
      <Invitations />
      <WhenLoaded loaded={users}>
        {({ data, next_cursor }) => (
          <>
            <table class="stacked">
              <tbody>
                {data.map((user) => (
                  <UserRow key={user.id} user={user} isSelf={user.username === self} onChange={users.reload} />
                ))}
              </tbody>
            </table>
            {next_cursor !== null && (
              <p class="hint">
                The first {MAX_SHOWN} users. <code>GET /v1/users</code> lists all.
              </p>
            )}
          </>
        )}
      </WhenLoaded>
    </section>
  );
}

interface RowProps {
  readonly user: User;
  readonly isSelf: boolean;
  readonly onChange: () => void;
}

function UserRow({ user, isSelf, onChange }: RowProps): JSX.Element {
  const [failure, setFailure] = useState<ApiFailure | null>(null);
  const change = (text: string): void => {
    const dashboard = ROLES.find((role) => role === text) ?? null;
    setFailure(null);
    merchantApi
      .changeUser(user.id, { dashboard })
      .catch((error: unknown) => setFailure(asFailure(error)))
      .finally(onChange);
  };
  return (
    <tr>
      <td>
        {user.username}
        {isSelf && <span class="hint"> (you)</span>}
      </td>
      <td>{user.email}</td>
      <td>
        <select
          aria-label={`Role of ${user.username}`}
          value={user.dashboard ?? ''}
          onChange={(event) => change(event.currentTarget.value)}
        >
          <option value="">no dashboard</option>
          {ROLES.map((role) => (
            <option key={role}>{role}</option>
          ))}
        </select>
        <Failure failure={failure} />
      </td>
      <td>
        <Action
          tone="danger"
          confirm={`Remove the user ${user.username}? Their sessions end at once.`}
          act={() => merchantApi.removeUser(user.id).then(onChange)}
        >
          Remove
        </Action>
      </td>
    </tr>
  );
}

function Invitations(): JSX.Element {
  const invitations = useAnswer(useCallback(merchantApi.invitations, []));
  const [link, setLink] = useState<string | null>(null);
  const [failure, setFailure] = useState<ApiFailure | null>(null);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const element = event.currentTarget as HTMLFormElement;
    const form = new FormData(element);
    const username = String(form.get('username') ?? '');
    const dashboard = ROLES.find((role) => role === form.get('role')) ?? 'viewer';
    merchantApi
      .invite({ dashboard, ...(username !== '' && { username }) })
      .then(({ path }) => {
        element.reset();
        setFailure(null);
        setLink(`${location.origin}${path}`);
        invitations.reload();
      })
      .catch((error: unknown) => setFailure(asFailure(error)));
  };
  return (
    <>
      <form class="inline-form" onSubmit={submit}>
        <label>
          Name <input name="username" placeholder="empty: they choose" />
        </label>
        <label>
          Role{' '}
          <select name="role">
            {/* Browsers preselect the first: here the role that may do least. */}
            {ROLES.toReversed().map((role) => (
              <option key={role}>{role}</option>
            ))}
          </select>
        </label>
        <button type="submit">Invite</button>
        <Failure failure={failure} />
      </form>
      {link !== null && (
        <p class="once" role="status">
          Send this link to the person; it works once: <code>{link}</code> <CopyButton text={link} label="Copy" />
        </p>
      )}
      <ul>
        {invitations.answer?.data.map(({ id, username, dashboard, expires_at }) => (
          <li key={id}>
            Invited: {username ?? 'anybody with the link'} as {dashboard}, expires{' '}
            <Age date={expires_at} clock="wall" />{' '}
            <Action tone="quiet" act={() => merchantApi.withdrawInvitation(id).then(invitations.reload)}>
              Withdraw
            </Action>
          </li>
        ))}
      </ul>
    </>
  );
}
