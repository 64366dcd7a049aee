/**
 * One line of the live events: the time, the lock and its merchant, what happened. Texts of others are in `bdi`, so
 * that one that is written from right to left leaves the rest of the line in order.
 */
import type { JSX } from 'preact';
import { type EventTone, eventText } from '../../../wording/event-text.js';
import type { TailNames } from '../../live/tail-filter.js';
import type { TailLine } from '../../live/tail-log.js';
import { timeOfDayText } from '../../view/time-text.js';

/** A sign beside the colour, so that a line does not depend on it. */
const SIGNS: Readonly<Record<EventTone, string>> = {
  good: '✓',
  bad: '✗',
  warn: '!',
  quiet: '·',
  lock: '•',
  command: '›',
};

export function TailRow({ line, names }: { readonly line: TailLine; readonly names: TailNames }): JSX.Element {
  if (!('event' in line)) return <span class="tail-note">{line.note}</span>;
  const { event } = line;
  const { label, tone, text } = eventText(event);
  const mac = typeof event.mac === 'string' ? event.mac : '';
  return (
    <span class="tail-row">
      <time class="mono" dateTime={String(event.at)} title={String(event.at)}>
        {timeOfDayText(String(event.at))}
      </time>
      <span class={`tail-label mono ${tone}`}>
        <span aria-hidden="true">{SIGNS[tone]} </span>
        {label}
      </span>
      <bdi class="mono tail-mac" title={mac}>
        {names.lockName(mac) ?? mac}
      </bdi>
      <bdi class="tail-merchant hint">{names.merchantOf(event) ?? ''}</bdi>
      <bdi class="tail-text" title={text}>
        {text}
      </bdi>
    </span>
  );
}
