/** An event as JSON, with a link to its lock. */
import type { JSX } from 'preact';
import type { EventJson } from '../../../wording/event-text.js';
import { routeTo } from '../../app/route.js';
import type { TailNames } from '../../live/tail-filter.js';
import { Dialog } from '../../view/dialog.js';
import { CopyButton } from '../../view/parts.js';

interface EventDialogProps {
  readonly event: EventJson;
  readonly names: TailNames;
  readonly onClose: () => void;
}

export function EventDialog({ event, names, onClose }: EventDialogProps): JSX.Element {
  const { mac } = event;
  const json = JSON.stringify(event, null, 2);
  return (
    <Dialog title={String(event.event)} onClose={onClose}>
      <p class="buttons">
        {typeof mac === 'string' && (
          <>
            <a href={routeTo('lock', [mac])}>{names.lockName(mac) ?? mac}</a>
            <a href={routeTo('live', [], { lock: mac })} onClick={onClose}>
              Only this lock
            </a>
          </>
        )}
        <CopyButton text={json} label="Copy" />
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reached by the keyboard */}
      <pre class="json" tabIndex={0}>
        {json}
      </pre>
    </Dialog>
  );
}
