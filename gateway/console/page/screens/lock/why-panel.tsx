/** The answer to “why” for an event, a finding, a command or a lock, step by step with its sources. */
import type { JSX } from 'preact';
import { useCallback } from 'preact/hooks';
import { useApi } from '../../api/console-api.js';
import { WhenLoaded } from '../../view/parts.js';
import { useAnswer } from '../../view/use-answer.js';

export function WhyPanel({ id, onClose }: { readonly id: string; readonly onClose: () => void }): JSX.Element {
  const api = useApi();
  const why = useAnswer(useCallback(() => api.why(id), [api, id]));
  return (
    <section class="card why" aria-label="Why">
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
                {sentence} <span class="hint">({rests_on})</span>
              </li>
            ))}
          </ol>
        )}
      </WhenLoaded>
    </section>
  );
}
