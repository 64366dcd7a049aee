/** The gateway's effective settings and where each comes from, as `lockgate config` shows them. Read only. */
import type { JSX } from 'preact';
import { useCallback } from 'preact/hooks';
import { gatewayApi, type SettingJson } from '../../api/operator-gateway.js';
import type { Route } from '../../app/route.js';
import { setQuery } from '../../app/use-route.js';
import { Badge, Empty, WhenLoaded } from '../../view/parts.js';
import { SearchField } from '../../view/search-field.js';
import { useAnswer } from '../../view/use-answer.js';

export function SettingsScreen({ route }: { readonly route: Route }): JSX.Element {
  const settings = useAnswer(useCallback(gatewayApi.settings, []));
  const { search = '', changed = '' } = route.query;
  return (
    <section class="screen" aria-labelledby="settings-title">
      <header class="screen-head">
        <h1 id="settings-title">Settings</h1>
        <SearchField label="Search settings" search={search} />
        <label>
          <input
            type="checkbox"
            name="changed"
            checked={changed !== ''}
            onChange={(event) => setQuery({ changed: event.currentTarget.checked ? 'yes' : '' })}
          />{' '}
          Only those that were set
        </label>
      </header>
      {settings.failure?.status === 403 ? (
        <Empty title="Only admins may see the settings">
          <p>
            They name files and hosts. To see them, run <code>lockgate console</code> with an admin’s token and open the
            link that it prints.
          </p>
        </Empty>
      ) : (
        <WhenLoaded loaded={settings}>
          {({ settings: all }) => {
            const shown = all.filter(
              (setting) => (changed === '' || setting.source !== 'default') && matches(setting, search),
            );
            return shown.length === 0 ? <NoSettings /> : <SettingTable settings={shown} />;
          }}
        </WhenLoaded>
      )}
    </section>
  );
}

function NoSettings(): JSX.Element {
  return (
    <Empty title="No setting matches">
      <button type="button" onClick={() => setQuery({ search: '', changed: '' })}>
        Show all settings
      </button>
    </Empty>
  );
}

function SettingTable({ settings }: { readonly settings: readonly SettingJson[] }): JSX.Element {
  return (
    <>
      <p class="hint">
        Settings are read when the gateway starts. A flag of <code>lockgate serve</code> overrides the environment,
        which overrides the settings file, which overrides the default.
      </p>
      <section class="card scroll" aria-label="Settings">
        <table class="stacked">
          <thead>
            <tr>
              <th scope="col">Setting</th>
              <th scope="col">Value</th>
              <th scope="col">From</th>
              <th scope="col">Meaning</th>
            </tr>
          </thead>
          <tbody>
            {settings.map((setting) => (
              <SettingRow key={setting.key} setting={setting} />
            ))}
          </tbody>
        </table>
      </section>
    </>
  );
}

function SettingRow({ setting }: { readonly setting: SettingJson }): JSX.Element {
  const { flag, environment, value, source, unit, meaning } = setting;
  const isDefault = source === 'default';
  return (
    <tr>
      <th scope="row" class="mono">
        {flag}
      </th>
      <td class="mono wrap">
        {value === '' ? '–' : value}
        {!isDefault && setting.default !== '' && <span class="hint"> (default {setting.default})</span>}
      </td>
      <td>
        <Badge tone={isDefault ? 'quiet' : 'changed'}>{source === 'environment' ? environment : source}</Badge>
      </td>
      <td class="wrap prose">
        {meaning
          .split('`')
          // What is between two backticks is code.
          .map((part, index) => (index % 2 === 1 ? <code key={part}>{part}</code> : part))}
        {unit !== '' && <span class="hint"> ({unit})</span>}
      </td>
    </tr>
  );
}

/** Whether each word is part of the setting's names, value or meaning. */
function matches({ flag, environment, value, meaning }: SettingJson, search: string): boolean {
  const text = `${flag} ${environment} ${value} ${meaning}`.toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
