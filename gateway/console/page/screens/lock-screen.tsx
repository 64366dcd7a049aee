/**
 * The screen of one lock: its present state; a timeline of what it did, beside a map of where it was; its commands with
 * the time until they expire; its wanted and reported settings; its findings and pings, each with an explanation
 * (`why`).
 */

import type { JSX } from 'preact';
import { useCallback, useState } from 'preact/hooks';
import { useApi } from '../api/console-api.js';
import type { LockDetail } from '../api/shapes.js';
import { type Route, routeTo } from '../app/route.js';
import { useLive } from '../live/use-live.js';
import { Age } from '../view/age.js';
import { CopyButton, Empty, lockName, PresenceBadge, TroubleBadge, WhenLoaded } from '../view/parts.js';
import { Rename } from '../view/rename.js';
import { useAnswer } from '../view/use-answer.js';
import { CommandPanel } from './lock/command-panel.js';
import { HistoryPanel } from './lock/history-panel.js';
import { TwinTable } from './lock/twin-table.js';
import { WhyPanel } from './lock/why-panel.js';

/** The time that the timeline covers, which the address may name as `days`. */
const DEFAULT_DAYS = 2;
const MAX_DAYS = 90;
/** The gateway's limit (gateway/store/contract/devices/device-labels.ts). */
const MAX_LOCK_NAME_CHARS = 60;

export function LockScreen({ route }: { readonly route: Route }): JSX.Element {
  const api = useApi();
  const [mac = ''] = route.parts;
  const live = useLive().locks.find(mac);
  // A new message of the lock loads the other data again.
  const version = live?.received_at ?? '';
  const detail = useAnswer(
    useCallback(() => api.lock(mac), [api, mac]),
    undefined,
    version,
  );
  const [whyId, setWhyId] = useState<string | null>(null);
  if (mac === '' || detail.failure?.status === 404)
    return (
      <Empty title={mac === '' ? 'Which lock?' : `There is no lock ${mac}`}>
        <p>
          <a href={routeTo('locks')}>All locks</a>
        </p>
      </Empty>
    );
  return (
    <section class="screen" aria-labelledby="lock-title">
      <WhenLoaded loaded={detail}>
        {(lock) => (
          <>
            <LockHead lock={lock} onChange={detail.reload} />
            <HistoryPanel key={mac} mac={mac} version={version} days={daysOf(route)} onWhy={setWhyId}>
              {whyId !== null && <WhyPanel key={whyId} id={whyId} onClose={() => setWhyId(null)} />}
              <div class="columns">
                <CommandPanel mac={mac} version={version} onWhy={setWhyId} />
                <TwinTable lock={lock} />
              </div>
            </HistoryPanel>
          </>
        )}
      </WhenLoaded>
    </section>
  );
}

function daysOf({ query }: Route): number {
  const days = Number(query.days);
  return days > 0 && days <= MAX_DAYS ? days : DEFAULT_DAYS;
}

function LockHead({ lock, onChange }: { readonly lock: LockDetail; readonly onChange: () => void }): JSX.Element {
  const { rename } = useApi();
  const { mac_addr, name, labels, merchant, lock_state, battery_percent, firmware_version, received_at, believed } =
    lock;
  return (
    <header class="screen-head">
      <h1 id="lock-title">{lockName(lock)}</h1>
      <Rename
        name={name ?? ''}
        maxChars={MAX_LOCK_NAME_CHARS}
        save={(next) => rename(mac_addr, next.trim() || null).then(onChange)}
      />
      {name !== null && <span class="mono hint">{mac_addr}</span>}
      {merchant !== undefined && <span class="hint">{merchant}</span>}
      {Object.entries(labels).map(([key, value]) => (
        <span key={key} class="hint">
          {key}: {value}
        </span>
      ))}
      <TroubleBadge lock={lock} />
      <PresenceBadge lock={lock} />
      <span>
        {believed?.power_state ?? '–'}
        {believed?.is_doubtful === true && (
          <span title="The lock dropped messages: its state may have changed."> ?</span>
        )}
      </span>
      <span>{lock_state ?? '–'}</span>
      {battery_percent !== null && <span>{Math.round(battery_percent)} %</span>}
      {firmware_version !== null && <span class="hint">firmware {firmware_version}</span>}
      <span class="hint">
        heard <Age date={received_at} />
      </span>
      <CopyButton label="Copy as CLI" text={`lockgate device show ${mac_addr}`} />
    </header>
  );
}
