/**
 * A modal dialog. Escape, a click on the backdrop and its button call `onClose`, with which the caller stops rendering
 * it. The browser keeps the focus inside.
 */
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

export function Dialog({ title, onClose, children }: DialogProps): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => dialog.current?.showModal(), []);
  const closeOnBackdropClick = (event: MouseEvent): void => {
    if (dialog.current !== null && isOnBackdrop(dialog.current, event)) onClose();
  };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it, which the browser reports as onCancel
    <dialog ref={dialog} aria-labelledby={titleId} onCancel={onClose} onClick={closeOnBackdropClick}>
      <header>
        <h2 id={titleId}>{title}</h2>
        <button type="button" class="quiet" onClick={onClose} aria-label="Close">
          ✕
        </button>
      </header>
      {children}
    </dialog>
  );
}

/** Whether a click was on the backdrop. The target is the dialog then, but also if the click was on its padding. */
function isOnBackdrop(dialog: HTMLDialogElement, { target, clientX, clientY }: MouseEvent): boolean {
  const { left, right, top, bottom } = dialog.getBoundingClientRect();
  return target === dialog && (clientX < left || clientX > right || clientY < top || clientY > bottom);
}
