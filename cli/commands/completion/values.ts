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
  'trace check --ignore': rules,
  'sim run --bug': bugs,
  'sim run --fault': faults,
  'sim run --scenario': scenarios,
  'sim scenarios <name>': scenarios,
  'webhook trigger <story>': stories,
  'webhook set <id>': urls,
  'webhook show <id>': urls,
  'webhook remove <id>': urls,
  'webhook rotate-secret <id>': urls,
  'merchant set <name>': merchants,
  'merchant rotate-notify-secret <name>': merchants,
  'merchant test-notify <name>': merchants,
  'usage plan set <merchant>': merchants,
  'usage plan show <merchant>': merchants,
  'key revoke <id>': keys,
  'command show <id>': commands,
  'command cancel <id>': commands,
  'command send <words>': macsAndTypes,
  'trace show --reason': reasons,
};

/** The values for a position; empty if unknown. @param what the name in the flag's angle brackets */
export async function valuesFor(
  path: string,
  name: string,
  what: string,
  typed: TypedWords,
): Promise<readonly WordValue[]> {
  const source = VALUE_SOURCES[`${path} ${name}`] ?? sourceByName(name, what);
  return source === undefined ? [] : (await source(typed)).slice(0, MAX_VALUES);
}

function sourceByName(name: string, what: string): ValueSource | undefined {
  if (what === 'mac') return macs;
  if (name === '--merchant') return merchants;
  if (name === '--url' && what === 'id') return urls;
  return what === 'on|off' ? async () => [{ value: 'on' }, { value: 'off' }] : undefined;
}

async function rules(): Promise<readonly WordValue[]> {
  const { RULES } = await import('../../../proto/power/rules.js');
  return RULES.map(({ rule, brokenWhen }) => ({ value: rule, means: brokenWhen }));
}

async function bugs(): Promise<readonly WordValue[]> {
  const { BUGS } = await import('../../../firmware-sim/faults/bugs.js');
  return BUGS.map(({ name, sentence }) => ({ value: name, means: sentence }));
}

async function faults(): Promise<readonly WordValue[]> {
  const { FAULTS } = await import('../../../firmware-sim/faults/faults.js');
  return FAULTS.map(({ name, sentence }) => ({ value: name, means: sentence }));
}

async function scenarios(): Promise<readonly WordValue[]> {
  const { builtInNames } = await import('../../../firmware-sim/scenario/built-in.js');
  return builtInNames().map((value) => ({ value }));
}

async function stories(): Promise<readonly WordValue[]> {
  const { STORIES } = await import('../../../firmware-sim/story/story.js');
  return STORIES.map(({ name }) => ({ value: name }));
}

async function reasons(): Promise<readonly WordValue[]> {
  const { REASONS } = await import('../../../proto/wire/reasons.js');
  return REASONS.map(({ name }) => ({ value: name }));
}

async function macs(typed: TypedWords): Promise<readonly WordValue[]> {
  const { devices } = await askGateway<{ devices: { mac: string; merchant: string }[] }>(
    '/devices?limit=1000&sort=mac',
    typed,
  );
  const chosen = typed.flags.get('--merchant');
  const offered = devices.filter(({ merchant }) => chosen === undefined || merchant === chosen);
  return offered.map(({ mac, merchant }) => ({ value: mac, means: merchant }));
}

async function macsAndTypes(typed: TypedWords): Promise<readonly WordValue[]> {
  const types = ['unlock', 'lock', 'siren', 'locate-gps', 'locate-cell', 'set-power', 'reset'];
  const offered = types.map((value) => ({ value }));
  try {
    return [...offered, ...(await macs(typed)).filter(({ value }) => !typed.words.includes(value))];
  } catch {
    return offered;
  }
}

async function merchants(typed: TypedWords): Promise<readonly WordValue[]> {
  const answer = await askGateway<{ merchants: { name: string }[] }>('/merchants', typed);
  return answer.merchants.map(({ name }) => ({ value: name }));
}

async function urls(typed: TypedWords): Promise<readonly WordValue[]> {
  const { webhooks } = await askGateway<{ webhooks: { id: number; url: string; merchant: string }[] }>(
    '/webhooks',
    typed,
  );
  return webhooks.map(({ id, url, merchant }) => ({ value: String(id), means: `${url} (${merchant})` }));
}

async function keys(typed: TypedWords): Promise<readonly WordValue[]> {
  const answer = await askGateway<{ keys: { id: string; name: string; state: string }[] }>('/keys', typed);
  return answer.keys.map(({ id, name, state }) => ({ value: id, means: `${name}, ${state}` }));
}

async function commands(typed: TypedWords): Promise<readonly WordValue[]> {
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
