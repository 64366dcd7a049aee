/** Commands to one lock: buttons that send them, and the latest ones with the count-down of their expiry. */
import type { JSX } from 'preact';
import { useApi } from '../../api/console-api.js';
import type { Command } from '../../api/shapes.js';
import { Age, useNow } from '../../view/age.js';
import { Action, Badge, CopyButton, type Tone, WhenLoaded } from '../../view/parts.js';
import { countdownText } from '../../view/time-text.js';
import type { Loaded } from '../../view/use-answer.js';
import { isOpen } from './use-commands.js';

/** How many of the latest commands are shown. */
const MAX_SHOWN = 12;
const SIREN_SECONDS = 30;

interface SendableCommand {
  readonly name: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** The same command on the command line, after the MAC. */
  readonly cli: string;
  readonly confirm?: string;
}

const COMMANDS: readonly SendableCommand[] = [
  { name: 'Unlock', body: { type: 'unlock' }, cli: 'unlock' },
  { name: 'Lock', body: { type: 'lock' }, cli: 'lock' },
  {
    name: 'Siren',
    body: { type: 'siren', parameters: { seconds: SIREN_SECONDS } },
    cli: `siren --seconds ${SIREN_SECONDS}`,
    confirm: `Sound the siren for ${SIREN_SECONDS} s?`,
  },
  { name: 'Locate', body: { type: 'locate-gps' }, cli: 'locate-gps' },
  { name: 'Recovery on', body: { type: 'set-power', parameters: { recovery: true } }, cli: 'set-power --recovery on' },
  {
    name: 'Recovery off',
    body: { type: 'set-power', parameters: { recovery: false } },
    cli: 'set-power --recovery off',
  },
];

interface PanelProps {
  readonly mac: string;
  /** Newest first. */
  readonly commands: Loaded<readonly Command[]>;
  readonly onWhy: (id: string) => void;
}

export function CommandPanel({ mac, commands, onWhy }: PanelProps): JSX.Element {
  const api = useApi();
  const send = async ({ body }: SendableCommand): Promise<void> => {
    // The random key is new for each press: a request that the network repeats has the same key, and sends nothing
    // more.
    await api.sendCommand(mac, body, crypto.randomUUID());
    commands.reload();
  };
  if (commands.failure?.status === 403)
    return (
      <section class="card" aria-label="Commands">
        <h2>Commands</h2>
        <p class="hint">Your role may not see or send commands.</p>
      </section>
    );
  return (
    <section class="card" aria-label="Commands">
      <h2>Commands</h2>
      <p class="buttons">
        {COMMANDS.map((command) => (
          <Action
            key={command.name}
            act={() => send(command)}
            {...(command.confirm !== undefined && { confirm: command.confirm })}
          >
            {command.name}
          </Action>
        ))}
      </p>
      <details class="hint">
        <summary>Copy as CLI</summary>
        <p class="buttons">
          {COMMANDS.map(({ name, cli }) => (
            <CopyButton key={name} label={name} text={`lockgate command send ${mac} ${cli}`} />
          ))}
        </p>
      </details>
      <WhenLoaded loaded={commands}>
        {(all) =>
          all.length === 0 ? (
            <p class="hint">No commands yet.</p>
          ) : (
            <table>
              <tbody>
                {all.slice(0, MAX_SHOWN).map((command) => (
                  <CommandRow key={command.id} command={command} onWhy={onWhy} onChange={commands.reload} />
                ))}
              </tbody>
            </table>
          )
        }
      </WhenLoaded>
    </section>
  );
}

const TONES: Readonly<Record<Command['state'], Tone>> = {
  queued: 'warn',
  sent: 'warn',
  done: 'good',
  rejected: 'bad',
  failed: 'bad',
  expired: 'bad',
  cancelled: 'quiet',
};

interface RowProps {
  readonly command: Command;
  readonly onWhy: (id: string) => void;
  readonly onChange: () => void;
}

function CommandRow({ command, onWhy, onChange }: RowProps): JSX.Element {
  const { id, type, state, detail, waits, expires_at, created_at, asked_by } = command;
  const api = useApi();
  const nowMs = useNow();
  return (
    <tr data-command-state={state}>
      <td>
        <Badge tone={TONES[state]}>{state}</Badge>
      </td>
      <td>{type}</td>
      <td title={asked_by}>
        {isOpen(command) ? (
          <span title="until it expires">{countdownText(Date.parse(expires_at), nowMs)}</span>
        ) : (
          <Age date={created_at} />
        )}
      </td>
      <td>{detail || waits?.text}</td>
      <td>
        {state === 'queued' && (
          <Action act={() => api.cancelCommand(id).then(onChange)} tone="quiet">
            Cancel
          </Action>
        )}
        <button type="button" class="quiet" onClick={() => onWhy(`command:${id}`)}>
          Why?
        </button>
      </td>
    </tr>
  );
}
