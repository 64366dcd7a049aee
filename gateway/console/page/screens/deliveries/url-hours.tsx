/** The strip of a webhook URL's last 24 hours, loaded by itself, so that a long list of URLs does not wait for it. */
import type { JSX } from 'preact';
import { useCallback } from 'preact/hooks';
import { Minutes } from '../../../../../proto/clock.js';
import type { DeliveryHour } from '../../api/shapes.js';
import { useAnswer } from '../../view/use-answer.js';
import { HourStrip } from './hour-strip.js';

/** How often the strip is loaded again. */
const RELOAD_EVERY = Minutes(1);

interface HoursProps {
  /** The id of the URL. */
  readonly id: number;
  readonly load: (id: number) => Promise<{ readonly data: readonly DeliveryHour[] }>;
}

export function UrlHours({ id, load }: HoursProps): JSX.Element {
  const { answer, failure } = useAnswer(
    useCallback(() => load(id), [load, id]),
    RELOAD_EVERY,
  );
  if (answer !== null) return <HourStrip hours={answer.data} />;
  return <span class="hint">{failure === null ? '…' : failure.message}</span>;
}
