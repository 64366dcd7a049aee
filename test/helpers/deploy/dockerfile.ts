/** Reads a Dockerfile: its stages, and their instructions in order. For tests of deploy/. */

export interface Instruction {
  readonly name: string;
  /** What follows the name, in one line. */
  readonly value: string;
}

/** The instructions of each stage; the first of each is its `FROM`. @throws Error if a line is no instruction */
export function readStages(dockerfile: string): Instruction[][] {
  const stages: Instruction[][] = [];
  const lines = dockerfile.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#'));
  // A backslash at the end of a line continues the instruction on the next one.
  for (const line of lines.join('\n').replaceAll('\\\n', ' ').split('\n')) {
    // Such as `COPY package.json ./`.
    const [, name, value] = /^([A-Z]+) +(.+)$/.exec(line) ?? [];
    if (name === undefined || value === undefined) throw new Error(`no instruction: ${line}`);
    if (name === 'FROM') stages.push([]);
    const stage = stages.at(-1);
    if (stage === undefined) throw new Error(`before FROM: ${line}`);
    stage.push({ name, value });
  }
  return stages;
}

/** The only value of an instruction in a stage. @throws Error if there is none or another */
export function onlyValue(stage: readonly Instruction[], name: string): string {
  const [found, ...others] = stage.filter((instruction) => instruction.name === name);
  if (found === undefined || others.length > 0) throw new Error(`not exactly one ${name}`);
  return found.value;
}

/** The command of an instruction in exec form, such as `CMD ["node"]`. @throws SyntaxError in shell form */
export function execForm(text: string): string[] {
  return JSON.parse(text.slice(text.indexOf('['))) as string[];
}
