/** The flags that say which pings a webhook URL gets: parsing them, and showing what they set. */
import { InvalidArgumentError } from 'commander';
import {
  type Labels,
  labelsText,
  NO_LABELS,
  parseLabels,
} from '../../../gateway/store/contract/devices/device-labels.js';

/** A value that removes a limit. */
const ALL = 'all';

/** The texts of `--help`. */
export const FILTER_FLAGS = {
  events: 'Which types of events the URL gets: ping, command, presence, battery, separated by commas (default: ping).',
  reasons: 'Only pings with these reasons, separated by commas, such as REASON_THEFT; "all" for every reason.',
  pingTypes: 'Only pings of these types: cellular, gps, close_connection; "all" for every type.',
  labels: 'Only pings of locks with all of these labels, such as city=Berlin; "all" for every lock.',
};

/** An empty value removes the limit. */
export interface FilterFlags {
  readonly events?: readonly string[];
  readonly reasons?: readonly string[];
  readonly pingTypes?: readonly string[];
  readonly labels?: Labels;
}

/** Names separated by commas; none for "all". */
export function readNames(text: string): readonly string[] {
  if (text === ALL) return [];
  const names = text.split(',').map((name) => name.trim());
  if (names.every((name) => name !== '')) return names;
  throw new InvalidArgumentError('Expected names separated by commas, or all.');
}

/** Labels separated by commas; none for "all". */
export function readLabelList(text: string): Labels {
  if (text === ALL) return NO_LABELS;
  const labels = parseLabels(text);
  if (typeof labels === 'string') throw new InvalidArgumentError(`${labels}.`);
  if (Object.keys(labels).length > 0) return labels;
  throw new InvalidArgumentError('Expected key=value, separated by commas, or all.');
}

/** The members of a request that set what the flags name. */
export function filterBody({ events, reasons, pingTypes, labels }: FilterFlags): object {
  return {
    ...(events !== undefined && { events }),
    ...(reasons !== undefined && { reasons }),
    ...(pingTypes !== undefined && { ping_types: pingTypes }),
    ...(labels !== undefined && { labels }),
  };
}

/** What a URL gets, such as `gps, REASON_THEFT, city=Berlin`; empty if it gets all pings and nothing else. */
export function filterText(webhook: {
  readonly events: readonly string[];
  readonly reasons: readonly string[] | null;
  readonly ping_types: readonly string[] | null;
  readonly labels: Labels | null;
}): string {
  const { events, reasons, ping_types: pingTypes, labels } = webhook;
  const types = events.join(' or ');
  const parts = [
    types === 'ping' ? undefined : types,
    pingTypes?.join(' or '),
    reasons?.join(' or '),
    labels === null ? undefined : labelsText(labels),
  ];
  return parts.filter((part) => part !== undefined).join(', ');
}
