/**
 * `lockgate device list`: lists locks with their latest state, by default what needs attention first. Locks are fetched
 * and printed page by page, so that a hundred thousand of them need no more memory than a thousand.
 */

import type { Command } from 'commander';
import { presenceText } from '../../../gateway/console/wording/event-text.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import type { GatewayClocks } from '../../gateway-clocks.js';
import { printEmptyList } from '../../terminal/output.js';
import { addPageFlags, type PageFlags, printPages, queryOf } from '../../terminal/paged-list.js';
import { addClientFlags } from '../../terminal/shared-flags.js';
import type { Column, Mark } from '../../terminal/table.js';
import { agoText } from '../../terminal/time-text.js';
import { addWatchFlag, repeatIfWatched } from '../../terminal/watch.js';

/** The gateway answers with at most this many locks. */
const PAGE_LOCKS = 1_000;
const DEFAULT_LIMIT = 100;
const PRESENCES = 'online, asleep, late, low-battery, airplane, never-seen';
/** What `--state` takes: states of the lock itself, then power states. A test compares them with the gateway's. */
export const STATES: readonly string[] = [
  'locked',
  'unlocked',
  'theft',
  'AIRPLANE',
  'LOW_BATTERY',
  'RECOVERY',
  'HIGH',
  'MID',
];

/** Labels by key. */
export type Labels = Readonly<Record<string, string>>;

/** A lock's latest known state; null for a value that it has never reported. */
export interface StateJson {
  readonly received_at: string | null;
  readonly power_state: string;
  readonly power: { readonly mode: string };
  readonly reason: string | null;
  readonly lock_state: string | null;
  readonly battery_percent: number | null;
  readonly latitude: number | null;
  readonly longitude: number | null;
}

/** A lock, as the operator interface lists it. */
export interface DeviceJson {
  readonly mac: string;
  readonly name: string | null;
  readonly labels: Labels;
  readonly merchant: string;
  readonly simulated: boolean;
  readonly sim: { readonly state: 'inactive' | 'active'; readonly activated_at: string | null };
  /** What needs attention most; `none` if nothing does. */
  readonly trouble: string;
  /** Why the gateway's rules no longer judge the lock; null if they do. */
  readonly unjudged: { readonly since: string; readonly why: string } | null;
  /** Depending on the presence there is also a member `since`, `due` or `rule`. */
  readonly presence: string;
  readonly state: StateJson | null;
}

type ListFlags = ConnectionFlags &
  PageFlags & {
    readonly json?: boolean;
    readonly merchant?: string;
    readonly presence?: readonly string[];
    readonly state?: readonly string[];
    readonly label?: readonly string[];
    readonly search?: string;
    readonly sort?: string;
  };

/** Adds the command to the group. */
export function addListCommand(device: Command): void {
  const list = device.command('list').description('List locks with their latest state, trouble first.');
  addPageFlags(addWatchFlag(addClientFlags(list)), DEFAULT_LIMIT)
    .option('--merchant <name>', 'Only locks of this merchant.')
    .option('--presence <list>', `Only these presences: ${PRESENCES}.`, readWords)
    .option('--state <list>', 'Only these states: locked, unlocked, theft, or a power state.', readStates)
    .option('--label <label>', 'Only locks with this label: key=value, or key. Can be repeated.', collect)
    .option('--search <text>', 'Only locks with this in their MAC, name or labels.')
    .option('--sort <order>', 'trouble (default), mac, name, presence, state, battery or received; - reverses.')
    .addHelpText('after', '\nExample:\n  $ lockgate device list --presence late,low-battery --label city=Hamburg')
    .addHelpText('after', '  $ lockgate device list --sort=-received --limit 20')
    .action(repeatIfWatched(listDevices));
}

/** Words separated by commas; the gateway checks them. */
function readWords(text: string): readonly string[] {
  return text.split(',').map((word) => word.trim());
}

/** Power states are in upper case; people may type them otherwise. A word that is no state stays as it was typed. */
function readStates(text: string): readonly string[] {
  return readWords(text).map((word) => {
    const spelled = word.toLowerCase().replaceAll('-', '_');
    return STATES.find((state) => state.toLowerCase() === spelled) ?? word;
  });
}

function collect(label: string, earlierLabels: readonly string[] = []): readonly string[] {
  return [...earlierLabels, label];
}

async function listDevices(flags: ListFlags): Promise<void> {
  const { merchant, presence, state, label, search, sort, json } = flags;
  const query = queryOf({ merchant, search, sort, presence, state, label });
  const devices = { path: '/devices', query, member: 'devices', pageSize: PAGE_LOCKS };
  const count = await printPages<DeviceJson>(new GatewayClient(flags), devices, flags, json ? undefined : columnsFor);
  if (count > 0 || json) return;
  const none = 'There is no lock yet. Add one: lockgate device add MAC';
  printEmptyList([merchant, presence, state, label, search], 'No locks match.', none);
}

const columnsAt = (runMs: number): readonly Column<DeviceJson>[] => [
  { title: 'MAC', show: (row) => row.mac, neverCut: true },
  { title: 'LOCK', show: (row) => row.state?.lock_state ?? '–' },
  { title: 'BATTERY', show: (row) => percent(row.state?.battery_percent) },
  { title: 'STATE', show: (row) => row.state?.power_state ?? '–' },
  { title: 'PRESENCE', show: presenceCell, mark: ({ trouble }) => TROUBLE_MARKS[trouble] },
  { title: 'NAME', show: (row) => row.name ?? '–', optional: true },
  { title: 'LAST PING', show: (row) => row.state?.reason ?? '–', optional: true },
  { title: 'MERCHANT', show: (row) => row.merchant, optional: true },
  { title: 'RECEIVED', show: (row) => receivedText(row, runMs), optional: true },
  { title: 'LABELS', show: (row) => labelsText(row.labels), optional: true },
  { title: 'SIM', show: (row) => row.sim.state, optional: true },
];

/** The columns of a page; without NAME or LABELS if no lock of the page has any. */
function columnsFor(devices: readonly DeviceJson[], { runMs }: GatewayClocks): readonly Column<DeviceJson>[] {
  const hidden = [
    ...(devices.some(({ name }) => name !== null) ? [] : ['NAME']),
    ...(devices.some(({ labels }) => Object.keys(labels).length > 0) ? [] : ['LABELS']),
  ];
  return columnsAt(runMs).filter(({ title }) => !hidden.includes(title));
}

const TROUBLE_MARKS: Readonly<Record<string, Mark>> = {
  theft: 'alarm',
  late: 'alarm',
  'low-battery': 'warn',
  unjudged: 'warn',
};

/** The presence; also whether the lock is being stolen, or is no longer judged. */
function presenceCell(row: DeviceJson): string {
  const theft = row.trouble === 'theft' ? 'theft, ' : '';
  // A copy of the row, because an interface does not count as the record of unknown members that the function takes.
  return `${theft}${presenceText({ ...row })}${row.unjudged === null ? '' : ', unjudged'}`;
}

function receivedText({ state }: DeviceJson, nowMs: number): string {
  return state?.received_at ? agoText(state.received_at, nowMs) : '–';
}

/** A battery level. */
export function percent(value: number | null | undefined): string {
  return value === null || value === undefined ? '–' : `${value}%`;
}

/** Labels as `city=Berlin, area=north`; empty without labels. */
export function labelsText(labels: Labels): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(', ');
}
