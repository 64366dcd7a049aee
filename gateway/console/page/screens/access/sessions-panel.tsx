/** Open sessions of the dashboard: users see their own, owners those of all users. Each can be ended. */
import type { JSX } from 'preact';
import { useCallback } from 'preact/hooks';
import { merchantApi } from '../../api/merchant.js';
import { Age } from '../../view/age.js';
import { Action, WhenLoaded } from '../../view/parts.js';
import { useAnswer } from '../../view/use-answer.js';

/** @param version a change of it loads the sessions again */
export function SessionsPanel({ version }: { readonly version: number }): JSX.Element {
  const sessions = useAnswer(useCallback(merchantApi.sessions, []), undefined, version);
  return (
    <section class="card" aria-label="Sessions">
      <h2>Sessions</h2>
      <WhenLoaded loaded={sessions}>
        {({ data }) => (
          <table class="stacked">
            <tbody>
              {data.map(({ id, username, created_at, address, agent, current }) => (
                <tr key={id}>
                  <td>
                    {username}
                    {current && <span class="hint"> (this one)</span>}
                  </td>
                  <td>
                    since <Age date={created_at} clock="wall" />
                  </td>
                  <td class="mono">{address}</td>
                  <td class="hint clip" title={agent ?? undefined}>
                    {agent}
                  </td>
                  <td>
                    {!current && (
                      <Action tone="quiet" act={() => merchantApi.endSession(id).then(sessions.reload)}>
                        End
                      </Action>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </WhenLoaded>
    </section>
  );
}
