/**
 * The screen of one lock: its present state; a timeline of what it did, beside a map of where it was; its commands with
 * the time until they expire; its wanted and reported settings; its findings and pings, each with an explanation
 * (`why`).
 */

import type { JSX } from 'preact';
import { useCallback, useRef, useState } from 'preact/hooks';
import { Seconds } from '../../../../proto/clock.js';
import { useApi } from '../api/console-api.js';
import type { Command, Lock, LockDetail } from '../api/shapes.js';
import { type Route, routeTo } from '../app/route.js';
import { useLive } from '../live/use-live.js';
import { Age } from '../view/age.js';
import { CopyButton, Empty, lockName, PresenceBadge, TroubleBadge, WhenLoaded } from '../view/parts.js';
import { Rename } from '../view/rename.js';
import { useAnswer } from '../view/use-answer.js';
import { usePaced } from '../view/use-paced.js';
import { CommandPanel } from './lock/command-panel.js';
import { HistoryPanel } from './lock/history-panel.js';
import { TwinTable } from './lock/twin-table.js';
import { useCommands } from './lock/use-commands.js';
import { WhyPanel } from './lock/why-panel.js';

/** The time that the timeline covers, which the address may name as `days`. */
const DEFAULT_DAYS = 2;
const MAX_DAYS = 90;
/** The gateway's limit (gateway/store/contract/devices/device-labels.ts). */
const MAX_LOCK_NAME_CHARS = 60;
/** What has come since is loaded at most this often, however often the lock sends. */
const RELOAD_PAUSE = Seconds(5);
/** And this often what nearly no message changes: the settings that the lock reports, and what it dropped. */
const DETAIL_PAUSE = Seconds(30);
const NO_COMMANDS: readonly Command[] = [];

export function LockScreen({ route }: { readonly route: Route }): JSX.Element {
  const api = useApi();
  const [mac = ''] = route.parts;
  const live = useLive().locks.find(mac);
  const changes = useChangeCount(live);
  const version = usePaced(changes, RELOAD_PAUSE);
  const commands = useCommands(mac, version);
  const signs = signsOf(live);
  const detail = useAnswer(
    useCallback(() => api.lock(mac), [api, mac]),
    undefined,
    `${signs} ${termsOf(live)} ${wishesOf(commands.answer ?? NO_COMMANDS)} ${usePaced(changes, DETAIL_PAUSE)}`,
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
            <LockHead lock={withPresent(lock, live)} onChange={detail.reload} />
            <HistoryPanel
              key={mac}
              mac={mac}
              version={version}
              signs={signs}
              commands={commands.answer ?? NO_COMMANDS}
              days={daysOf(route)}
              onWhy={setWhyId}
            >
              {whyId !== null && <WhyPanel key={whyId} id={whyId} onClose={() => setWhyId(null)} />}
              <div class="columns">
                <CommandPanel mac={mac} commands={commands} onWhy={setWhyId} />
                <TwinTable lock={lock} />
              </div>
            </HistoryPanel>
          </>
        )}
      </WhenLoaded>
    </section>
  );
}

/** How often the stream has sent the lock: for each of its messages and commands, and each change of its name. */
function useChangeCount(live: Lock | undefined): number {
  const seen = useRef({ live, count: 0 });
  if (seen.current.live !== live) seen.current = { live, count: seen.current.count + 1 };
  return seen.current.count;
}

/** A text that changes when the lock enters another state, connects or disconnects. */
function signsOf(live: Lock | undefined): string {
  return live === undefined ? '' : `${live.power_state} ${live.presence} ${live.since}`;
}

/** A text that changes when somebody changes what is stored of the lock. */
function termsOf(live: Lock | undefined): string {
  return live === undefined ? '' : JSON.stringify([live.name, live.labels]);
}

/** A text that changes when the settings do that commands ask for. */
function wishesOf(commands: readonly Command[]): string {
  const wishes = commands.filter(({ type }) => type === 'set-power');
  return wishes.map(({ id, state }) => `${id} ${state}`).join();
}

/** The lock with what its last message said, which the stream sends at once. */
function withPresent(lock: LockDetail, live: Lock | undefined): LockDetail {
  if (live === undefined) return lock;
  const { trouble, presence, since, due, lock_state, battery_percent, firmware_version, received_at } = live;
  return { ...lock, trouble, presence, since, due, lock_state, battery_percent, firmware_version, received_at };
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
