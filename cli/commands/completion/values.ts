/**
 * Values for shell completion that the command tree does not contain: names from lockgate's files, and MACs, merchants
 * and ids from a running gateway, if it answers quickly. Must print nothing.
 */
import { Seconds, systemClock } from '../../../proto/clock.js';

/** A word and its meaning. */
export interface WordValue {
  readonly value: string;
  readonly means?: string;
}

/** The words before the cursor, and the values of the flags among them. */
interface TypedWords {
  readonly flags: ReadonlyMap<string, string>;
  readonly words: readonly string[];
}

/** Finds the values that can be typed at a position. */
type ValueSource = (typed: TypedWords) => Promise<readonly WordValue[]>;

/** How long the gateway may take to answer, because the user waits for each Tab. */
const GATEWAY_TIMEOUT_MS = Seconds(0.5);

/** The maximum number of values offered at once. */
const MAX_VALUES = 500;

/** Sources of values, by command and flag or argument. A test checks that each key exists in the command tree. */
export const VALUE_SOURCES: Readonly<Record<string, ValueSource>> = {
  'trace check --ignore': listRules,
  'sim run --bug': listBugs,
  'sim run --fault': listFaults,
  'sim run --scenario': listScenarios,
  'sim scenarios <name>': listScenarios,
  'webhook trigger <story>': listStories,
  'webhook set <id>': listUrls,
  'webhook show <id>': listUrls,
  'webhook remove <id>': listUrls,
  'webhook rotate-secret <id>': listUrls,
  'merchant set <name>': listMerchants,
  'merchant rotate-notify-secret <name>': listMerchants,
  'merchant test-notify <name>': listMerchants,
  'usage plan set <merchant>': listMerchants,
  'usage plan show <merchant>': listMerchants,
  'key revoke <id>': listKeys,
  'command show <id>': listCommands,
  'command cancel <id>': listCommands,
  'command send <macs-and-type>': listMacsAndTypes,
  'trace show --reason': listReasons,
  'audit --action': listActions,
  'tail --kind': listKinds,
  'tail --reason': listReasons,
};

/** The values for a position; empty if unknown. @param valueName the name in the flag's angle brackets */
export async function valuesFor(
  path: string,
  name: string,
  valueName: string,
  typed: TypedWords,
): Promise<readonly WordValue[]> {
  const source = VALUE_SOURCES[`${path} ${name}`] ?? sourceByName(name, valueName);
  return source === undefined ? [] : (await source(typed)).slice(0, MAX_VALUES);
}

function sourceByName(name: string, valueName: string): ValueSource | undefined {
  if (valueName === 'mac') return listMacs;
  if (name === '--merchant') return listMerchants;
  if (name === '--url' && valueName === 'id') return listUrls;
  return valueName === 'on|off' ? async () => [{ value: 'on' }, { value: 'off' }] : undefined;
}

async function listRules(): Promise<readonly WordValue[]> {
  const { RULES } = await import('../../../proto/power/rules.js');
  return RULES.map(({ rule, brokenWhen }) => ({ value: rule, means: brokenWhen }));
}

async function listBugs(): Promise<readonly WordValue[]> {
  const { BUGS } = await import('../../../firmware-sim/faults/bugs.js');
  return BUGS.map(({ name, sentence }) => ({ value: name, means: sentence }));
}

async function listFaults(): Promise<readonly WordValue[]> {
  const { FAULTS } = await import('../../../firmware-sim/faults/faults.js');
  return FAULTS.map(({ name, sentence }) => ({ value: name, means: sentence }));
}

async function listScenarios(): Promise<readonly WordValue[]> {
  const { builtInNames } = await import('../../../firmware-sim/scenario/built-in.js');
  return builtInNames().map((value) => ({ value }));
}

/** The stories of `webhook trigger`: scripted sequences of pings, such as those of a theft. */
async function listStories(): Promise<readonly WordValue[]> {
  const { STORIES } = await import('../../../firmware-sim/story/story.js');
  return STORIES.map(({ name }) => ({ value: name }));
}

async function listReasons(): Promise<readonly WordValue[]> {
  const { REASONS } = await import('../../../proto/wire/reasons.js');
  return REASONS.map(({ name }) => ({ value: name }));
}

async function listActions(): Promise<readonly WordValue[]> {
  const { AUDIT_ACTIONS } = await import('../../../gateway/audit/actions.js');
  return AUDIT_ACTIONS.map((value) => ({ value }));
}

async function listKinds(): Promise<readonly WordValue[]> {
  const { EVENT_KINDS } = await import('../../../gateway/console/wording/event-text.js');
  return EVENT_KINDS.map((value) => ({ value }));
}

async function listMacs(typed: TypedWords): Promise<readonly WordValue[]> {
  const { devices } = await askGateway<{ devices: { mac: string; merchant: string }[] }>(
    '/devices?limit=1000&sort=mac',
    typed,
  );
  const merchantFlag = typed.flags.get('--merchant');
  const offered = devices.filter(({ merchant }) => merchantFlag === undefined || merchant === merchantFlag);
  return offered.map(({ mac, merchant }) => ({ value: mac, means: merchant }));
}

async function listMacsAndTypes(typed: TypedWords): Promise<readonly WordValue[]> {
  const types = ['unlock', 'lock', 'siren', 'locate-gps', 'locate-cell', 'set-power', 'reset'];
  const offered = types.map((value) => ({ value }));
  try {
    return [...offered, ...(await listMacs(typed)).filter(({ value }) => !typed.words.includes(value))];
  } catch {
    return offered;
  }
}

async function listMerchants(typed: TypedWords): Promise<readonly WordValue[]> {
  const answer = await askGateway<{ merchants: { name: string }[] }>('/merchants', typed);
  return answer.merchants.map(({ name }) => ({ value: name }));
}

async function listUrls(typed: TypedWords): Promise<readonly WordValue[]> {
  const { webhooks } = await askGateway<{ webhooks: { id: number; url: string; merchant: string }[] }>(
    '/webhooks',
    typed,
  );
  return webhooks.map(({ id, url, merchant }) => ({ value: String(id), means: `${url} (${merchant})` }));
}

async function listKeys(typed: TypedWords): Promise<readonly WordValue[]> {
  const answer = await askGateway<{ keys: { id: string; name: string; state: string }[] }>('/keys', typed);
  return answer.keys.map(({ id, name, state }) => ({ value: id, means: `${name}, ${state}` }));
}

async function listCommands(typed: TypedWords): Promise<readonly WordValue[]> {
  const answer = await askGateway<{ commands: { id: number; type: string; mac: string; state: string }[] }>(
    '/commands?limit=50',
    typed,
  );
  return answer.commands.map(({ id, type, mac, state }) => ({ value: String(id), means: `${type} ${mac}, ${state}` }));
}

/** Asks the gateway that the typed flags name, or else the default gateway. */
async function askGateway<T>(requestPath: string, { flags }: TypedWords): Promise<T> {
  const { GatewayClient } = await import('../../client.js');
  const [gateway, token, data] = ['--gateway', '--token', '--data'].map((flag) => flags.get(flag));
  const client = new GatewayClient({ ...(gateway && { gateway }), ...(token && { token }), ...(data && { data }) });
  const timeout = new AbortController();
  const timer = systemClock.after(GATEWAY_TIMEOUT_MS, () => timeout.abort());
  try {
    return await client.get<T>(requestPath, timeout.signal);
  } finally {
    timer.cancel();
  }
}
