/** The answer to “why” for an event, a finding, a command or a lock, step by step with its sources. */
import type { JSX } from 'preact';
import { useCallback, useEffect, useRef } from 'preact/hooks';
import { useApi } from '../../api/console-api.js';
import { WhenLoaded } from '../../view/parts.js';
import { Sentence } from '../../view/sentence.js';
import { useAnswer } from '../../view/use-answer.js';

export function WhyPanel({ id, onClose }: { readonly id: string; readonly onClose: () => void }): JSX.Element {
  const api = useApi();
  const why = useAnswer(useCallback(() => api.why(id), [api, id]));
  const element = useRef<HTMLElement>(null);
  // The button or mark that asked may be far away on the page.
  useEffect(() => element.current?.scrollIntoView({ block: 'nearest' }), [why.answer]);
  return (
    <section class="card why" aria-label="Why" ref={element}>
      <header class="card-head">
        <h2>Why?</h2>
        <span class="mono hint">{id}</span>
        <button type="button" class="quiet" onClick={onClose} aria-label="Close the explanation">
          ✕
        </button>
      </header>
      <WhenLoaded loaded={why}>
        {({ steps }) => (
          <ol>
            {steps.map(({ sentence, rests_on }) => (
              <li key={sentence}>
                <Sentence text={sentence} /> <span class="hint">({rests_on})</span>
              </li>
            ))}
          </ol>
        )}
      </WhenLoaded>
    </section>
  );
}
