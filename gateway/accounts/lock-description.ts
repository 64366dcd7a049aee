/** Checks the names and labels that operators give to locks. */
import { LockgateError } from '../../proto/errors.js';
import { type Labels, labelsFault, nameFault } from '../store/contract/merchants/device-labels.js';

/** A name and labels as an operator gives them. An empty name means none. */
export interface LockDescription {
  readonly name?: string | undefined;
  readonly labels?: Labels | undefined;
}

/** The same for the store; a member that is not given is absent. */
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
  const inName = name === undefined ? undefined : nameFault(name.trim());
  if (inName !== undefined) return { member: 'name', detail: `the name: ${inName}` };
  const inLabels = labels === undefined ? undefined : labelsFault(labels);
  if (inLabels === undefined) return undefined;
  const { key, detail } = inLabels;
  return {
    member: 'labels',
    detail: key === '' ? `the labels: ${detail}` : `the label ${JSON.stringify(key)}: ${detail}`,
  };
}
