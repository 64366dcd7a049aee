/** A table of a lock's power settings: those that commands asked for, beside those that the lock reported. */
import type { JSX } from 'preact';
import type { LockDetail, Settings } from '../../api/shapes.js';
import { Badge } from '../../view/parts.js';

const NAMES: readonly (readonly [keyof Settings, string])[] = [
  ['mode', 'mode'],
  ['ride_tracking', 'ride tracking'],
  ['recovery', 'recovery'],
  ['airplane', 'airplane'],
  ['high_window', 'high window'],
];

export function TwinTable({ lock }: { readonly lock: LockDetail }): JSX.Element {
  const { wanted, reported, differs } = lock.twin;
  return (
    <section class="card" aria-label="Settings">
      <h2>Settings</h2>
      <table>
        <thead>
          <tr>
            <th scope="col">Setting</th>
            <th scope="col">Wanted</th>
            <th scope="col">Reported</th>
          </tr>
        </thead>
        <tbody>
          {NAMES.map(([key, name]) => (
            <tr key={key}>
              <th scope="row">{name}</th>
              <td>{settingText(wanted, key)}</td>
              <td>
                {settingText(reported, key)} {differs.includes(key) && <Badge tone="warn">not yet</Badge>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function settingText(settings: Settings | null, key: keyof Settings): string {
  const value = settings?.[key];
  if (value === undefined) return '–';
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  return typeof value === 'string' ? value : `${value.from}–${value.to}`;
}
