/** Small parts of many screens: signs of state, failures, empty states, buttons that wait for their call. */
import type { ComponentChildren, JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { ApiFailure } from '../api/http.js';
import type { Lock } from '../api/shapes.js';
import { asFailure, type Loaded } from './use-answer.js';

/** How good or bad a state is. It has a sign as well as a colour, for readers who can't tell the colours apart. */
export type Tone = 'good' | 'bad' | 'warn' | 'theft' | 'changed' | 'quiet';

const SIGNS: Readonly<Record<Tone, string>> = {
  good: '✓',
  bad: '✗',
  warn: '!',
  theft: '▲',
  changed: '•',
  quiet: '·',
};

export function Badge({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }): JSX.Element {
  return (
    <span class={`badge ${tone}`}>
      <span aria-hidden="true">{SIGNS[tone]} </span>
      {children}
    </span>
  );
}

const PRESENCE_TONES: Readonly<Record<string, Tone>> = {
  online: 'good',
  asleep: 'quiet',
  late: 'bad',
  'low-battery': 'warn',
  airplane: 'quiet',
  'never-seen': 'quiet',
};

/** The presence of a lock; nothing if {@link TroubleBadge} says the same. */
export function PresenceBadge({ lock }: { readonly lock: Lock }): JSX.Element | null {
  if (lock.presence === lock.trouble) return null;
  return <Badge tone={PRESENCE_TONES[lock.presence] ?? 'quiet'}>{lock.presence.replaceAll('-', ' ')}</Badge>;
}

const TROUBLE_TONES: Readonly<Record<string, Tone>> = { theft: 'theft', late: 'bad', 'low-battery': 'warn' };

/** What is wrong with a lock; nothing if nothing is. */
export function TroubleBadge({ lock }: { readonly lock: Lock }): JSX.Element | null {
  if (lock.trouble === 'none') return null;
  return <Badge tone={TROUBLE_TONES[lock.trouble] ?? 'warn'}>{lock.trouble.replaceAll('-', ' ')}</Badge>;
}

/** A lock's name, or its MAC if it has none. */
export function lockName({ name, mac_addr }: Pick<Lock, 'name' | 'mac_addr'>): string {
  return name ?? mac_addr;
}

export function Failure({ failure }: { readonly failure: ApiFailure | null }): JSX.Element | null {
  if (failure === null) return null;
  return (
    <p class="failure" role="alert">
      {failure.message}
    </p>
  );
}

/** A list or form once its answer is there; before, that it is loading. A failure is shown above the last answer. */
export function WhenLoaded<Answer>({
  loaded,
  children,
}: {
  readonly loaded: Loaded<Answer>;
  readonly children: (answer: Answer) => ComponentChildren;
}): JSX.Element {
  const { answer, failure } = loaded;
  return (
    <>
      <Failure failure={failure} />
      {answer !== null ? children(answer) : failure === null && <p class="hint">Loading …</p>}
    </>
  );
}

/** What an empty list says: what it is, and what to do next. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="big">{title}</p>
      {children}
    </div>
  );
}

/** What is shown where there is no lock at all. */
export function NoLocks(): JSX.Element {
  return (
    <Empty title="No locks yet">
      <p>
        An operator adds locks to a merchant: <code>lockgate device add</code>. They are listed here at once.
      </p>
    </Empty>
  );
}

interface ActionProps {
  /** Makes the call. */
  readonly act: () => Promise<unknown>;
  readonly children: ComponentChildren;
  readonly tone?: 'primary' | 'danger' | 'quiet';
  /** A question that must be confirmed first. */
  readonly confirm?: string;
  readonly isDisabled?: boolean;
}

/** A button that makes a call, and shows beside it why the call failed. */
export function Action({ act, children, tone, confirm, isDisabled = false }: ActionProps): JSX.Element {
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<ApiFailure | null>(null);
  const press = (): void => {
    if (confirm !== undefined && !globalThis.confirm(confirm)) return;
    setBusy(true);
    setFailure(null);
    act()
      .catch((error: unknown) => setFailure(asFailure(error)))
      .finally(() => setBusy(false));
  };
  return (
    <>
      <button type="button" class={tone} disabled={isBusy || isDisabled} onClick={press}>
        {children}
      </button>
      {failure !== null && (
        <span class="bad" role="alert">
          {' '}
          {failure.message}
        </span>
      )}
    </>
  );
}

/** Copies a text. */
export function CopyButton({ text, label }: { readonly text: string; readonly label: string }): JSX.Element {
  const [isCopied, setCopied] = useState(false);
  const copy = (): void => {
    navigator.clipboard.writeText(text).then(
      () => setCopied(true),
      () => setCopied(false),
    );
  };
  return (
    <button type="button" class="quiet" onClick={copy} title={text}>
      {isCopied ? '✓ copied' : label}
    </button>
  );
}
