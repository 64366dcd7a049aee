/** The screen “Nodes”: the gateway's health, figures, version and store, as `lockgate status` shows them. */
import type { ComponentChildren, JSX } from 'preact';
import { useCallback } from 'preact/hooks';
import { Seconds } from '../../../../../proto/clock.js';
import { type GatewayStatus, gatewayApi } from '../../api/operator-gateway.js';
import { routeTo } from '../../app/route.js';
import { Age } from '../../view/age.js';
import { Badge, WhenLoaded } from '../../view/parts.js';
import { bytesText, timeText } from '../../view/time-text.js';
import { useAnswer } from '../../view/use-answer.js';
import { TroubledUrls } from './troubled-urls.js';

const RELOAD_EVERY = Seconds(5);

export function NodesScreen(): JSX.Element {
  const status = useAnswer(useCallback(gatewayApi.status, []), RELOAD_EVERY);
  return (
    <section class="screen" aria-labelledby="nodes-title">
      <header class="screen-head">
        <h1 id="nodes-title">Nodes</h1>
      </header>
      <WhenLoaded loaded={status}>
        {(answer) => (
          <>
            <Health status={answer} isCurrent={status.failure === null} />
            <Presences status={answer} />
            <div class="pair">
              <Facts status={answer} />
              <TroubledUrls urls={answer.urls} />
            </div>
          </>
        )}
      </WhenLoaded>
    </section>
  );
}

interface StatusProps {
  readonly status: GatewayStatus;
}

/** @param isCurrent whether the last call succeeded; otherwise the answer is an older one */
function Health({ status, isCurrent }: StatusProps & { readonly isCurrent: boolean }): JSX.Element {
  const { version, started_at, reasons } = status;
  const isReady = status.status === 'ready';
  return (
    <section class="card" aria-label="Health">
      <header class="card-head">
        <h2>{location.host}</h2>
        {isCurrent ? (
          <Badge tone={isReady ? 'good' : 'bad'}>{status.status}</Badge>
        ) : (
          <Badge tone="warn">as of the last answer: {status.status}</Badge>
        )}
        <span class="hint">
          lockgate {version}, started <Age date={started_at} clock="wall" />
        </span>
      </header>
      {reasons.length > 0 && (
        <ul>
          {reasons.map(({ code, since, why }) => (
            <li key={code}>
              <Badge tone="bad">{code}</Badge>, since <Age date={since} clock="wall" />: {why}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** The locks by presence, with those that were never seen. */
function Presences({ status: { locks, mqtt } }: StatusProps): JSX.Element {
  const seen = Object.entries(locks.presence);
  const inService = locks.in_service ?? 0;
  const unseen = inService - seen.reduce((sum, [, count]) => sum + count, 0);
  const figures: readonly (readonly [name: string, count: number, address: string])[] = [
    ['in service', inService, routeTo('locks')],
    ['connected', mqtt.connected, routeTo('locks', [], { presence: 'online' })],
    ...seen.map(
      ([name, count]) => [name.replaceAll('-', ' '), count, routeTo('locks', [], { presence: name })] as const,
    ),
    ...(unseen > 0 ? [['never seen', unseen, routeTo('locks', [], { presence: 'never-seen' })] as const] : []),
  ];
  return (
    <ul class="figures" aria-label="Locks">
      {figures.map(([name, count, address]) => (
        <li key={name}>
          <a href={address}>
            <strong>{count.toLocaleString('en-US')}</strong>
            <span>{name}</span>
          </a>
        </li>
      ))}
    </ul>
  );
}

function Facts({ status }: StatusProps): JSX.Element {
  const { mqtt, http, disk, descriptors, event_loop, clock, run_clock, notices_unread, notices_sending } = status;
  const refusals = Object.entries(mqtt.refused).filter(([, count]) => count > 0);
  return (
    <section class="card" aria-label="Figures">
      <dl class="facts">
        <Fact name="Pings">{status.pings_per_second.toFixed(1)}/s in the last minute</Fact>
        <Fact name="Store">
          <span class="mono">{status.store}</span>
        </Fact>
        <Fact name="Disk">
          {disk === null
            ? 'can’t be read now'
            : `${bytesText(disk.store_bytes)} used by the store${
                disk.free_bytes === null ? '' : `, ${bytesText(disk.free_bytes)} free`
              }`}
        </Fact>
        <Fact name="Locks’ port">
          {mqtt.host}:{mqtt.port}
          {mqtt.certificate_end !== null && `; the certificate ends ${timeText(mqtt.certificate_end)}`}
        </Fact>
        <Fact name="Merchants’ port">
          {http.host}:{http.port}
        </Fact>
        <Fact name="Refused">
          {refusals.length === 0
            ? 'nothing since the start'
            : refusals.map(([kind, count]) => `${count.toLocaleString('en-US')} ${kind}`).join(', ')}
        </Fact>
        <Fact name="Open files">
          {descriptors.open ?? '–'}
          {descriptors.limit !== null && ` of ${descriptors.limit.toLocaleString('en-US')}`}
        </Fact>
        <Fact name="Event loop">{event_loop.worst_delay_ms.toFixed(0)} ms, the longest delay of the last minute</Fact>
        <Fact name="Clock">
          {clock.state === 'agrees' ? (
            <Badge tone="good">agrees with the locks’ clocks</Badge>
          ) : (
            <Badge tone="bad">the machine’s clock is {clock.state}: lockgate config confirm-clock</Badge>
          )}
          ; locks’ time {timeText(run_clock)}
        </Fact>
        <Fact name="Notices">
          {notices_unread === 0 ? (
            'none unread'
          ) : (
            <>
              <Badge tone="warn">{notices_unread.toLocaleString('en-US')} unread</Badge>; <code>lockgate notices</code>{' '}
              lists them
            </>
          )}
        </Fact>
        {notices_sending !== null && (
          <Fact name="Notices go to">
            {notices_sending.origin} <Badge tone={SENDING_TONES[notices_sending.state]}>{notices_sending.state}</Badge>
            {notices_sending.state === 'failing' && ` ${notices_sending.last_error?.error ?? ''}`}
          </Fact>
        )}
      </dl>
    </section>
  );
}

const SENDING_TONES = { new: 'quiet', working: 'good', failing: 'bad' } as const;

function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
