/**
 * Makes the JSON of an answer with a long list in slices, between which other work runs: a thousand pings are a
 * megabyte, which in one piece would delay the acknowledgements of pings by many milliseconds.
 */

/** Items that are converted in one turn of the event loop, which takes some 0.5 ms. */
const ITEMS_PER_TURN = 25;

/** A list as a member of a JSON object. */
export interface SlicedList<Item> {
  /** The member's name. */
  readonly name: string;
  readonly items: readonly Item[];
  /** Must return just the members that the answer's schema has: no schema serialises them. */
  readonly toJson: (item: Item) => unknown;
  /** The members after the list, at least one. */
  readonly rest: object;
}

/**
 * Returns the text of `{"name": […], …rest}`.
 *
 * @param turns waits for other work; rejects if the signal is aborted
 */
export async function slicedJson<Item>(
  { name, items, toJson, rest }: SlicedList<Item>,
  turns: { next(signal?: AbortSignal): Promise<void> },
  signal?: AbortSignal,
): Promise<string> {
  const texts: string[] = [];
  for (let start = 0; start < items.length; start += ITEMS_PER_TURN) {
    await turns.next(signal);
    const slice = items.slice(start, start + ITEMS_PER_TURN).map(toJson);
    // Without the brackets of the slice; below, without the opening brace of the other members.
    texts.push(JSON.stringify(slice).slice(1, -1));
  }
  return `{${JSON.stringify(name)}:[${texts.join(',')}],${JSON.stringify(rest).slice(1)}`;
}
