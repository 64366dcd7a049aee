/** What became of events at the webhook URLs: each URL's figures, and the deliveries of one with their attempts. */
import type { JSX } from 'preact';
import { useCallback, useState } from 'preact/hooks';
import { Seconds } from '../../../../proto/clock.js';
import { useApi } from '../api/console-api.js';
import type { Backlog, Delivery, WebhookUrl } from '../api/shapes.js';
import { type Route, routeTo } from '../app/route.js';
import { setQuery } from '../app/use-route.js';
import { Age } from '../view/age.js';
import { Action, Badge, Empty, type Tone, WhenLoaded } from '../view/parts.js';
import { spanText } from '../view/time-text.js';
import { useAnswer } from '../view/use-answer.js';
import { UrlHours } from './deliveries/url-hours.js';

/** The maximum number of deliveries in the list. */
const MAX_SHOWN = 100;
/** The first URLs, and the chosen one, have a strip of their last 24 hours; each strip costs a call. */
const MAX_STRIPS = 20;
/**
 * The states of a delivery that the list can be limited to. `dead`: given up; `kept`: not sent while the URL was
 * disabled; `damaged`: not sent, since the stored ping is corrupt.
 */
const STATES = ['pending', 'delivered', 'dead', 'kept', 'damaged'] as const;

export function DeliveriesScreen({ route }: { readonly route: Route }): JSX.Element {
  const api = useApi();
  const urls = useAnswer(api.webhooks, Seconds(5));
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
                  An operator sets the URLs that pings are sent to: <code>lockgate webhook add</code>. Until then,
                  merchants read them with <code>GET /v1/events</code>.
                </p>
              </Empty>
            );
          return (
            <>
              <UrlTable urls={data} chosen={url.id} />
              {url.figures === null && <Figures key={url.id} url={url} />}
              <DeliveryList url={url} state={route.query.state ?? ''} onChange={urls.reload} />
            </>
          );
        }}
      </WhenLoaded>
    </section>
  );
}

const FIGURE_COLUMNS = ['Succeeded', 'p95', 'Last success', 'Last error'];
const BACKLOG_COLUMNS = ['Waiting', 'Oldest', 'Dead'];
/** Those of both whose cells are aligned to the right. */
const NUMBER_COLUMNS: readonly string[] = ['Succeeded', 'p95', ...BACKLOG_COLUMNS];

function UrlTable({ urls, chosen }: { readonly urls: readonly WebhookUrl[]; readonly chosen: number }): JSX.Element {
  const api = useApi();
  // Operators see backlogs, and merchants the figures of the newest attempts.
  const columns = urls.some(({ backlog }) => backlog !== undefined) ? BACKLOG_COLUMNS : FIGURE_COLUMNS;
  return (
    <section class="card scroll" aria-label="Webhook URLs">
      <table class="stacked">
        <thead>
          <tr>
            {['URL', 'State', 'Last 24 hours', ...columns].map((title) => (
              <th key={title} scope="col" class={NUMBER_COLUMNS.includes(title) ? 'number' : undefined}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {urls.map((url, index) => (
            <tr key={url.id} class={url.id === chosen ? 'is-chosen' : ''}>
              <td>
                <a href={routeTo('deliveries', [String(url.id)])}>{url.name}</a>{' '}
                <span class="hint">{url.merchant}</span>
              </td>
              <td>
                <Badge tone={urlTone(url)}>{url.failing_since === null ? url.state : 'failing'}</Badge>
              </td>
              <td class="prose">
                {(index < MAX_STRIPS || url.id === chosen) && <UrlHours id={url.id} load={api.deliveryHours} />}
              </td>
              {columns === BACKLOG_COLUMNS ? <BacklogCells backlog={url.backlog ?? null} /> : figureCells(url)}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function figureCells({ figures }: WebhookUrl): JSX.Element | null {
  if (figures === null) return null;
  return (
    <>
      <td class="number" data-title="Succeeded">
        {rateText(figures.success_rate)}
      </td>
      <td class="number" data-title="p95">
        {figures.p95_ms === null ? '–' : `${figures.p95_ms} ms`}
      </td>
      <td data-title="Last success">
        <Age date={figures.last_success_at} clock="wall" />
      </td>
      <td data-title={figures.last_error === null ? undefined : 'Last error'}>{figures.last_error?.error ?? ''}</td>
    </>
  );
}

function BacklogCells({ backlog }: { readonly backlog: Backlog | null }): JSX.Element {
  const { behind = 0, pending = 0, dead = 0, oldest_seconds = null } = backlog ?? {};
  return (
    <>
      <td class="number" data-title="Waiting">
        {(behind + pending).toLocaleString('en-US')}
      </td>
      <td class="number" data-title="Oldest">
        {oldest_seconds === null ? '–' : spanText(Seconds(oldest_seconds))}
      </td>
      <td class="number" data-title="Dead">
        {dead.toLocaleString('en-US')}
      </td>
    </>
  );
}

/** How the newest attempts of the chosen URL went, where the table has backlogs instead. */
function Figures({ url }: { readonly url: WebhookUrl }): JSX.Element {
  const api = useApi();
  const figures = useAnswer(
    useCallback(() => api.webhookFigures(url), [api, url.id]),
    Seconds(30),
  );
  return (
    <WhenLoaded loaded={figures}>
      {({ attempts, success_rate, p95_ms, last_success_at, last_error }) => (
        <p class="card">
          {attempts.toLocaleString('en-US')} attempts in 24 h, {rateText(success_rate)} succeeded, p95{' '}
          {p95_ms === null ? '–' : `${Math.round(p95_ms)} ms`}, last success <Age date={last_success_at} clock="wall" />
          {last_error !== null && (
            <>
              , last error <Age date={last_error.at} clock="wall" />: <span class="bad">{last_error.error}</span>
            </>
          )}
        </p>
      )}
    </WhenLoaded>
  );
}

function rateText(rate: number | null): string {
  return rate === null ? '–' : `${(rate * 100).toFixed(1)} %`;
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
  const api = useApi();
  const load = useCallback(() => api.deliveries(url.id, { state, limit: MAX_SHOWN }), [api, url.id, state]);
  const deliveries = useAnswer(load, Seconds(5));
  const recover = async (): Promise<void> => {
    await api.recover(url.id);
    deliveries.reload();
    onChange();
  };
  return (
    <section class="card" aria-label="Deliveries">
      <header class="card-head">
        <h2>{url.name}</h2>
        <label>
          State{' '}
          <select value={state} onChange={(event) => setQuery({ state: event.currentTarget.value })}>
            <option value="">all</option>
            {STATES.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <Action act={recover} confirm={`Send everything again that ${url.name} has not taken?`}>
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
                  onResend={() => api.resend(url.id, delivery.event_id).then(deliveries.reload)}
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
              {attempts.map(({ number, at, status, duration_ms, error, answer }) => (
                <tr key={number}>
                  <td>{number}.</td>
                  <td>
                    <Age date={at} clock="wall" />
                  </td>
                  <td>{status ?? 'no answer'}</td>
                  <td class="number">{duration_ms === null ? '–' : `${Math.round(duration_ms)} ms`}</td>
                  <td>
                    {error} {answer && <code>{answer}</code>}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </li>
  );
}
