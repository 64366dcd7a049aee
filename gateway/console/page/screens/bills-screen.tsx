/** Usage by lock in a month, and the monthly statements, as tables and CSV. */

import type { JSX } from 'preact';
import { useCallback } from 'preact/hooks';
import { merchantApi } from '../api/merchant.js';
import type { LockUsage } from '../api/shapes.js';
import { type Route, routeTo } from '../app/route.js';
import { runClock } from '../app/run-clock.js';
import { setQuery } from '../app/use-route.js';
import { useLive } from '../live/use-live.js';
import { Age } from '../view/age.js';
import { Empty, lockName, WhenLoaded } from '../view/parts.js';
import { bytesText } from '../view/time-text.js';
import { useAnswer } from '../view/use-answer.js';

/** The maximum number of locks in the table and in its CSV. */
const MAX_SHOWN = 1000;

export function BillsScreen({ route }: { readonly route: Route }): JSX.Element {
  const month = route.query.month ?? new Date(runClock.now()).toISOString().slice(0, 'YYYY-MM'.length);
  const usage = useAnswer(useCallback(() => merchantApi.usage({ month, limit: MAX_SHOWN }), [month]));
  return (
    <section class="screen" aria-labelledby="bills-title">
      <header class="screen-head">
        <h1 id="bills-title">Bills</h1>
        <label>
          Month{' '}
          <input type="month" value={month} onChange={(event) => setQuery({ month: event.currentTarget.value })} />
        </label>
        <a href={`/v1/usage?month=${month}&format=csv&limit=${MAX_SHOWN}`} download={`usage-${month}.csv`}>
          CSV
        </a>
      </header>
      <div class="pair">
        <WhenLoaded loaded={usage}>{({ data }) => <UsageTable locks={data} month={month} />}</WhenLoaded>
        <Statements />
      </div>
    </section>
  );
}

/** A lock that the page does not know, since it is no longer in service. */
function unnamed({ mac_addr }: LockUsage) {
  return { name: null, mac_addr };
}

function UsageTable({ locks, month }: { readonly locks: readonly LockUsage[]; readonly month: string }): JSX.Element {
  const { locks: live } = useLive();
  if (locks.length === 0) return <Empty title={`No traffic in ${month}`} />;
  const total = (count: (lock: LockUsage) => number): number => locks.reduce((sum, lock) => sum + count(lock), 0);
  return (
    <section class="card scroll" aria-label="Usage by lock">
      <table>
        <thead>
          <tr>
            <th scope="col">Lock</th>
            <th scope="col" class="number">
              Messages
            </th>
            <th scope="col" class="number wide">
              Connections
            </th>
            <th scope="col" class="number">
              Bytes
            </th>
          </tr>
        </thead>
        <tbody>
          {locks.map((lock) => (
            <tr key={lock.mac_addr}>
              <td>
                <a href={routeTo('lock', [lock.mac_addr])}>{lockName(live.find(lock.mac_addr) ?? unnamed(lock))}</a>
                {lock.simulated && <span class="hint"> simulated</span>}
              </td>
              <td class="number">{lock.messages.toLocaleString('en-US')}</td>
              <td class="number wide">{lock.connections.toLocaleString('en-US')}</td>
              <td class="number">{bytesText(lock.bytes)}</td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">{locks.length} locks</th>
            <td class="number">{total(({ messages }) => messages).toLocaleString('en-US')}</td>
            <td class="number wide">{total(({ connections }) => connections).toLocaleString('en-US')}</td>
            <td class="number">{bytesText(total(({ bytes }) => bytes))}</td>
          </tr>
        </tfoot>
      </table>
      {locks.some(({ simulated }) => simulated) && <p class="hint">Simulated locks are not billed.</p>}
    </section>
  );
}

function Statements(): JSX.Element {
  const statements = useAnswer(useCallback(merchantApi.statements, []));
  return (
    <section class="card" aria-label="Statements">
      <h2>Statements</h2>
      <WhenLoaded loaded={statements}>
        {({ data }) =>
          data.length === 0 ? (
            <p class="hint">A month’s statement is closed after its end, and never changes from then on.</p>
          ) : (
            <ul>
              {data.map(({ month, closed_at }) => (
                <li key={month}>
                  {month}, closed <Age date={closed_at} clock="wall" />:{' '}
                  <a href={`/v1/statements/${month}?format=csv`} download={`statement-${month}.csv`}>
                    CSV
                  </a>
                </li>
              ))}
            </ul>
          )
        }
      </WhenLoaded>
    </section>
  );
}
