/** A sentence of the gateway, whose times are written as all times of the page are; the exact one is in the title. */
import type { JSX } from 'preact';
import { timeText } from './time-text.js';

/** A time in a sentence, such as `2026-11-20T07:00:01.250Z`. */
const INSTANT = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/;

export function Sentence({ text }: { readonly text: string }): JSX.Element {
  // Splitting by a pattern with a group leaves what matched at the odd places.
  const parts = text.split(INSTANT);
  return <>{parts.map((part, index) => (index % 2 === 1 ? <Instant key={index} date={part} /> : part))}</>;
}

/** A time that is none, such as one of a 13th month, stays as it is written. */
function Instant({ date }: { readonly date: string }): JSX.Element {
  if (Number.isNaN(Date.parse(date))) return <>{date}</>;
  return (
    <time dateTime={date} title={date}>
      {timeText(date)}
    </time>
  );
}
