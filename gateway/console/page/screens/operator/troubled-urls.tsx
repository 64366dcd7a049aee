/** The webhook URLs in trouble: disabled, failing, or with events that wait for too long. */
import type { JSX } from 'preact';
import { useCallback } from 'preact/hooks';
import { Seconds } from '../../../../../proto/clock.js';
import { gatewayApi } from '../../api/operator-gateway.js';
import type { UrlStatus } from '../../api/url-status.js';
import { Badge } from '../../view/parts.js';
import { ageText } from '../../view/time-text.js';
import { useAnswer } from '../../view/use-answer.js';
import { troubledUrls } from './url-trouble.js';

const RELOAD_EVERY = Seconds(30);

export function TroubledUrls({ urls }: { readonly urls: readonly UrlStatus[] | null }): JSX.Element {
  const addresses = useAnswer(useCallback(gatewayApi.urls, []), RELOAD_EVERY).answer?.webhooks;
  const openMerchants = useAnswer(useCallback(gatewayApi.merchants, []), RELOAD_EVERY).answer?.merchants;
  const troubled = troubledUrls(urls ?? [], addresses, openMerchants);
  // The age of the oldest event, as of a time 0 that was so long ago.
  const oldestText = (seconds: number): string => ageText(0, Seconds(seconds));
  return (
    <section class="card scroll" aria-label="Webhook URLs">
      <h2>Webhook URLs</h2>
      <p>{summaryOf(urls, troubled)}</p>
      {troubled.length > 0 && (
        <table class="stacked">
          <thead>
            <tr>
              <th scope="col" class="number">
                URL
              </th>
              <th scope="col">State</th>
              <th scope="col" class="number">
                Undelivered
              </th>
              <th scope="col">Oldest</th>
              <th scope="col" class="number">
                Given up
              </th>
              <th scope="col">Merchant</th>
              <th scope="col">Address</th>
            </tr>
          </thead>
          <tbody>
            {troubled.map((url) => {
              const { id, backlog } = url;
              const { merchant = '', url: address = '' } = addresses?.find((each) => each.id === id) ?? {};
              return (
                <tr key={id}>
                  <td class="number" data-title="URL">
                    {id}
                  </td>
                  <td>
                    <Badge tone="bad">{stateText(url)}</Badge>
                  </td>
                  <td class="number" data-title="Undelivered">
                    {(backlog.behind + backlog.pending).toLocaleString('en-US')}
                  </td>
                  <td data-title="Oldest">
                    {backlog.oldest_seconds === null ? '–' : oldestText(backlog.oldest_seconds)}
                  </td>
                  <td class="number" data-title="Given up">
                    {backlog.dead.toLocaleString('en-US')}
                  </td>
                  <td>{merchant}</td>
                  <td class="mono wrap">{URL.canParse(address) ? new URL(address).origin : ''}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
    </section>
  );
}

function summaryOf(urls: readonly UrlStatus[] | null, troubled: readonly UrlStatus[]): JSX.Element {
  if (urls === null) return <>Their backlogs can’t be read now.</>;
  if (urls.length === 0)
    return (
      <>
        There is none yet. Add one with <code>lockgate webhook add</code>.
      </>
    );
  if (troubled.length === 0) return <Badge tone="good">{urls.length} in order</Badge>;
  return (
    <Badge tone="bad">
      {troubled.length} of {urls.length} in trouble
    </Badge>
  );
}

function stateText({ state, circuit, backlog }: UrlStatus): string {
  if (state !== 'active') return state;
  if (circuit === 'open') return 'circuit open';
  if (backlog.damaged > 0) return 'damaged events';
  return backlog.dead > 0 ? 'dead events' : 'behind';
}
