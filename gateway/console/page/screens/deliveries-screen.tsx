/** What became of events at the webhook URLs: each URL's figures, and the deliveries of one with their attempts. */
import type { JSX } from 'preact';
import { useCallback, useState } from 'preact/hooks';
import { Seconds } from '../../../../proto/clock.js';
import { merchantApi } from '../api/merchant.js';
import type { Delivery, WebhookUrl } from '../api/shapes.js';
import { type Route, routeTo } from '../app/route.js';
import { setQuery } from '../app/use-route.js';
import { Age } from '../view/age.js';
import { Action, Badge, Empty, type Tone, WhenLoaded } from '../view/parts.js';
import { useAnswer } from '../view/use-answer.js';

const MAX_SHOWN = 100;
const STATES = ['pending', 'delivered', 'dead', 'kept', 'damaged'] as const;

export function DeliveriesScreen({ route }: { readonly route: Route }): JSX.Element {
  const urls = useAnswer(useCallback(merchantApi.webhooks, []), Seconds(5));
  const [chosen = ''] = route.parts;
  return (
    <section class="screen" aria-labelledby="deliveries-title">
      <header class="screen-head">
        <h1 id="deliveries-title">Deliveries</h1>
      </header>
      <WhenLoaded loaded={urls}>
        {({ data }) => {
          const url = data.find(({ id }) => String(id) === chosen) ?? data[0];
          if (url === undefined)
            return (
              <Empty title="No webhook URL yet">
                <p>
                  The operator sets the URLs that your locks' pings are sent to. Until then, read them with{' '}
                  <code>GET /v1/events</code>.
                </p>
              </Empty>
            );
          return (
            <>
              <UrlTable urls={data} chosen={url.id} />
              <DeliveryList url={url} state={route.query.state ?? ''} onChange={urls.reload} />
            </>
          );
        }}
      </WhenLoaded>
    </section>
  );
}

function UrlTable({ urls, chosen }: { readonly urls: readonly WebhookUrl[]; readonly chosen: number }): JSX.Element {
  return (
    <section class="card scroll" aria-label="Webhook URLs">
      <table>
        <thead>
          <tr>
            <th scope="col">URL</th>
            <th scope="col">State</th>
            <th scope="col">Succeeded</th>
            <th scope="col">p95</th>
            <th scope="col">Last success</th>
            <th scope="col">Last error</th>
          </tr>
        </thead>
        <tbody>
          {urls.map((url) => (
            <tr key={url.id} class={url.id === chosen ? 'is-chosen' : ''}>
              <td>
                <a href={routeTo('deliveries', [String(url.id)])}>{url.origin}</a>
              </td>
              <td>
                <Badge tone={urlTone(url)}>{url.failing_since === null ? url.state : 'failing'}</Badge>
              </td>
              <td class="number">{url.success_rate === null ? '–' : `${(url.success_rate * 100).toFixed(1)} %`}</td>
              <td class="number">{url.p95_ms === null ? '–' : `${url.p95_ms} ms`}</td>
              <td>
                <Age date={url.last_success_at} clock="wall" />
              </td>
              <td>{url.last_error?.error ?? ''}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function urlTone({ state, failing_since }: WebhookUrl): Tone {
  if (state !== 'active') return 'bad';
  return failing_since === null ? 'good' : 'warn';
}

interface ListProps {
  readonly url: WebhookUrl;
  readonly state: string;
  readonly onChange: () => void;
}

function DeliveryList({ url, state, onChange }: ListProps): JSX.Element {
  const load = useCallback(() => merchantApi.deliveries(url.id, { state, limit: MAX_SHOWN }), [url.id, state]);
  const deliveries = useAnswer(load, Seconds(5));
  const recover = async (): Promise<void> => {
    await merchantApi.recover(url.id);
    deliveries.reload();
    onChange();
  };
  return (
    <section class="card" aria-label="Deliveries">
      <header class="card-head">
        <h2>{url.origin}</h2>
        <label>
          State{' '}
          <select value={state} onChange={(event) => setQuery({ state: event.currentTarget.value })}>
            <option value="">all</option>
            {STATES.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <Action act={recover} confirm={`Send everything again that ${url.origin} has not taken?`}>
          Recover
        </Action>
      </header>
      <WhenLoaded loaded={deliveries}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="No deliveries here" />
          ) : (
            <ul class="deliveries">
              {data.map((delivery) => (
                <DeliveryRow
                  key={delivery.event_id}
                  delivery={delivery}
                  onResend={() => merchantApi.resend(url.id, delivery.event_id).then(deliveries.reload)}
                />
              ))}
            </ul>
          )
        }
      </WhenLoaded>
    </section>
  );
}

const TONES: Readonly<Record<Delivery['state'], Tone>> = {
  pending: 'warn',
  delivered: 'good',
  dead: 'bad',
  kept: 'quiet',
  damaged: 'bad',
};

interface RowProps {
  readonly delivery: Delivery;
  readonly onResend: () => Promise<unknown>;
}

function DeliveryRow({ delivery, onResend }: RowProps): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const { event_id, mac_addr, type, reason, received_at, state, next_attempt_at, attempts } = delivery;
  const last = attempts.at(-1);
  return (
    <li>
      <div class="delivery-row">
        <button type="button" class="quiet" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? '▾' : '▸'} <Badge tone={TONES[state]}>{state}</Badge>
        </button>
        <a class="mono" href={routeTo('lock', [mac_addr])}>
          {mac_addr}
        </a>
        <span>{reason?.replace('REASON_', '') ?? type}</span>
        <Age date={received_at} />
        <span class="grow hint">
          {next_attempt_at !== null && (
            <>
              next attempt <Age date={next_attempt_at} clock="wall" />{' '}
            </>
          )}
          {last?.error}
        </span>
        <Action act={onResend} tone="quiet">
          Resend
        </Action>
      </div>
      {isOpen && (
        <div class="attempts">
          <p class="mono hint">{event_id}</p>
          <table>
            <tbody>
              {attempts.map(({ number, at, status, duration_ms, error }) => (
                <tr key={number}>
                  <td>{number}.</td>
                  <td>
                    <Age date={at} clock="wall" />
                  </td>
                  <td>{status ?? 'no answer'}</td>
                  <td class="number">{duration_ms === null ? '' : `${duration_ms} ms`}</td>
                  <td>{error}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </li>
  );
}
