/** Checks the names and labels that operators give to locks. */
import { LockgateError } from '../../proto/errors.js';
import { type Labels, labelsFault, nameFault } from '../store/contract/devices/device-labels.js';

/** A name and labels as an operator gives them. An empty name means none. */
export interface LockDescription {
  readonly name?: string | undefined;
  readonly labels?: Labels | undefined;
}

/** A valid description for the store: null removes the name, and an absent member stays unchanged. */
export interface CheckedDescription {
  readonly name?: string | null;
  readonly labels?: Labels;
}

/** @throws LockgateError `input-name`, `input-label` */
export function checkDescription({ name, labels }: LockDescription): CheckedDescription {
  const fault = descriptionFault({ name, labels });
  if (fault !== undefined)
    throw new LockgateError(fault.member === 'name' ? 'input-name' : 'input-label', fault.detail);
  const trimmed = name?.trim();
  return {
    ...(trimmed !== undefined && { name: trimmed === '' ? null : trimmed }),
    ...(labels !== undefined && { labels }),
  };
}

/** What is wrong with a description, as a sentence; undefined if nothing is. */
export function descriptionFault({
  name,
  labels,
}: LockDescription): { readonly member: 'name' | 'labels'; readonly detail: string } | undefined {
  const badName = name === undefined ? undefined : nameFault(name.trim());
  if (badName !== undefined) return { member: 'name', detail: `the name: ${badName}` };
  const badLabel = labels === undefined ? undefined : labelsFault(labels);
  if (badLabel === undefined) return undefined;
  const { key, detail } = badLabel;
  return {
    member: 'labels',
    detail: key === '' ? `the labels: ${detail}` : `the label ${JSON.stringify(key)}: ${detail}`,
  };
}
