/**
 * Explores every state that a small model can reach, in the order of the number of steps: the first fault that it finds
 * has the shortest story. A model is pure: its states are plain data, and its steps return new states. Whatever may
 * happen at any time (a cut, a pause, a late statement) is a step, so the exploration covers every order of events.
 */

/** Something that may happen in a state, and the state after it. */
export interface Step<State> {
  readonly name: string;
  readonly state: State;
}

/** What {@link explore} explores. */
export interface Model<State> {
  readonly start: State;
  /** Everything that may happen next. */
  steps(state: State): Iterable<Step<State>>;
  /** What is wrong in this state; undefined if nothing is. */
  fault(state: State): string | undefined;
  /** What is wrong if nothing more can happen in this state. */
  endFault?(state: State): string | undefined;
}

export interface Exploration {
  /** How many different states were reached. */
  readonly states: number;
  /** The first fault, after the names of the steps to it; undefined if there is none. */
  readonly story: readonly string[] | undefined;
}

/** A model that reaches more states has an error, or is too large. */
const MAX_STATES = 2_000_000;

/** A state, and the step and the state from which it was reached first. */
interface Reached<State> {
  readonly state: State;
  readonly name: string;
  readonly before: Reached<State> | undefined;
}

/** Explores the model up to its first fault. @throws Error if it has more than {@link MAX_STATES} */
export function explore<State>(model: Model<State>): Exploration {
  /** The states that were reached, as text. */
  const known = new Set([JSON.stringify(model.start)]);
  /** The states that are one step further than the ones before. */
  let front: Reached<State>[] = [{ state: model.start, name: 'start', before: undefined }];
  while (front.length > 0) {
    const next: Reached<State>[] = [];
    for (const reached of front) {
      const fault = model.fault(reached.state);
      if (fault !== undefined) return { states: known.size, story: [...storyOf(reached), fault] };
      let isEnd = true;
      for (const { name, state } of model.steps(reached.state)) {
        isEnd = false;
        const key = JSON.stringify(state);
        if (known.has(key)) continue;
        known.add(key);
        next.push({ state, name, before: reached });
      }
      const endFault = isEnd ? model.endFault?.(reached.state) : undefined;
      if (endFault !== undefined) return { states: known.size, story: [...storyOf(reached), endFault] };
    }
    if (known.size > MAX_STATES) throw new Error(`the model has more than ${MAX_STATES} states`);
    front = next;
  }
  return { states: known.size, story: undefined };
}

/** The names of the steps to a state. */
function storyOf<State>(last: Reached<State>): string[] {
  const story: string[] = [];
  for (let each: Reached<State> | undefined = last; each !== undefined; each = each.before) story.unshift(each.name);
  return story;
}

/** A copy of a list with another item at `index`. */
export function withItem<Item>(items: readonly Item[], index: number, item: Item): Item[] {
  return items.map((each, at) => (at === index ? item : each));
}
